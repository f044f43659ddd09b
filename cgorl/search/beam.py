"""Beam: the best few graphs of each depth, side by side."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.state import Best, State, anytime


@dataclass(frozen=True, slots=True)
class Beam:
    """Expands the `width` cheapest distinct graphs that are one rewrite further, again and again (0: all of them).

    Stops after `patience` depths without a better graph. Memory: the graphs of two depths.
    """

    width: int = 8
    patience: int = 8

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter = Meter(budget, listen)

        def work(start: State, best: Best) -> str:
            level, seen, waited = [start], {graph.key}, 0
            while level and waited < self.patience:
                moves = ((s.cost_ms - s.gain(m), k, s, m) for k, (s, m) in enumerate((s, m) for s in level for m in s.best_first()))
                heap = list(moves)
                heapq.heapify(heap)
                level, better = [], False
                while heap and (self.width == 0 or len(level) < self.width):
                    if spent := meter.spent():
                        return spent
                    _, _, parent, match = heapq.heappop(heap)
                    child = parent.step(match)
                    if child.graph.key in seen:
                        continue
                    seen.add(child.graph.key)
                    level.append(child.expand(meter))
                    better |= best.offer(child)
                waited = 0 if better else waited + 1
            return "no graph left" if not level else "no better graph"

        return anytime(graph, rules, cost, meter, work)
