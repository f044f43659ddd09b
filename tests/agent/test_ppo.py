"""PPO: advantages by hand, curiosity through two hooks alone, a training that goes on where it stopped, and one seed one run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cgorl.agent import checkpoint
from cgorl.agent.best import Best
from cgorl.agent.checkpoint import AgentError
from cgorl.agent.encoder import Encoder
from cgorl.agent.icm import ICM, Count
from cgorl.agent.policy import fresh_policy
from cgorl.agent.ppo import PPO, Learner, PPOError
from cgorl.agent.rollout import ReturnScale, advantages, collect
from cgorl.env.rewrite import Episodes, RewriteEnv
from tests.agent.toy import RULES, known, start

ROOT = Path(__file__).resolve().parents[2]
SMALL = PPO(total_timesteps=200, num_envs=3, num_steps=8, num_minibatches=2)


def learner(curiosity: Any = None, seed: int = 1, best: Best | None = None, args: PPO = SMALL, **options: Any) -> Learner:
    if curiosity is not None:
        curiosity.begin(RULES, known(), seed)
    where = [start(), start("Abs Sin Cos Abs")]
    envs = [RewriteEnv(where, Episodes(**{"horizon": 6, **options}), best) for _ in range(args.num_envs)]
    return Learner(args, fresh_policy(RULES, seed, lambda: Encoder("gcn", 8, 1)), envs, curiosity, seed)


def test_advantages_by_hand() -> None:
    """One environment: a step, a cut episode (its value 10 bootstraps), a step, an end (nothing after counts), a step."""
    r, v, n = ([[float(x)] for x in xs] for xs in ([1, 2, 3, 4, 5], [0.5, 1.5, 2.5, 3.5, 4.5], [1.5, 10.0, 3.5, 99.0, 6.0]))
    terminated, done = (np.array([[bool(x)] for x in xs]) for xs in ([0, 0, 0, 1, 0], [0, 1, 0, 1, 0]))
    g, lam = 0.9, 0.5
    a4 = 5 + g * 6.0 - 4.5
    a3 = 4 - 3.5
    a2 = 3 + g * 3.5 - 2.5 + g * lam * a3
    a1 = 2 + g * 10.0 - 1.5
    a0 = 1 + g * 1.5 - 0.5 + g * lam * a1
    found = advantages(np.array(r), np.array(v), np.array(n), terminated, done, g, lam)
    assert found[:, 0].tolist() == pytest.approx([a0, a1, a2, a3, a4])


def test_undiscounted_advantages_of_a_perfect_value_are_zero() -> None:
    reward = np.array([[1.0], [2.0], [4.0]])
    value, after = np.array([[7.0], [6.0], [4.0]]), np.array([[6.0], [4.0], [0.0]])
    done = np.array([[False], [False], [True]])
    assert advantages(reward, value, after, done, done, 1.0, 0.95).tolist() == [[0.0], [0.0], [0.0]]


def test_a_cut_episode_is_valued_by_what_was_really_seen_last() -> None:
    made = learner()
    r = collect(made.policy, made.envs, 8, torch.Generator().manual_seed(0))
    cut = r.done_TE & ~r.terminated_TE
    assert cut.any() and (r.next_TE[cut] == 0).all()  # nothing can be earned without a step left
    for t, e in zip(*np.nonzero(cut), strict=True):
        assert r.taken[t][e].after.left == 0 and (t + 1 == 8 or r.taken[t + 1][e].seen.left == 6)
    on = ~r.done_TE[:-1]
    assert (r.next_TE[:-1][on] == r.value_TE[1:][on]).all()
    assert all(r.taken[t][e].after is r.taken[t + 1][e].seen for t, e in zip(*np.nonzero(on), strict=True))


def test_returns_are_scaled_by_their_deviation() -> None:
    rng, scale = np.random.default_rng(0), ReturnScale(4, 1.0)
    returns = []
    start = np.tile([0, 0, 0, 1], (10, 1))
    for _ in range(60):
        reward, done = 50 * rng.standard_normal((10, 4)), np.zeros((10, 4), bool)
        done[-1] = True
        reward[:, 3] /= 100  # on a graph of its own, where there is less to earn
        returns.append(np.cumsum(scale(reward, done, start), 0))
    assert 0.85 < np.std(np.array(returns)[10:, :, :3]) < 1.15 and 0.8 < np.std(np.array(returns)[10:, :, 3]) < 1.2
    other = ReturnScale(4, 1.0)
    other.restore(scale.state())
    assert (other(reward, done, start) == scale(reward, done, start)).all()


def parameters(made: Learner) -> list[Any]:
    return [p.detach().clone() for name, p in made.policy.named_parameters() if not name.startswith("curious")]


def same(a: Learner, b: Learner) -> bool:
    return all(torch.equal(x, y) for x, y in zip(parameters(a), parameters(b), strict=True))


def test_without_curiosity_it_is_plain_ppo_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curiosity that pays nothing, with all its learning, leaves the policy as none does: it has but its two hooks."""
    made = [learner(c) for c in (None, ICM(eta=0), Count(eta=0))]
    for _ in range(4):
        for one in made:
            one.update()
    assert same(made[0], made[1]) and same(made[0], made[2])
    paid = learner(ICM(eta=1.0))
    for _ in range(4):
        paid.update()
    assert not same(made[0], paid)


@pytest.mark.parametrize("curiosity", [None, ICM, Count])
@pytest.mark.parametrize("reward", ["dense", "terminal"])
def test_a_resumed_training_equals_one_that_was_not_interrupted(tmp_path: Path, curiosity: Any, reward: str) -> None:
    def made(best: Best) -> Learner:
        return learner(None if curiosity is None else curiosity(), best=best, reward=reward)

    best = [Best() for _ in range(3)]
    whole, half = made(best[0]), made(best[1])
    for _ in range(6):
        whole_metrics = whole.update()
    for _ in range(3):
        half.update()
    checkpoint.save(tmp_path / "c.pt", half, best[1], RULES, {"seed": 1})
    again = made(best[2])
    checkpoint.restore(tmp_path / "c.pt", again, best[2], RULES)
    for _ in range(3):
        metrics = again.update()
    assert same(whole, again) and (whole.updates, whole.global_step) == (again.updates, again.global_step)
    told = {k: v for k, v in metrics.items() if k.startswith(("losses/", "charts/ep", "curiosity/", "episodes", "rules"))}
    assert repr({k: whole_metrics[k] for k in told}) == repr(told)
    assert {k: (f.cost_ms, len(f.path)) for k, f in best[0].found.items()} == {
        k: (f.cost_ms, len(f.path)) for k, f in best[2].found.items()
    }


def test_the_best_is_known_again_however_far_the_way_to_it_was() -> None:
    env, best, again = RewriteEnv([start()], Episodes(horizon=40)), Best(), Best()
    for _ in range(20):  # to and fro: longer than an episode is by default
        env.perform(next(m for m in env.matches if m.rule.name in ("this-way", "that-way")))
    env.at.cost_ms = 1.0
    best(env)
    assert len(best.found[0].path) == 20
    again.restore(best.state(), env.starts)
    assert len(again.found[0].path) == 20 and again.found[0].graph.key == env.at.graph.key


def test_broken_checkpoints_are_named(tmp_path: Path) -> None:
    made, best = learner(), Best()
    path = tmp_path / "c.pt"
    checkpoint.save(path, made, best, RULES, {})
    whole = torch.load(path, weights_only=True)
    with pytest.raises(AgentError, match="there is no checkpoint"):
        checkpoint.load(tmp_path / "none.pt")
    for text in ("hello", ""):
        (tmp_path / "text.pt").write_text(text)
        with pytest.raises(AgentError, match=r"is no checkpoint of an agent, or not whole: scripts/train.py writes them$"):
            checkpoint.load(tmp_path / "text.pt")
    for field in ("rules", "learner", "best"):
        torch.save({k: v for k, v in whole.items() if k != field}, path)
        with pytest.raises(AgentError, match=f"no field '{field}'"):
            checkpoint.load(path)
    torch.save({**whole, "learner": {k: v for k, v in whole["learner"].items() if k != "generator"}}, path)
    with pytest.raises(AgentError, match="no field 'generator'"):
        checkpoint.restore(path, made, best, RULES)
    torch.save({**whole, "rules_digest": "0" * 16}, path)
    with pytest.raises(AgentError, match="other rules"):
        checkpoint.restore(path, made, best, RULES)
    torch.save(whole, path)
    with pytest.raises(AgentError, match="another curiosity"):
        checkpoint.restore(path, learner(ICM()), best, RULES)
    torch.save({**whole, "best": {**whole["best"], "paths": {7: []}}}, path)  # of a training on more models
    with pytest.raises(AgentError, match="does not fit this training"):
        checkpoint.restore(path, made, best, RULES)
    torch.save({**whole, "encoder": {"kind": "gcn", "size": 8}}, path)
    with pytest.raises(AgentError, match="cannot be read"):
        checkpoint.policy(path, RULES)
    with pytest.raises(AgentError, match="cannot write"):
        checkpoint.save(tmp_path / "no" / "c.pt", made, best, RULES, {})


SCRIPT = """
from cgorl.agent.icm import ICM
from tests.agent.test_ppo import learner, parameters
made = learner(ICM())
told = [made.update() for _ in range(3)]
print(sorted((k, v) for k, v in told[-1].items() if k[:4] in ("loss", "curi")), [float(p.sum()) for p in parameters(made)])
"""


@pytest.mark.slow
def test_one_seed_is_one_run_in_two_processes() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=ROOT, env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and len(said[0]) > 500


def test_what_an_update_tells() -> None:
    told = learner(ICM()).update()
    for name in ("policy_loss", "value_loss", "entropy", "approx_kl", "old_approx_kl", "clipfrac", "explained_variance", "grad_norm"):
        assert isinstance(told[f"losses/{name}"], float)
    assert 0.5 < told["losses/entropy"] <= 1 and told["charts/SPS"] > 0
    assert {"time/env", "time/act", "time/update", "time/curiosity", "charts/intrinsic_reward", "curiosity/inverse_accuracy"} <= told.keys()


@pytest.mark.parametrize(
    "wrong", [{"num_envs": 0}, {"total_timesteps": 1.5}, {"learning_rate": -1}, {"gamma": "x"}, {"target_kl": True}, {"anneal_lr": "abc"}]
)
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(PPOError, match=f"ppo.{next(iter(wrong))}"):
        PPO(**wrong)


def test_returns_of_episodes_that_ended_are_told_over_several_rollouts() -> None:
    scale = ReturnScale(2, 0.5)
    start, reward = np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])
    scale(reward, np.array([[False, True], [False, False]]), start)
    assert scale.ended.tolist() == [2.0]
    scale(reward, np.array([[True, False], [False, False]]), start)
    assert scale.ended.tolist() == [(0.5 * 1 + 3) * 0.5 + 1]  # of what the rollout before began
