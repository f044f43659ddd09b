"""Annealing: random matches, worse ones less and less often."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.random_walk import generator
from cgorl.search.searcher import ABOVE_0, check


@dataclass(frozen=True, slots=True)
class Annealing(Method):
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

    def search(self, course: Course) -> str:
        """See `Method`."""
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
                at = at.after(match, course.meter)
                course.offer(at)
        return "cooled down"
