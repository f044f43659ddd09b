"""Episodes: rewards that add up, ends of both kinds, and no way straight back."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cgorl.env.rewrite import EnvError, Episodes, RewriteEnv, Start
from tests.agent.toy import RULES, Prices, chain, envs, start
from tests.env.test_observation import RULES as LIBRARY
from tests.search.test_trace import cost
from tests.texts import small


def env(**options: Any) -> RewriteEnv:
    return envs(1, **options)[0]


def walk(e: RewriteEnv, seed: int, steps: int) -> tuple[list[float], bool, bool]:
    rng, rewards = random.Random(seed), []
    terminated = truncated = False
    for _ in range(steps):
        _, reward, terminated, truncated, _ = e.step(rng.randrange(len(e.matches)) if e.matches else 0)
        rewards.append(reward)
        if terminated or truncated:
            break
    return rewards, terminated, truncated


@pytest.mark.parametrize("seed", range(4))
def test_rewards_add_up_to_what_was_saved(seed: int) -> None:
    for reward, returned in (("dense", "best"), ("best", "best"), ("terminal", "best"), ("terminal", "final")):
        e = env(reward=reward, returned=returned, horizon=12)
        rewards, _, truncated = walk(e, seed, 99)
        first, final, best = e.starts[0].priced.cost_ms, e.at.cost_ms, e.best_ms
        assert truncated and len(rewards) == 12
        saved = first - (final if reward == "dense" or returned == "final" else best)
        assert sum(rewards) == pytest.approx(100 * saved / first)
        if reward == "terminal":
            assert not any(rewards[:-1])


def test_stopping_ends_an_episode_and_pays_what_the_reward_says() -> None:
    e = env(reward="terminal")
    e.perform(e.match("up", next(m for m in e.matches if m.rule.name == "up").nodes))
    _, reward, terminated, truncated, info = e.step(len(e.matches))
    assert (reward, terminated, truncated, info["rule"]) == (0.0, True, False, None)
    assert info["episode"]["length"] == 1 and info["episode"]["cost_ms"] > info["episode"]["best_ms"]


def test_the_steps_left_are_seen() -> None:
    e = env(horizon=3)
    left = [e.observation.left]
    for _ in range(3):
        left.append(e.step(0)[0].left)
    assert left == [3, 2, 1, 0]


def test_the_default_horizon_is_twice_the_way_of_greed_on_each_graph() -> None:
    far = Start.of(small("inception_v3"), LIBRARY, cost())
    assert far.greedy > 10
    e = RewriteEnv([start(), far])
    assert e.horizon == 16 and e.reset(options={"start": 1})[0].left == e.horizon == 2 * far.greedy
    assert RewriteEnv([far], Episodes(stretch=3)).horizon == 3 * far.greedy


def test_the_way_straight_back_is_not_offered() -> None:
    e = env()
    for seed in range(30):
        e.reset(seed=seed)
        rng = random.Random(seed)
        for _ in range(8):
            now = e.at.graph.key
            e.step(rng.randrange(len(e.matches)))
            assert all(e.at.graph.replace(m.edit).key != now for m in e.matches)
            hidden = set(e.at.prices) - set(e.matches)
            assert len(hidden) <= 1 and all(e.at.graph.replace(m.edit).key == now for m in hidden)


def test_a_real_graph_hides_few_matches_and_each_undoes_the_last_rewrite() -> None:
    e = RewriteEnv([Start.of(small("inception_v3"), LIBRARY, cost())])
    rng = random.Random(0)
    for _ in range(25):
        last = e.at
        e.step(rng.randrange(len(e.matches)))
        for m in set(e.at.prices) - set(e.matches):
            back = e.at.graph.replace(m.edit)
            ops = [sorted(n.op for n in g.nodes.values() if not n.constant) for g in (back, last.graph)]
            assert ops[0] == ops[1] and e.at.cost_ms - e.at.gain(m) == pytest.approx(last.cost_ms)


def test_visits_are_counted_by_key() -> None:
    e = env()
    assert e.passed.visits == 1
    neutral = next(m for m in e.matches if m.rule.name == "that-way")
    e.perform(neutral)
    other = next(m for m in e.matches if m.rule.name == "this-way")
    e.perform(other)
    back = next(m for m in e.at.prices if m.rule.name == "this-way" and m.root >= e.starts[0].priced.graph.next_id)
    e.perform(back)
    assert e.passed.visits == 1
    forth = next(m for m in e.at.prices if m.rule.name == "that-way" and m.root >= e.starts[0].priced.graph.next_id + 2)
    assert e.observation.g_Q[-1] == 0
    e.perform(forth)
    assert e.passed.visits == 2 and e.observation.g_Q[-1] == 1  # a revisit is flagged


def test_one_seed_draws_the_same_graphs() -> None:
    where = [start(), start("Sin Cos"), start("Abs Tanh")]
    drawn = []
    for _ in range(2):
        e = RewriteEnv(where)
        e.reset(seed=7)
        drawn.append([e.reset()[1]["start"] for _ in range(20)])
    assert drawn[0] == drawn[1] and set(drawn[0]) == {0, 1, 2}


def test_a_graph_without_a_match_can_only_be_handed_back() -> None:
    e = RewriteEnv([Start.of(chain("Tanh Tanh"), RULES, Prices())])
    assert e.observation.actions == 1
    assert e.step(0)[1:4] == (0.0, True, False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reward": "sparse"}, "env.reward must be one of dense, terminal, best, not 'sparse'"),
        ({"returned": "last"}, "env.returned"),
        ({"horizon": 0}, "env.horizon must be a whole number of at least 1"),
        ({"horizon": 2.5}, "env.horizon"),
        ({"stretch": 0}, "env.stretch must be a number above 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(EnvError, match=says):
        Episodes(**options)


def test_wrong_actions_and_no_graphs_are_named() -> None:
    with pytest.raises(EnvError, match="no action 99"):
        env().step(99)
    with pytest.raises(EnvError, match="no graph"):
        RewriteEnv([])
    with pytest.raises(EnvError, match=r"up does not apply at nodes \[0\]"):
        env().match("up", [0])
