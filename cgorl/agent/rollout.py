"""Rollout: some steps of several episodes side by side, with all that an update needs; and the running scale of returns.

Shape suffixes: T steps, E environments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from cgorl.agent.batch import batch
from cgorl.agent.policy import Policy, draw
from cgorl.env.observation import Observation
from cgorl.env.rewrite import RewriteEnv


class Taken(NamedTuple):
    """One step: what was seen, the action, what was really seen after it (not the first of the next episode), and what changed.

    `touched` are the ids of the nodes that the rewrite was about, before and after; empty for stopping. `visits` says how
    often the episode has been at the new graph, 0 where nobody counts.
    """

    seen: Observation
    action: int
    after: Observation
    touched: tuple[Any, Any]
    visits: int


@dataclass(slots=True)
class Rollout:
    """Arrays [T, E], and the steps in the same order; `next_TE` values what was really seen after, `start_TE` are numbers of graphs."""

    taken: list[list[Taken]]
    logp_TE: Any
    value_TE: Any
    next_TE: Any
    curious_TE: Any
    curious_next_TE: Any
    reward_TE: Any
    terminated_TE: Any
    done_TE: Any
    start_TE: Any
    episodes: list[dict[str, Any]]
    rules: dict[str, int] = field(default_factory=dict)
    act_seconds: float = 0.0
    env_seconds: float = 0.0

    @property
    def steps(self) -> list[Taken]:
        """All steps, by time and then environment."""
        return [t for row in self.taken for t in row]


def collect(
    policy: Policy,
    envs: Sequence[RewriteEnv],
    steps: int,
    generator: torch.Generator,
    count_visits: bool = False,
    enough: Callable[[], bool] | None = None,
) -> Rollout:
    """`steps` steps of each environment, fewer once there is `enough`; episodes go on from where they are, and begin anew at ends."""
    taken: list[list[Taken]] = []
    numbers: list[Any] = []
    starts: list[list[int]] = []
    rewards: list[Any] = []
    episodes: list[dict[str, Any]] = []
    rules: dict[str, int] = {}
    act = env_time = 0.0
    truncated: list[tuple[int, int, Observation]] = []
    for t in range(steps):
        clock = time.perf_counter()
        seen = [env.observation for env in envs]
        with torch.no_grad():
            b = batch(seen)
            j = policy(b)
            action_B = draw(j.logp_A, b, generator)
            numbers.append(torch.stack([j.logp_A[b.flat(action_B)], j.value_B, j.curious_B]).double().numpy())
        actions: list[int] = action_B.tolist()
        act, clock = act + time.perf_counter() - clock, time.perf_counter()
        row: list[Taken] = []
        results = []
        starts.append([env.start for env in envs])
        for e, env in enumerate(envs):
            after, reward, ended, cut, info = env.step(actions[e])
            stopped = actions[e] == seen[e].actions - 1
            touched = (frozenset(), frozenset()) if stopped else env.touched
            row.append(Taken(seen[e], actions[e], after, touched, env.passed.visits if count_visits and not stopped else 0))
            results.append((reward, float(ended), float(ended or cut)))
            if info["rule"] is not None:
                rules[info["rule"]] = rules.get(info["rule"], 0) + 1
            if ended or cut:
                episodes.append(info["episode"])
                if not ended:
                    truncated.append((t, e, after))
                env.reset()
        taken.append(row)
        rewards.append(np.array(results).T)
        env_time += time.perf_counter() - clock
        if enough is not None and enough():
            break
    # values of what came next: of the next step, of the real last observation where an episode was cut, nothing where it ended
    with torch.no_grad():
        last = policy(batch([env.observation for env in envs]))
        cut = policy(batch([o for _, _, o in truncated])) if truncated else last
    logp_TE, value_TE, curious_TE = (np.stack([n[k] for n in numbers]) for k in range(3))
    reward_TE, terminated_TE, done_TE = (np.stack([r[k] for r in rewards]) for k in range(3))
    next_TE = np.concatenate([value_TE[1:], last.value_B.double().numpy()[None]])
    curious_next_TE = np.concatenate([curious_TE[1:], last.curious_B.double().numpy()[None]])
    for k, (t, e, _) in enumerate(truncated):
        next_TE[t, e], curious_next_TE[t, e] = float(cut.value_B[k]), float(cut.curious_B[k])
    return Rollout(
        *(taken, logp_TE, value_TE, next_TE, curious_TE, curious_next_TE, reward_TE, terminated_TE.astype(bool), done_TE.astype(bool)),
        *(np.array(starts), episodes, rules, act, env_time),
    )


def advantages(reward_TE: Any, value_TE: Any, next_TE: Any, terminated_TE: Any, done_TE: Any, gamma: float, gae_lambda: float) -> Any:
    """Generalised advantage estimates [T, E]; `next_TE` counts unless the episode terminated, nothing is carried over its end."""
    found_TE, carried_E = np.zeros_like(value_TE), np.zeros(value_TE.shape[1])
    for t in reversed(range(len(value_TE))):
        delta_E = reward_TE[t] + gamma * next_TE[t] * ~terminated_TE[t] - value_TE[t]
        found_TE[t] = carried_E = delta_E + gamma * gae_lambda * ~done_TE[t] * carried_E
    return found_TE


class ReturnScale:
    """The running deviation of returns, by which rewards are divided (CleanRL's and OpenAI's NormalizeReward).

    Each graph has its own: what is much on one is little on another, and both are to be learnt.
    """

    def __init__(self, envs: int, gamma: float) -> None:
        """For so many environments."""
        self.gamma, self.return_E = gamma, np.zeros(envs)
        self.ended: Any = np.zeros(0)
        """The returns, discounted by gamma, of the episodes that ended in what it was last given."""
        self._known: dict[int, tuple[float, float, float]] = {}  # graph -> mean, variance, count

    def __call__(self, reward_TE: Any, done_TE: Any, start_TE: Any) -> Any:
        """The rewards scaled, after having learnt from them; `start_TE` says on which graph each was earned."""
        seen = np.empty_like(reward_TE)
        for t in range(len(reward_TE)):
            seen[t] = self.return_E = self.return_E * self.gamma + reward_TE[t]
            self.return_E = self.return_E * ~done_TE[t]
        self.ended = seen[done_TE]
        scaled = np.empty_like(reward_TE)
        for k in np.unique(start_TE).tolist():
            at = start_TE == k
            x = seen[at]
            mean, var, count = self._known.get(k, (0.0, 1.0, 1e-4))
            total, delta = count + len(x), float(x.mean()) - mean
            square = var * count + float(x.var()) * len(x) + delta**2 * count * len(x) / total
            self._known[k] = mean + delta * len(x) / total, square / total, total
            scaled[at] = reward_TE[at] / np.sqrt(square / total + 1e-8)
        return scaled

    def state(self) -> dict[str, Any]:
        """All that it knows."""
        return {"return_E": self.return_E.tolist(), "known": dict(self._known)}

    def restore(self, told: dict[str, Any]) -> None:
        """Knows what `state` said."""
        self.return_E, self._known = np.array(told["return_E"]), dict(told["known"])
