"""Beam: the best few graphs of each depth, side by side."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.searcher import check


@dataclass(frozen=True, slots=True)
class Beam(Method):
    """Expands the `width` cheapest distinct graphs that are one rewrite further, again and again (0: all of them).

    Stops after `patience` depths without a better graph. Memory: the graphs of two depths, and the keys of all.
    """

    width: int = 8
    patience: int = 8

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"width": 0, "patience": 1}, whole=("width", "patience"))

    def search(self, course: Course) -> str:
        """See `Method`."""
        told = course.memory
        level = [course.state(n) for n in told["level"]] if told else [course.start]
        wider = [course.state(n) for n in told["wider"]] if told else []
        seen = set(told["seen"]) if told else {course.start.graph.key}
        waited, better = told.get("waited", 0), told.get("better", False)
        while level and waited < self.patience:
            moves = ((s.cost_ms - s.gain(m), k, s, m) for k, (s, m) in enumerate((s, m) for s in level for m in s.best_first()))
            heap = list(moves)
            heapq.heapify(heap)
            while heap and (self.width == 0 or len(wider) < self.width):
                if spent := course.pause(
                    lambda number: {
                        **{"level": [number(s) for s in level], "wider": [number(s) for s in wider]},  # noqa: B023
                        **{"seen": sorted(seen), "waited": waited, "better": better},  # noqa: B023
                    }
                ):
                    return spent
                _, _, parent, match = heapq.heappop(heap)
                child = parent.step(match)
                if child.graph.key in seen:
                    continue
                seen.add(child.graph.key)
                wider.append(child.expand(course.meter))
                better |= course.offer(child)
            level, wider = wider, []
            waited, better = 0 if better else waited + 1, False
        return "no graph left" if not level else "no better graph"
