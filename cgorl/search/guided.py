"""Guided: the controls of the agent: the same walks, led by gains alone or by a network that has learnt nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.agent import no_checkpoint, not_below_0, positive, scorer
from cgorl.search.inference import Inference, Scorer, View, log_softmax, with_gains
from cgorl.search.searcher import Budget, Listener, Meter, SearchError, SearchResult

POLICIES = ("gain", "untrained")


@dataclass(frozen=True, slots=True)
class Guided:
    """Led by `policy`: `gain`, a softmax over gains in percent of the first cost by `temperature`, or `untrained`.

    To stop counts as gaining nothing. `gain` is what gains count besides an untrained network, as of `Agent`.
    """

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

    def __call__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel,
        budget: Budget,
        listen: Listener | None = None,
        checkpoint: Path | None = None,
    ) -> SearchResult:
        """Runs the search; see `Searcher`. Raises SearchError."""
        no_checkpoint(checkpoint, "guided")
        score = self._by_gain if self.policy == "gain" else with_gains(_untrained(rules, self.seed), self.gain)
        return Inference.of(self).search(graph, rules, cost, Meter(budget, listen), score)

    def _by_gain(self, views: Sequence[View]) -> list[Sequence[float]]:
        percents = [v.table.scale / self.temperature for v in views]
        return [log_softmax([*(v.state.gain(m) * p for m in v.matches), 0.0]) for v, p in zip(views, percents, strict=True)]


def _untrained(rules: RuleSet, seed: int) -> Scorer:
    from cgorl.agent.encoder import Encoder
    from cgorl.agent.policy import fresh_policy

    return scorer(fresh_policy(rules, seed, Encoder))
