"""Guided: the controls of the agent: the same walks, led by gains alone or by a network that has learnt nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cgorl.rules.rule_set import RuleSet
from cgorl.search.agent import not_below_0, positive, scorer
from cgorl.search.course import Course
from cgorl.search.inference import Inference, Scorer, View, log_softmax, with_gains
from cgorl.search.method import Method
from cgorl.search.searcher import SearchError

POLICIES = ("gain", "untrained")


@dataclass(frozen=True, slots=True)
class Guided(Method):
    """Led by `policy`: `gain`, a softmax over gains in percent of the first cost by `temperature`, or `untrained`.

    To stop counts as gaining nothing. `gain` is what gains count besides an untrained network, as of `Agent`.
    """

    anew: ClassVar[str] = "guided"

    policy: str = "gain"
    mode: str = "sample"
    samples: int = 8
    width: int = 8
    horizon: int | None = None
    temperature: float = 0.1
    gain: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        if self.policy not in POLICIES:
            raise SearchError(f"policy must be one of {', '.join(POLICIES)}, not {self.policy!r}")
        positive("temperature", self.temperature)
        not_below_0("gain", self.gain)
        Inference.of(self)

    def search(self, course: Course) -> str:
        """See `Method`."""
        score = self._by_gain if self.policy == "gain" else with_gains(_untrained(course.rules, self.seed), self.gain)
        return Inference.of(self).search(course, score)

    def _by_gain(self, views: Sequence[View]) -> list[Sequence[float]]:
        percents = [v.table.scale / self.temperature for v in views]
        return [log_softmax([*(v.state.gain(m) * p for m in v.matches), 0.0]) for v, p in zip(views, percents, strict=True)]


def _untrained(rules: RuleSet, seed: int) -> Scorer:
    from cgorl.agent.encoder import Encoder
    from cgorl.agent.policy import fresh_policy

    return scorer(fresh_policy(rules, seed, Encoder))
