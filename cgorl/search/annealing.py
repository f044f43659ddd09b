"""Annealing: random matches, worse ones less and less often."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.checkpoint import Checkpoint
from cgorl.search.course import Course, anytime
from cgorl.search.random_walk import generator
from cgorl.search.searcher import ABOVE_0, Budget, Listener, Meter, SearchResult, check


@dataclass(frozen=True, slots=True)
class Annealing:
    """Metropolis steps: a match of gain g is taken with chance min(1, exp(g / T)).

    T falls evenly in its logarithm from `hot` to `cold` (shares of the first cost) over `steps` proposals; one that is
    refused costs an evaluation of its own graph only. Memory: three graphs, and of each rewrite done its rule and nodes.
    """

    hot: float = 0.003
    cold: float = 0.00001
    steps: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"hot": ABOVE_0, "cold": ABOVE_0, "steps": 1, "seed": 0}, whole=("steps", "seed"))

    def __call__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel,
        budget: Budget,
        listen: Listener | None = None,
        checkpoint: Path | None = None,
    ) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter, kept = Meter(budget, listen), Checkpoint(checkpoint, self) if checkpoint else None

        def work(course: Course) -> str:
            at, told = course.at(), course.memory
            rng = generator(self.seed, told.get("rng"))
            for k in range(told.get("step", 0), self.steps):
                if spent := course.pause(lambda number: {"at": number(at), "step": k, "rng": rng.getstate()}):  # noqa: B023
                    return spent
                choices = list(at.prices)
                if not choices:
                    break
                heat = course.start.cost_ms * self.hot * (self.cold / self.hot) ** (k / max(1, self.steps - 1))
                match = rng.choice(choices)
                gain = at.gain(match)
                if gain >= 0 or rng.random() < math.exp(gain / heat):
                    at = at.after(match, meter)
                    course.offer(at)
            return "cooled down"

        return anytime(graph, rules, cost, meter, work, kept)
