"""Agent: a policy that was trained before chooses the rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cgorl.search.course import Course
from cgorl.search.inference import Inference, Scorer, View, with_gains
from cgorl.search.method import Method
from cgorl.search.searcher import SearchError

if TYPE_CHECKING:
    from cgorl.agent.policy import Policy


GENERAL = Path(__file__).resolve().parents[2] / "data" / "agents" / "general.pt"
"""A policy trained on families of small graphs (data/agents/README.md)."""


def scorer(policy: Policy, temperature: float = 1.0) -> Scorer:
    """What a network thinks of views, all in one batch."""
    import torch

    from cgorl.agent.batch import batch, segment_log_softmax

    torch.set_num_threads(1)  # the tensors are small: a second thread waits more than it works, and much more under load

    def score(views: Sequence[View]) -> list[Sequence[float]]:
        b = batch([v.seen for v in views])
        with torch.no_grad():
            logp_A = segment_log_softmax(policy(b).logp_A / temperature, b.graph_A, b.size)
        matches = logp_A[: b.rule_M.shape[0]].split(b.count_B.tolist())
        return [[*m.tolist(), float(stop)] for m, stop in zip(matches, logp_A[b.rule_M.shape[0] :], strict=True)]

    return score


def positive(name: str, value: object) -> None:
    """Raises SearchError for what is no number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise SearchError(f"{name} must be a number above 0, not {value!r}")


def not_below_0(name: str, value: object) -> None:
    """Raises SearchError for what is no number of at least 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise SearchError(f"{name} must be a number of at least 0, not {value!r}")


@dataclass(frozen=True, slots=True)
class Agent(Method):
    """A trained policy, by its file (scripts/train.py writes one; None: the one in data/agents/), made use of as `Inference` says.

    Rules that were not there in training are known by their structure alone. `temperature` above 1 makes its choices more even;
    `gain` is what a saving counts besides what it thinks (see `with_gains`): on graphs unlike those it knows, it is then led by both.
    """

    anew: ClassVar[str] = "agent"

    checkpoint: str | None = None
    mode: str = "sample"
    samples: int = 8
    width: int = 8
    horizon: int | None = None
    temperature: float = 1.0
    gain: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        positive("temperature", self.temperature)
        not_below_0("gain", self.gain)
        Inference.of(self)

    def search(self, course: Course) -> str:
        """See `Method`. Warns of rules that are not as they were. Raises AgentError."""
        import warnings

        from cgorl.agent import checkpoint as files

        rules = course.rules
        policy, changes = files.policy(self.checkpoint or GENERAL, rules)
        if told := [c for c in changes if "was not there" not in c]:
            warnings.warn(_few(told), stacklevel=2)
        new = {r.name for r in rules} - policy.rules.known.keys()
        score, met = with_gains(scorer(policy, self.temperature), self.gain), set[str]()

        def heeding(views: Sequence[View]) -> list[Sequence[float]]:
            """Tells of new rules once, where the first graph has matches of them."""
            if not met:
                met.update(m.rule.name for m in views[0].matches)
                if strange := sorted(met & new):
                    warnings.warn(_few([f"rule '{name}' was not there in training" for name in strange]), stacklevel=2)
            return score(views)

        return Inference.of(self).search(course, heeding if new else score)


def _few(told: Sequence[str]) -> str:
    return "; ".join(told[:5]) + (f"; and {len(told) - 5} more" if len(told) > 5 else "")
