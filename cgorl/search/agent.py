"""Agent: a policy that was trained before chooses the rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from cgorl.search.course import Course
from cgorl.search.inference import Inference, Scorer, View
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


def policy_file(name: object) -> Path | None:
    """The file of a policy by its name; "general" is the one in data/agents/, None none.

    Raises SearchError for what is not the name of a file that is there.
    """
    if name is None:
        return None
    if name == "general":
        return GENERAL
    if not (isinstance(name, str) and Path(name).is_file()):
        raise SearchError(
            f"there is no checkpoint {name!r}: search.checkpoint names a file that scripts/train.py has written, or is general or null"
        )
    return Path(name)


def positive(name: str, value: object) -> None:
    """Raises SearchError for what is no number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise SearchError(f"search.{name} must be a number above 0, not {value!r}")


def share(name: str, value: object) -> None:
    """Raises SearchError for what is no number from 0 to 1."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise SearchError(f"search.{name} must be a number from 0 to 1, not {value!r}")


@dataclass(frozen=True, slots=True)
class Agent(Method):
    """A trained policy, by its file (scripts/train.py writes one; None, general: the one in data/agents/), made use of as `Inference` says.

    Rules that were not there in training are known by their structure alone. `temperature` above 1 makes its choices more even;
    `hedge` is the share of walks that gains lead instead, the first of them as greed would go: graphs may be unlike those it knows.
    """

    anew: ClassVar[str] = "agent"

    checkpoint: str | None = None
    mode: str = "sample"
    samples: int = 8
    width: int = 8
    horizon: int | None = None
    temperature: float = 1.0
    hedge: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        positive("temperature", self.temperature)
        share("hedge", self.hedge)
        policy_file(self.checkpoint)
        Inference.of(self)

    def prepare(self) -> None:
        """Imports torch, which may take seconds."""
        import cgorl.agent.checkpoint  # noqa: F401

    def search(self, course: Course) -> str:
        """See `Method`. Warns of rules that are not as they were. Raises AgentError."""
        import warnings

        from cgorl.agent import checkpoint as files

        rules = course.rules
        policy, changes = files.policy(policy_file(self.checkpoint) or GENERAL, rules)
        if told := [c for c in changes if "was not there" not in c]:
            warnings.warn(_few(told), stacklevel=2)
        new = {r.name for r in rules} - policy.rules.known.keys()
        score, met = scorer(policy, self.temperature), set[str]()

        def heeding(views: Sequence[View]) -> list[Sequence[float]]:
            """Tells of new rules once, where the first graph has matches of them."""
            if not met:
                met.update(m.rule.name for m in views[0].matches)
                if strange := sorted(met & new):
                    warnings.warn(_few([f"rule '{name}' was not there in training" for name in strange]), stacklevel=2)
            return score(views)

        return Inference.of(self).search(course, heeding if new else score, self.hedge)


def _few(told: Sequence[str]) -> str:
    return "; ".join(told[:5]) + (f"; and {len(told) - 5} more" if len(told) > 5 else "")
