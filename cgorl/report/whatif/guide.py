"""Guide: a trained policy that says what it thinks of each step of an optimization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from cgorl.rules.matches import touched_by
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.inference import View, Walk


class GuideError(ValueError):
    """A policy that cannot be asked; the message says what to do."""


class Thought(NamedTuple):
    """What a policy thinks of a state: the chance of each match of the view and of stopping, and what it expects from here on."""

    chances: Sequence[float]
    stop: float
    value: float
    curiosity: float


class Guide:
    """The policy in a file, as a search makes use of it.

    `temperature` is that of search=agent; without it the chances are the policy's own. Raises GuideError where the agent's
    packages are not installed, AgentError for a file that holds no policy.
    """

    def __init__(self, path: str | Path, rules: RuleSet, temperature: float = 1.0) -> None:
        """Reads the file, with its curiosity module if it has one."""
        if find_spec("torch") is None or find_spec("torch_geometric") is None:
            raise GuideError("a policy needs the agent's packages: pip install -c constraints.txt -e '.[agent]'")
        from cgorl.agent import checkpoint
        from cgorl.search.agent import scorer

        self.path = Path(path)
        self._policy, _ = checkpoint.policy(path, rules)
        self._curiosity = checkpoint.curiosity(path, rules)
        self._score = scorer(self._policy, temperature)

    @property
    def curious(self) -> bool:
        """Whether it knows what the curiosity module pays."""
        return self._curiosity is not None

    def thinks(self, view: View) -> Thought:
        """What it thinks of a state."""
        from cgorl.agent.opinion import opinion

        *chances, stop = (math.exp(v) for v in self._score([view])[0])
        return Thought(chances, stop, *opinion(self._policy, view.seen))

    def chooses(self, view: View) -> Match | None:
        """The likeliest action: a match, or to stop."""
        [logp] = self._score([view])
        best = max(range(len(logp)), key=logp.__getitem__)
        return view.matches[best] if best < len(view.matches) else None

    def pays(self, walk: Walk, view: View, matches: Sequence[Match]) -> list[float]:
        """The curiosity module's bonus for each of some matches of the view, as in training before it is scaled. Needs `curious`."""
        from cgorl.agent.rollout import Taken

        assert self._curiosity is not None
        number = {m: k for k, m in enumerate(view.matches)}
        steps = []
        for m in matches:
            then = walk.after(view, m)
            after = frozenset(touched_by(view.state.graph, then.state.graph, m.edit))
            steps.append(Taken(view.seen, number[m], then.seen, (after.union(m.edit.removed, m.nodes), after), 0))
        return [float(v) for v in self._curiosity.paid(steps)]
