"""Exhaustive: every graph that the rules reach, for graphs small enough; then the best is the optimum, and it says so."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.searcher import check

COMPLETE = "optimum: every reachable graph was seen"


@dataclass(frozen=True, slots=True)
class Exhaustive(Method):
    """Breadth first over distinct graphs that run at most `growth` times the nodes of the first (rules that only enlarge never end).

    Memory: all graphs that wait, about 100 kB each, and the keys of all.
    """

    growth: float = 2.0

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"growth": 1.0})

    def search(self, course: Course) -> str:
        """`stopped` is COMPLETE if nothing was left out but what `growth` forbids."""
        told = course.memory
        waiting = deque(course.state(n) for n in told["waiting"]) if told else deque([course.start])
        seen, first = set(told["seen"]) if told else {course.start.graph.key}, told.get("next", 0)
        while waiting:
            state = waiting[0]
            for k, m in enumerate(tuple(state.prices)[first:], start=first):
                if spent := course.pause(
                    lambda number: {"waiting": [number(s) for s in waiting], "next": k, "seen": sorted(seen)}  # noqa: B023
                ):
                    return spent
                child = state.step(m)
                if child.graph.key not in seen and child.way.size <= self.growth * course.start.way.size:
                    seen.add(child.graph.key)
                    waiting.append(child.expand(course.meter))
                    course.offer(child)
            waiting.popleft()
            first = 0
        return course.meter.spent() or COMPLETE
