"""Random walk: any match, with equal chances, in episodes from the start."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.checkpoint import Checkpoint
from cgorl.search.course import Course, anytime
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult, check


def generator(seed: int, state: Any) -> random.Random:
    """Random numbers from a seed, or from where a checkpoint left off."""
    rng = random.Random(seed)
    if state is not None:
        version, numbers, gauss = state
        rng.setstate((version, tuple(numbers), gauss))
    return rng


@dataclass(frozen=True, slots=True)
class RandomWalk:
    """Walks of `horizon` rewrites, each from the first graph, until the budget is used up or `walks` are walked. Memory: three graphs."""

    horizon: int = 50
    walks: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"horizon": 1, "walks": 1, "seed": 0}, whole=("horizon", "walks", "seed"))

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
            first = told.get("step", 0)
            for walk in range(told.get("walk", 0), self.walks):
                for k in range(first, self.horizon):
                    if spent := course.pause(
                        lambda number: {"at": number(at), "walk": walk, "step": k, "rng": rng.getstate()}  # noqa: B023
                    ):
                        return spent
                    if not at.prices:
                        break
                    at = at.after(rng.choice(list(at.prices)), meter)
                    course.offer(at)
                first, at = 0, course.start
            return "all walks walked"

        return anytime(graph, rules, cost, meter, work, kept)
