"""ICM: the intrinsic curiosity module (Pathak et al. 2017, arXiv 1705.05363) for graph rewriting; and counting as its control.

A bonus is paid for rewrites whose effect is not foreseen. An encoder of its own sees the graph before and after; what a
rewrite did is the *change* of the vectors of the nodes that it touched, pooled (a mean over the whole graph would hardly
move). The forward model foresees the change from rule and matched nodes; the inverse model tells from the change which of
the valid matches it was, and so keeps in the vectors what depends on the agent.

Shape suffixes: X transitions, M matches of all of them, H hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from cgorl.agent.batch import batch, distinct_matches, means, nodes, places, pooled, segment_log_softmax
from cgorl.agent.encoder import Encoder
from cgorl.agent.policy import RuleVectors
from cgorl.agent.rollout import Rollout, Taken
from cgorl.env.observation import ROLES
from cgorl.rules.rule_set import RuleSet


class CuriosityError(ValueError):
    """A curiosity that cannot be; the message names the option."""


class Curiosity(Protocol):
    """The two hooks by which PPO knows of curiosity: what it pays for a rollout, and its turn to learn from it."""

    counts: bool
    """Whether it needs to know how often an episode has been at a graph."""
    eta: float
    """The deviation of intrinsic returns where that of extrinsic ones is 1."""

    def begin(self, rules: RuleSet, known: Mapping[str, str], seed: int) -> None:
        """Makes itself ready for these rules, from random numbers of its own."""
        ...

    def bonus(self, rollout: Rollout) -> Any:
        """What it pays for each step, [T, E], at least 0."""
        ...

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Learns from a rollout; returns metrics."""
        ...

    def state(self) -> dict[str, Any]:
        """All that it has learnt."""
        ...

    def restore(self, told: dict[str, Any]) -> None:
        """Knows what `state` said."""
        ...


class Insight(NamedTuple):
    """What the module makes of transitions: changes and those foreseen [X, H], chances of the matches, and the rows taken."""

    change_XH: Any
    foreseen_XH: Any
    logp_M: Any
    taken_X: Any
    action_MH: Any
    graph_M: Any


class Module(nn.Module):
    """The networks: encoder, action vectors, forward and inverse model."""

    def __init__(self, known: Mapping[str, str], hidden: int, layers: int) -> None:
        """`known` are the digests of the rules to learn, by name."""
        super().__init__()
        self.encoder = Encoder("gcn", hidden, layers)
        self.norm = nn.LayerNorm(hidden, elementwise_affine=False)  # else the forward model is served best by small vectors
        self.rules = RuleVectors(known, hidden)
        self.role = nn.Embedding(ROLES, hidden)
        self.foresee = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden))
        self.tell_match = nn.Linear(hidden, hidden)
        self.tell_change = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))

    def forward(self, steps: Sequence[Taken]) -> Insight:
        """What it makes of steps that are rewrites."""
        b, count = batch([s.seen for s in steps]), len(steps)
        # all graphs at once: before and after a rewrite most nodes are the same
        e = self.encoder(nodes([*(s.seen for s in steps), *(s.after for s in steps)]))
        h_UH = self.norm(e.h_UH)
        graphs = [*((s.seen, s.touched[0]) for s in steps), *((s.after, s.touched[1]) for s in steps)]
        first = np.cumsum([0, *(len(o.ids_N) for o, _ in graphs)])
        rows = [o.rows(ids) + f for (o, ids), f in zip(graphs, first, strict=False)]
        touched_2XH = means(h_UH, e.of_N[torch.from_numpy(np.concatenate(rows))], torch.tensor([len(r) for r in rows]))
        change_XH = touched_2XH[count:] - touched_2XH[:count]
        rows_U, of_M = distinct_matches(b, e.key_N)
        place_K, owner_K, role_K = (torch.from_numpy(x) for x in places(b, rows_U))
        at_UH = pooled(h_UH, e.of_N[place_K], owner_K, len(rows_U)) + pooled(self.role.weight, role_K, owner_K, len(rows_U))
        action_UH = at_UH + self.rules().index_select(0, b.rule_M[torch.from_numpy(rows_U)])
        of_M = torch.from_numpy(of_M)
        action_MH = action_UH.index_select(0, of_M)
        taken_X = b.first_B + torch.tensor([s.action for s in steps])
        score_M = (self.tell_match(action_UH).index_select(0, of_M) * self.tell_change(change_XH).index_select(0, b.graph_M)).sum(1)
        logp_M = segment_log_softmax(score_M, b.graph_M, count)
        return Insight(change_XH, self.foresee(action_MH.index_select(0, taken_X)), logp_M, taken_X, action_MH, b.graph_M)


def losses(i: Insight) -> tuple[Any, Any]:
    """The inverse loss, and the forward loss 1/2 |foreseen - change|^2 whose target is not taught; means over transitions."""
    forward = 0.5 * (i.foreseen_XH - i.change_XH.detach()).square().sum(1).mean()
    return -i.logp_M[i.taken_X].mean(), forward


class ICM:
    """Curiosity as prediction error: bonus eta/2 |foreseen - change|^2, loss (1 - beta) inverse + beta forward."""

    counts = False

    def __init__(
        self, beta: float = 0.2, eta: float = 0.1, hidden: int = 32, layers: int = 1, learning_rate: float = 1e-3, minibatch: int = 64
    ) -> None:
        """Raises CuriosityError."""
        for name, value, top in (("beta", beta, 1.0), ("eta", eta, float("inf")), ("learning_rate", learning_rate, float("inf"))):
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= top:
                raise CuriosityError(
                    f"icm.{name} must be a number of at least 0" + (" and at most 1" if top == 1 else "") + f", not {value!r}"
                )
        self.beta, self.eta, self.hidden, self.layers = beta, eta, hidden, layers
        self.learning_rate, self.minibatch = learning_rate, minibatch

    def begin(self, rules: RuleSet, known: Mapping[str, str], seed: int) -> None:
        """Makes the networks, from random numbers of its own."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = Module(known, self.hidden, self.layers)
        self.module.rules.use(rules)
        self._shuffle = np.random.default_rng(seed)
        self._optimizer = torch.optim.Adam(self.module.parameters(), lr=self.learning_rate, eps=1e-5)

    def bonus(self, rollout: Rollout) -> Any:
        """Half the squared error of what was foreseen, times eta; 0 for stopping."""
        return self.paid(rollout.steps).reshape(rollout.reward_TE.shape)

    def paid(self, steps: Sequence[Taken]) -> Any:
        """The bonus of each of some steps, float64."""
        moves = [k for k, s in enumerate(steps) if s.action < s.seen.actions - 1]
        paid = np.zeros(len(steps))
        with torch.no_grad():
            for at in range(0, len(moves), self.minibatch):
                part = moves[at : at + self.minibatch]
                i = self.module([steps[k] for k in part])
                paid[part] = (self.eta / 2) * (i.foreseen_XH - i.change_XH).square().sum(1).double().numpy()
        return paid

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """One pass over the rewrites of a rollout.

        The inverse model cannot tell matches apart whose vectors are equal: `inverse_ceiling` is the accuracy of one that can
        tell all others, `inverse_chance` that of guessing.
        """
        moves = [s for s in rollout.steps if s.action < s.seen.actions - 1]
        told: dict[str, list[float]] = {}
        for part in np.array_split(self._shuffle.permutation(len(moves)), max(1, round(len(moves) / self.minibatch))):
            if not len(part):
                continue
            i = self.module([moves[k] for k in part])
            inverse, forward = losses(i)
            self._optimizer.zero_grad()
            ((1 - self.beta) * inverse + self.beta * forward).backward()
            nn.utils.clip_grad_norm_(self.module.parameters(), 0.5)
            self._optimizer.step()
            for name, value in {**_accuracy(i), "inverse_loss": float(inverse.detach()), "forward_loss": float(forward.detach())}.items():
                told.setdefault(f"curiosity/{name}", []).append(value)
        return {k: float(np.mean(v)) for k, v in told.items()}

    def state(self) -> dict[str, Any]:
        """Networks, optimizer and random state."""
        return {"module": self.module.state_dict(), "optimizer": self._optimizer.state_dict(), "shuffle": self._shuffle.bit_generator.state}

    def restore(self, told: dict[str, Any]) -> None:
        """Knows what `state` said."""
        self.module.load_state_dict(told["module"])
        self._optimizer.load_state_dict(told["optimizer"])
        self._shuffle.bit_generator.state = told["shuffle"]


def _accuracy(i: Insight) -> dict[str, float]:
    with torch.no_grad():
        count = len(i.taken_X)
        top_X = i.logp_M.new_full((count,), -torch.inf).scatter_reduce(0, i.graph_M, i.logp_M, "amax")
        same_M = (i.action_MH - i.action_MH[i.taken_X][i.graph_M]).abs().amax(1) < 1e-5
        alike_X = torch.bincount(i.graph_M[same_M], minlength=count).clamp(min=1)
        right_X = (i.logp_M[i.taken_X] >= top_X - 1e-6).float() / alike_X
        many_X = torch.bincount(i.graph_M, minlength=count)
    return {
        "inverse_accuracy": float(right_X.mean()),
        "inverse_ceiling": float((1 / alike_X).mean()),
        "inverse_chance": float((1 / many_X).mean()),
    }


class Count:
    """The control: eta / sqrt(n) for coming to a graph for the n-th time in an episode, by its key."""

    counts = True

    def __init__(self, eta: float = 0.1) -> None:
        """Raises CuriosityError."""
        if not isinstance(eta, int | float) or isinstance(eta, bool) or eta < 0:
            raise CuriosityError(f"icm.eta must be a number of at least 0, not {eta!r}")
        self.eta = eta

    def begin(self, rules: RuleSet, known: Mapping[str, str], seed: int) -> None:
        """There is nothing to make ready."""

    def bonus(self, rollout: Rollout) -> Any:
        """What it pays; 0 for stopping."""
        return np.array([[self.eta / np.sqrt(s.visits) if s.visits else 0.0 for s in row] for row in rollout.taken])

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """There is nothing to learn; the share of steps that came to a graph seen before."""
        visits = [s.visits for s in rollout.steps if s.visits]
        return {"curiosity/revisits": float(np.mean([v > 1 for v in visits]))} if visits else {}

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, told: dict[str, Any]) -> None:
        """Nothing."""
