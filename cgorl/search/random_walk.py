"""Random walk: any match, with equal chances, in episodes from the start."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.searcher import check


def generator(seed: int, state: Any) -> random.Random:
    """Random numbers from a seed, or from where a checkpoint left off."""
    rng = random.Random(seed)
    if state is not None:
        version, numbers, gauss = state
        rng.setstate((version, tuple(numbers), gauss))
    return rng


@dataclass(frozen=True, slots=True)
class RandomWalk(Method):
    """Walks of `horizon` rewrites, each from the first graph, until the budget is used up or `walks` are walked. Memory: three graphs."""

    horizon: int = 50
    walks: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"horizon": 1, "walks": 1, "seed": 0}, whole=("horizon", "walks", "seed"))

    def search(self, course: Course) -> str:
        """See `Method`."""
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
                at = at.after(rng.choice(list(at.prices)), course.meter)
                course.offer(at)
            first, at = 0, course.start
        return "all walks walked"
