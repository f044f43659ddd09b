"""PPO: proximal policy optimization, whole (Schulman et al. 2017), with the details, names and metrics of CleanRL's ppo.py.

What differs: an observation is a graph with its matches, so that a batch is graphs side by side; the entropy is taken over
the logarithm of the number of actions; returns are undiscounted by default; extrinsic and intrinsic returns have a value of
their own and are each scaled by their running deviation. The stored observation of a step, with its matches, is the one
that its update sees.

Shape suffixes: T steps, E environments, B = T * E.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from cgorl.agent.batch import batch
from cgorl.agent.icm import Curiosity
from cgorl.agent.policy import Policy, entropy
from cgorl.agent.rollout import ReturnScale, advantages, collect
from cgorl.env.rewrite import RewriteEnv


class PPOError(ValueError):
    """A PPO that cannot be; the message names the option."""


@dataclass(frozen=True, slots=True)
class PPO:
    """The options, as CleanRL names them."""

    total_timesteps: int = 50_000
    num_envs: int = 8
    num_steps: int = 32
    learning_rate: float = 1e-3
    anneal_lr: bool = True
    gamma: float = 1.0
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 2
    norm_adv: bool = True
    clip_coef: float = 0.2
    clip_vloss: bool = True
    ent_coef: float = 0.02
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float | None = None

    def __post_init__(self) -> None:
        """Raises PPOError."""
        for name in ("total_timesteps", "num_envs", "num_steps", "num_minibatches", "update_epochs"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise PPOError(f"ppo.{name} must be a whole number of at least 1, not {value!r}")
        if not isinstance(self.anneal_lr, bool):
            raise PPOError(f"ppo.anneal_lr must be true or false, not {self.anneal_lr!r}")
        for name in ("learning_rate", "gamma", "gae_lambda", "clip_coef", "ent_coef", "vf_coef", "max_grad_norm", "target_kl"):
            value = getattr(self, name)
            if name == "target_kl" and value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
                raise PPOError(f"ppo.{name} must be a number of at least 0, not {value!r}")

    @property
    def num_updates(self) -> int:
        """How many updates the time steps come to."""
        return max(1, -(-self.total_timesteps // (self.num_envs * self.num_steps)))


class Learner:
    """A policy that learns from its environments, update by update."""

    def __init__(self, args: PPO, policy: Policy, envs: Sequence[RewriteEnv], curiosity: Curiosity | None, seed: int) -> None:
        """Begins an episode in each environment; `curiosity` must be ready."""
        torch.set_num_threads(1)  # the tensors are small: a second thread waits more than it works, and much more under load
        self.args, self.policy, self.envs, self.curiosity = args, policy, envs, curiosity
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=args.learning_rate, eps=1e-5)
        self._own = [p for name, p in policy.named_parameters() if not name.startswith("curious.")]
        self.generator = torch.Generator().manual_seed(seed)
        self.shuffle = np.random.default_rng(seed)
        self.scale, self.curious_scale = (ReturnScale(len(envs), args.gamma) for _ in range(2))
        self.updates = self.global_step = 0
        for k, env in enumerate(envs):
            env.reset(seed=seed * 1000 + k)

    def update(self, enough: Callable[[], bool] | None = None) -> dict[str, Any]:
        """A rollout and an update on it; returns metrics, and under `episodes` and `rules` what was done."""
        args, begun = self.args, time.perf_counter()
        if args.anneal_lr:
            fraction = max(0.0, 1 - self.updates / args.num_updates)
            self.optimizer.param_groups[0]["lr"] = fraction * args.learning_rate
        counts = self.curiosity is not None and self.curiosity.counts
        r = collect(self.policy, self.envs, args.num_steps, self.generator, counts, enough)
        metrics: dict[str, Any] = {}

        ends = (r.terminated_TE, r.done_TE, args.gamma, args.gae_lambda)
        reward_TE = self.scale(r.reward_TE, r.done_TE, r.start_TE)
        adv_TE = advantages(reward_TE, r.value_TE, r.next_TE, *ends)
        returns_B = torch.from_numpy((adv_TE + r.value_TE).reshape(-1)).float()
        curious_returns_B = torch.zeros_like(returns_B)
        if self.curiosity is not None:  # the first hook: what it pays
            bonus_TE = self.curiosity.bonus(r)
            paid_TE = self.curious_scale(bonus_TE, r.done_TE, r.start_TE) if bonus_TE.any() else bonus_TE
            paid_TE = paid_TE * self.curiosity.eta  # rewards have deviation 1 by now, and a bonus counts eta as much
            curious_TE = advantages(paid_TE, r.curious_TE, r.curious_next_TE, *ends)
            curious_returns_B = torch.from_numpy((curious_TE + r.curious_TE).reshape(-1)).float()
            adv_TE = adv_TE + curious_TE
            metrics["charts/intrinsic_reward"] = float(bonus_TE.mean())
            if r.episodes and bonus_TE.any():
                metrics["charts/episodic_intrinsic_return"] = float(self.curious_scale.ended.mean())

        steps = r.steps
        adv_B, logp_B = (torch.from_numpy(x.reshape(-1)).float() for x in (adv_TE, r.logp_TE))
        value_B = torch.from_numpy(r.value_TE.reshape(-1)).float()
        action_B = torch.tensor([s.action for s in steps])
        told: dict[str, list[float]] = {}
        clock = time.perf_counter()
        for _ in range(args.update_epochs):
            kls = []
            for part in np.array_split(self.shuffle.permutation(len(steps)), min(args.num_minibatches, len(steps))):
                b = batch([steps[k].seen for k in part])
                mb = torch.from_numpy(part)
                j = self.policy(b)
                logratio = j.logp_A[b.flat(action_B[mb])] - logp_B[mb]
                ratio = logratio.exp()
                mb_adv = adv_B[mb]
                if args.norm_adv and len(part) > 1:
                    mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)
                pg_loss = torch.max(-mb_adv * ratio, -mb_adv * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)).mean()
                v_loss = (j.value_B - returns_B[mb]).square()
                if args.clip_vloss:
                    clipped = value_B[mb] + (j.value_B - value_B[mb]).clamp(-args.clip_coef, args.clip_coef)
                    v_loss = torch.max(v_loss, (clipped - returns_B[mb]).square())
                v_loss = 0.5 * v_loss.mean()
                entropy_loss = entropy(j.logp_A, b).mean()
                loss = pg_loss - args.ent_coef * entropy_loss + args.vf_coef * v_loss
                if self.curiosity is not None:
                    loss = loss + args.vf_coef * 0.5 * (j.curious_B - curious_returns_B[mb]).square().mean()
                self.optimizer.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(self._own, args.max_grad_norm)
                if self.curiosity is not None:  # by itself: even gradients of 0 would round the norm of the others another way
                    nn.utils.clip_grad_norm_(self.policy.curious.parameters(), args.max_grad_norm)
                self.optimizer.step()
                with torch.no_grad():
                    kls.append(float(((ratio - 1) - logratio).mean()))
                    clipfrac = float(((ratio - 1).abs() > args.clip_coef).float().mean())
                for name, value in (
                    *(("policy_loss", pg_loss), ("value_loss", v_loss), ("entropy", entropy_loss), ("grad_norm", norm)),
                    *(("old_approx_kl", (-logratio).mean()), ("approx_kl", kls[-1]), ("clipfrac", clipfrac)),
                ):
                    told.setdefault(f"losses/{name}", []).append(float(torch.as_tensor(value).detach()))
            if args.target_kl is not None and np.mean(kls) > args.target_kl:
                break
        learnt = time.perf_counter()
        if self.curiosity is not None:  # the second hook: its turn to learn
            metrics.update(self.curiosity.learn(r))

        self.updates, self.global_step = self.updates + 1, self.global_step + len(steps)
        spread, ended = float(returns_B.var(correction=0)), time.perf_counter()
        return {
            **metrics,
            **{k: float(np.mean(v)) for k, v in told.items()},
            "losses/explained_variance": 1 - float((returns_B - value_B).var(correction=0)) / spread if spread else float("nan"),
            "charts/learning_rate": self.optimizer.param_groups[0]["lr"],
            "charts/SPS": len(steps) / (ended - begun),
            **{f"charts/episodic_{k}": float(np.mean([e[k] for e in r.episodes])) for k in ("return", "length") if r.episodes},
            "time/env": r.env_seconds,
            "time/act": r.act_seconds,
            "time/update": learnt - clock,
            "time/curiosity": (clock - begun - r.env_seconds - r.act_seconds) + (ended - learnt),
            "episodes": r.episodes,
            "rules": r.rules,
        }

    def state(self) -> dict[str, Any]:
        """All that the next update rests on, episodes in progress as the rewrites that led to where they are."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "shuffle": self.shuffle.bit_generator.state,
            "scale": self.scale.state(),
            "curious_scale": self.curious_scale.state(),
            "curiosity": None if self.curiosity is None else self.curiosity.state(),
            "updates": self.updates,
            "global_step": self.global_step,
            "envs": [
                {
                    **{"start": e.start, "random": e.np_random.bit_generator.state, "earned": e.earned},
                    "path": [(m.match.rule.name, m.match.nodes) for m in e.path],
                }
                for e in self.envs
            ],
        }

    def restore(self, told: Mapping[str, Any]) -> None:
        """Goes on as if it had never stopped. Raises KeyError where something is missing, PPOError or EnvError where it does not fit."""
        if len(told["envs"]) != len(self.envs) or (told["curiosity"] is None) != (self.curiosity is None):
            raise PPOError("the checkpoint was made with other environments or another curiosity")
        self.policy.load_state_dict(told["policy"])
        self.optimizer.load_state_dict(told["optimizer"])
        self.generator.set_state(told["generator"])
        self.shuffle.bit_generator.state = told["shuffle"]
        self.scale.restore(told["scale"])
        self.curious_scale.restore(told["curious_scale"])
        if self.curiosity is not None:
            self.curiosity.restore(told["curiosity"])
        self.updates, self.global_step = told["updates"], told["global_step"]
        for env, was in zip(self.envs, told["envs"], strict=True):
            env.np_random.bit_generator.state = was["random"]
            env.begin(was["start"])
            for rule, nodes in was["path"]:
                env.perform(env.match(rule, nodes))
            env.earned = was["earned"]
