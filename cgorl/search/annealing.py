"""Annealing: random matches, worse ones less and less often."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.state import Best, State, anytime


@dataclass(frozen=True, slots=True)
class Annealing:
    """Metropolis steps: a match of gain g is taken with chance min(1, exp(g / T)).

    T falls evenly in its logarithm from `hot` to `cold` (shares of the first cost) over `steps` proposals; one that is
    refused costs an evaluation of its own graph only.
    """

    hot: float = 0.003
    cold: float = 0.00001
    steps: int = 2000
    seed: int = 0

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter = Meter(budget, listen)
        rng = random.Random(self.seed)

        def work(start: State, best: Best) -> str:
            at = start
            for k in range(self.steps):
                if spent := meter.spent():
                    return spent
                choices = list(at.prices)
                if not choices:
                    break
                heat = start.cost_ms * self.hot * (self.cold / self.hot) ** (k / max(1, self.steps - 1))
                match = rng.choice(choices)
                gain = at.gain(match)
                if gain >= 0 or rng.random() < math.exp(gain / heat):
                    at = at.after(match, meter)
                    best.offer(at)
            return "cooled down"

        return anytime(graph, rules, cost, meter, work)
