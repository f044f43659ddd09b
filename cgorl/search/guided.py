"""Guided: the controls of the agent: the same walks, led by gains alone or by a network that has learnt nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cgorl.rules.rule_set import RuleSet
from cgorl.search.agent import positive, scorer, share
from cgorl.search.course import Course
from cgorl.search.inference import Inference, Scorer, by_gain
from cgorl.search.method import Method
from cgorl.search.searcher import SearchError

POLICIES = ("gain", "untrained")


@dataclass(frozen=True, slots=True)
class Guided(Method):
    """Led by `policy`: `gain`, a softmax over gains in percent of the first cost by `temperature`, or `untrained`.

    To stop counts as gaining nothing. `hedge` is the share of walks that gains lead beside an untrained network, as of `Agent`.
    """

    anew: ClassVar[str] = "guided"

    policy: str = "gain"
    mode: str = "sample"
    samples: int = 8
    width: int = 8
    horizon: int | None = None
    temperature: float = 0.1
    hedge: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        if self.policy not in POLICIES:
            raise SearchError(f"search.policy must be one of {', '.join(POLICIES)}, not {self.policy!r}")
        positive("temperature", self.temperature)
        share("hedge", self.hedge)
        Inference.of(self)

    def prepare(self) -> None:
        """Imports torch, which may take seconds."""
        if self.policy != "gain":
            import cgorl.agent.policy  # noqa: F401

    def search(self, course: Course) -> str:
        """See `Method`."""
        if self.policy == "gain":
            return Inference.of(self).search(course, by_gain(self.temperature))
        return Inference.of(self).search(course, _untrained(course.rules, self.seed), self.hedge)


def _untrained(rules: RuleSet, seed: int) -> Scorer:
    from cgorl.agent.encoder import Encoder
    from cgorl.agent.policy import fresh_policy

    return scorer(fresh_policy(rules, seed, Encoder))
