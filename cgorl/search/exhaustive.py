"""Exhaustive: every graph that the rules reach, for graphs small enough; then the best is the optimum, and it says so."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.state import Best, State, anytime

COMPLETE = "optimum: every reachable graph was seen"


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Breadth first over distinct graphs of at most `growth` times the nodes of the first (rules that only enlarge never end)."""

    growth: float = 2.0

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`. `stopped` is COMPLETE if nothing was left out but what `growth` forbids."""
        meter = Meter(budget, listen)
        limit = self.growth * len(graph.nodes)

        def work(start: State, best: Best) -> str:
            waiting, seen = deque([start]), {graph.key}
            while waiting:
                state = waiting.popleft()
                for m in state.prices:
                    if spent := meter.spent():
                        return spent
                    child = state.step(m)
                    if child.graph.key not in seen and len(child.graph.nodes) <= limit:
                        seen.add(child.graph.key)
                        waiting.append(child.expand(meter))
                        best.offer(child)
            return COMPLETE

        return anytime(graph, rules, cost, meter, work)
