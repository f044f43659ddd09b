"""Curiosity: what it pays is never negative and teaches nobody, and its gradients go where they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cgorl.agent.icm import ICM, Count, CuriosityError, losses
from cgorl.agent.rollout import Rollout, collect
from tests.agent.test_ppo import learner
from tests.agent.toy import RULES, known


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    made = learner()
    return collect(made.policy, made.envs, 12, torch.Generator().manual_seed(0), count_visits=True)


def icm(**options: Any) -> ICM:
    made = ICM(**{"hidden": 8, **options})
    made.begin(RULES, known(), 4)
    return made


def moves(rollout: Rollout) -> list[Any]:
    return [s for s in rollout.steps if s.action < s.seen.actions - 1]


def gradients(module: Any, loss: Any, part: str) -> float:
    module.zero_grad()
    loss.backward(retain_graph=True)
    return sum(float(p.grad.abs().sum()) for n, p in module.named_parameters() if n.startswith(part) and p.grad is not None)


def test_the_bonus_is_paid_for_rewrites_alone_and_needs_no_gradient(rollout: Rollout) -> None:
    made = icm()
    paid = made.bonus(rollout)
    assert isinstance(paid, np.ndarray) and paid.shape == rollout.reward_TE.shape and (paid >= 0).all()
    stops = np.array([[s.action == s.seen.actions - 1 for s in row] for row in rollout.taken])
    assert stops.any() and (paid[stops] == 0).all() and (paid[~stops] > 0).all()
    assert np.allclose(2 * paid, (lambda m: m.bonus(rollout))(icm(eta=0.2)))


def test_the_inverse_loss_reaches_the_encoder_and_the_forward_target_is_not_taught(rollout: Rollout) -> None:
    module = icm().module
    i = module(moves(rollout))
    inverse, forward = losses(i)
    assert gradients(module, inverse, "encoder") > 0 and gradients(module, inverse, "tell") > 0
    assert gradients(module, inverse, "foresee") == 0
    assert gradients(module, forward, "foresee") > 0 and gradients(module, forward, "tell") == 0
    i.change_XH.retain_grad()
    module.zero_grad()
    forward.backward(retain_graph=True)
    assert i.change_XH.grad is None or not i.change_XH.grad.abs().any()
    assert forward.item() == pytest.approx(0.5 * float((i.foreseen_XH - i.change_XH).detach().square().sum(1).mean()))


def test_the_change_is_of_touched_nodes(rollout: Rollout) -> None:
    steps = moves(rollout)
    for s in steps:
        before, after = s.seen.rows(s.touched[0]), s.after.rows(s.touched[1])
        assert len(before) and len(after)
        assert not np.array_equal(s.seen.op_N[before], s.after.op_N[after])


def test_it_learns_to_foresee_and_to_tell_rewrites_apart(rollout: Rollout) -> None:
    made = icm(learning_rate=0.01)
    first = made.learn(rollout)
    for _ in range(120):
        last = made.learn(rollout)
    assert last["curiosity/forward_loss"] < 0.5 * first["curiosity/forward_loss"]
    assert last["curiosity/inverse_loss"] < 0.5 * first["curiosity/inverse_loss"]
    assert last["curiosity/inverse_chance"] < 0.5 < last["curiosity/inverse_accuracy"] <= last["curiosity/inverse_ceiling"] + 1e-6
    assert made.bonus(rollout).mean() < icm(learning_rate=0.01).bonus(rollout).mean()


def test_beta_is_the_share_of_the_forward_loss(rollout: Rollout) -> None:
    only_inverse, only_forward = icm(beta=0), icm(beta=1)
    before = [{k: v.clone() for k, v in m.module.state_dict().items()} for m in (only_inverse, only_forward)]
    only_inverse.learn(rollout)
    only_forward.learn(rollout)
    moved = [
        {k.split(".")[0] for k, v in m.module.state_dict().items() if not torch.equal(v, b[k])}
        for m, b in zip((only_inverse, only_forward), before, strict=True)
    ]
    assert "foresee" not in moved[0] and "tell_match" in moved[0] and "tell_match" not in moved[1] and "foresee" in moved[1]


def test_its_random_numbers_are_its_own() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    a, b = icm(), icm()
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(x, y) for x, y in zip(a.module.parameters(), b.module.parameters(), strict=True))


def test_counting_pays_less_for_each_visit(rollout: Rollout) -> None:
    paid = Count(eta=2.0).bonus(rollout)
    for t, row in enumerate(rollout.taken):
        for e, s in enumerate(row):
            assert paid[t, e] == (2.0 / s.visits**0.5 if s.visits else 0.0)
            assert (s.visits == 0) == (s.action == s.seen.actions - 1)
    assert 0 <= Count().learn(rollout)["curiosity/revisits"] < 1


@pytest.mark.parametrize("wrong", [{"beta": 1.5}, {"beta": -1}, {"eta": -0.1}, {"eta": "x"}])
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(CuriosityError, match=f"icm.{next(iter(wrong))}"):
        ICM(**wrong)
    with pytest.raises(CuriosityError, match=r"icm\.eta"):
        Count(eta=-1)
