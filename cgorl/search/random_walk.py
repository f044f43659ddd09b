"""Random walk: any match, with equal chances, in episodes from the start."""

from __future__ import annotations

import random
from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.state import Best, State, anytime


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """Walks of `horizon` rewrites, each from the first graph, until the budget is used up or `walks` are walked."""

    horizon: int = 50
    walks: int = 20
    seed: int = 0

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter = Meter(budget, listen)
        rng = random.Random(self.seed)

        def work(start: State, best: Best) -> str:
            for _ in range(self.walks):
                at = start
                for _ in range(self.horizon):
                    if spent := meter.spent():
                        return spent
                    if not at.prices:
                        break
                    at = at.after(rng.choice(list(at.prices)), meter)
                    best.offer(at)
            return "all walks walked"

        return anytime(graph, rules, cost, meter, work)
