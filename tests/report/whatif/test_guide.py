"""A policy asked along an optimization: what it says there is what it says in a search and in training."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import cgorl
from cgorl import config, training
from cgorl.agent import checkpoint
from cgorl.agent.batch import batch
from cgorl.agent.rollout import Taken
from cgorl.env.rewrite import Episodes, RewriteEnv, Start
from cgorl.pipeline import Outcome
from cgorl.report.film import Film
from cgorl.report.whatif.branches import POLICY, TRACE, Branches
from cgorl.report.whatif.candidates import candidates
from cgorl.report.whatif.guide import Guide
from cgorl.search.agent import GENERAL
from cgorl.tracking import Tracker

ZOO = {"image": 32, "width": 0.125, "depth": [1, 1, 1, 1]}


@cache
def outcome() -> Outcome:
    return cgorl.optimize("repvgg_a0", zoo=ZOO, prove=False, search="agent", seconds=60, evaluations=3000)


def branches(guide: Guide | None = None) -> Branches:
    assert outcome().cost is not None
    return Branches(Film.of(outcome()), outcome().cost, lambda: guide or Guide(GENERAL, outcome().rules))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short training, with curiosity."""
    folder = tmp_path_factory.mktemp("runs")
    small = [
        "model=repvgg_a0",
        *(f"zoo.{k}={v}" for k, v in ZOO.items()),
        "ppo.total_timesteps=32",
        "ppo.num_envs=2",
        "ppo.num_steps=16",
        "tracking=jsonl",
    ]
    tracker = Tracker(folder, "train", "repvgg")
    training.train(config.load_config("train", small), tracker=tracker)
    return tracker.folder


def test_an_agents_first_walk_is_foretold_step_by_step() -> None:
    """The likeliest action each time is what search.mode=greedy does."""
    walked = cgorl.optimize("repvgg_a0", zoo=ZOO, prove=False, search="agent", **{"search.mode": "greedy"}, seconds=60)
    b = branches()
    rows = candidates(b, TRACE, 0)["rows"]
    n = b.off(TRACE, 0, rows[0]["rule"], rows[0]["nodes"], POLICY)
    b.go_on(n, 500, 600)
    assert min(b.costs_ms(n)) == pytest.approx(walked.cost_ms, rel=1e-9)
    steps = b.all[n].film.steps
    assert [s.match.rule.name for s in steps[: len(walked.trace)]] == [s.match.rule.name for s in walked.trace]


def test_chances_are_ordered_and_sum_to_one_with_stopping() -> None:
    b = branches()
    found = candidates(b, TRACE, 1)
    chances = [r["chance"] for r in found["rows"][:8]]
    assert chances == sorted(chances, reverse=True) and found["by"] == "policy"
    view = b.view(TRACE, 1)
    guide = b.guide
    assert guide is not None
    thought = guide.thinks(view)
    assert sum(thought.chances) + thought.stop == pytest.approx(1, abs=1e-5)
    assert sum(r["taken"] for r in found["rows"]) == 1
    assert all(r["bonus"] is None for r in found["rows"])  # the policy that comes along has no curiosity module


def test_the_bonus_is_that_of_the_training(trained: Path) -> None:
    rules = outcome().rules
    guide = Guide(trained / "checkpoint.pt", rules)
    assert guide.curious and not Guide(trained / "policy.pt", rules).curious
    b = branches(guide)
    k = 2
    rows = candidates(b, TRACE, k)["rows"]
    assert all(r["bonus"] > 0 for r in rows if r["chance"] is not None)
    curiosity = checkpoint.curiosity(trained / "checkpoint.pt", rules)
    assert curiosity is not None and outcome().cost is not None
    horizon = b.walk().horizon
    env = RewriteEnv([Start.of(outcome().start, rules, outcome().cost, 0)], Episodes(horizon=horizon))
    for step in outcome().trace[:k]:
        env.perform(env.match(step.match.rule.name, step.match.nodes))
    row = rows[1]
    match, seen = env.match(row["rule"], row["nodes"]), env.observation
    policy, _ = checkpoint.policy(trained / "checkpoint.pt", rules)
    judged = policy(batch([seen]))
    assert float(judged.logp_A[env.matches.index(match)].detach().exp()) == pytest.approx(row["chance"], rel=1e-4)
    action = env.matches.index(match)
    env.perform(match)
    paid = curiosity.paid([Taken(seen, action, env.observation, env.touched, 0)])
    assert float(paid[0]) == pytest.approx(row["bonus"], rel=1e-4)


def test_it_goes_on_until_it_would_stop_or_has_no_steps_left() -> None:
    b = branches()
    row = candidates(b, TRACE, 0)["rows"][2]
    n = b.off(TRACE, 0, row["rule"], row["nodes"], POLICY)
    b.go_on(n, 1000, 600)
    assert b.all[n].ended == "the policy stops" or b.all[n].ended.endswith("as many as the policy has")
    assert len(b.all[n].film.steps) <= b.walk().horizon
