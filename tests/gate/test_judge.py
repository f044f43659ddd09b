"""The judge on synthetic timings: a slower candidate can't win, noise can't win, a real gain does."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from cgorl.gate import ORIGINAL, SIMPLIFIED, Verdict, sessions, timing
from cgorl.gate.candidates import prefixes
from cgorl.gate.judge import judge
from cgorl.gate.sessions import Sessions
from cgorl.gate.timing import LEAST, Rounds, Runner, affordable, ratio


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "LEAST", 60)
    monkeypatch.setattr(sessions, "ROUNDS", 30)


def clock(ms: float, rng: np.random.Generator, noise: float = 0.05) -> Runner:
    """A model that takes `ms`, more or less, and now and then much longer."""

    def run() -> tuple[float, float]:
        took = ms * (1 + noise * rng.standard_normal() + (rng.random() < 0.1) * 2)
        return took, took

    return run


def verdict(seed: int, **ms: float) -> Verdict:
    rng = np.random.default_rng(seed)
    return judge({name: clock(t, rng) for name, t in ms.items()}, 0.0, seed)


def pressed(run: Runner, at: int) -> Runner:
    """`run`, with Ctrl-C in its run number `at`."""
    count = [0]

    def runs() -> tuple[float, float]:
        count[0] += 1
        if count[0] == at:
            raise KeyboardInterrupt
        return run()

    return runs


def interrupted(at: int, **ms: float) -> Verdict:
    rng = np.random.default_rng(0)
    made = {name: clock(t, rng, 0.02) for name, t in ms.items()}
    return judge({**made, ORIGINAL: pressed(made[ORIGINAL], at)}, 0.0)


# ---------------------------------------------------------------- who wins
def test_a_real_gain_wins() -> None:
    found = verdict(0, original=10.0, simplified=10.0, result=8.0, prefix=9.0)
    assert (found.kept, found.faster) == ("result", True)
    won = found.timing("result")
    assert won is not None and won.ratio.low > 1.1 and won.quartiles_ms[0] < won.cpu_ms < won.quartiles_ms[1]


def test_the_best_measured_prefix_wins_over_the_whole() -> None:
    assert verdict(1, original=10.0, simplified=10.0, result=9.5, prefix=8.0).kept == "prefix"


@pytest.mark.parametrize("seed", range(8))
def test_a_slower_candidate_never_wins(seed: int) -> None:
    found = verdict(seed, original=10.0, simplified=10.9, result=10.3, prefix=10.2)
    assert (found.kept, found.faster) == (ORIGINAL, False)


def test_noise_hardly_ever_wins() -> None:
    """Of 30 jobs with four equal candidates each, next to none calls one faster; the simplified graph may be kept as no slower."""
    wins = [verdict(seed, original=10.0, a=10.0, b=10.0, c=10.0, d=10.0).faster for seed in range(30)]
    assert sum(wins) <= 1


def test_the_simplified_graph_is_kept_if_it_is_not_slower() -> None:
    rng = np.random.default_rng(0)
    quiet: Callable[[float], Runner] = lambda ms: clock(ms, rng, 0.001)  # noqa: E731
    assert judge({ORIGINAL: quiet(10.0), SIMPLIFIED: quiet(10.0), "result": quiet(10.5)}, 0.0).kept == SIMPLIFIED
    assert judge({ORIGINAL: quiet(10.0), SIMPLIFIED: quiet(10.4), "result": quiet(10.5)}, 0.0).kept == ORIGINAL


def test_what_looked_fast_by_luck_is_found_out_when_it_is_run_again() -> None:
    rng = np.random.default_rng(0)
    first, again = {ORIGINAL: clock(10.0, rng), "lucky": clock(8.0, rng)}, {ORIGINAL: clock(10.0, rng), "lucky": clock(11.0, rng)}
    found = judge(first, 0.0, again=again.__getitem__)
    won = found.timing("lucky")
    assert found.kept == ORIGINAL and not found.faster and won is not None and won.ratio.high < 1


def test_those_that_have_fallen_behind_are_run_no_more() -> None:
    """The time goes to the others."""
    counts = dict.fromkeys(("original", "slow", "fast"), 0)
    rng = np.random.default_rng(0)

    def counted(name: str, ms: float) -> Runner:
        inner = clock(ms, rng)

        def run() -> tuple[float, float]:
            counts[name] += 1
            return inner()

        return run

    judge({n: counted(n, ms) for n, ms in (("original", 10.0), ("slow", 12.0), ("fast", 8.0))}, 0.05)
    assert counts["slow"] < counts["fast"] and counts["original"] >= counts["fast"]


# ---------------------------------------------------------------- statistics
def test_a_slow_phase_meets_both_sides() -> None:
    """The machine is half as fast in the second half of the rounds, for both: the ratio stands."""
    rng = np.random.default_rng(0)
    phase = np.repeat([1.0, 2.0], 50)
    found = ratio(10 * phase, 8 * phase * (1 + 0.01 * rng.standard_normal(100)), rng)
    assert found.low == pytest.approx(1.25, rel=0.02)
    assert found.high == pytest.approx(1.25, rel=0.02)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Of 200 intervals from rounds with a heavy tail, at most one in thirty misses the truth: 99 % are promised."""
    rng = np.random.default_rng(0)
    truth = 1.25
    missed = 0
    for _ in range(200):
        noise = np.exp(0.05 * rng.standard_t(3, 40))
        found = ratio(10.0 * noise, np.full(40, 8.0), rng)
        missed += not found.low <= truth <= found.high
    assert missed <= 6


def test_no_interval_is_made_of_too_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "LEAST", LEAST)
    rng = np.random.default_rng(0)
    rounds = Rounds({ORIGINAL: pressed(clock(1.0, rng), LEAST + 1), "other": clock(1.0, rng)}, rng)
    rounds.run(0.0)
    assert rounds.interrupted and rounds.count == LEAST - 1 and not rounds.timings(ORIGINAL)
    assert [len(t) for t in rounds.cpu_ms.values()] == [LEAST - 1] * 2


# ---------------------------------------------------------------- Ctrl-C
def test_an_interrupt_early_on_hands_back_the_original_and_says_so() -> None:
    found = interrupted(5, original=10.0, result=5.0)
    assert found.kept == ORIGINAL and not found.timings and "interrupted after 3 rounds, too few" in found.why


@pytest.mark.parametrize(("result", "kept"), [(8.0, "result"), (9.95, ORIGINAL), (10.6, ORIGINAL)])
def test_an_interrupt_before_there_are_new_sessions_keeps_what_is_faster_by_more_than_luck(
    result: float, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first leg goes on to MOST rounds; the interrupt comes while the best is run again, or in the next leg."""
    monkeypatch.setattr(timing, "MOST", 60)
    rng = np.random.default_rng(0)
    at = 1 + 60 + 1 + 3
    found = judge({ORIGINAL: pressed(clock(10.0, rng, 0.005), at), "result": clock(result, rng, 0.005)}, 1000.0)
    assert found.kept == kept and ("interrupted after 60 rounds" in found.why) == (result < 10)


def test_an_interrupt_once_there_are_sessions_enough_keeps_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 1000)
    monkeypatch.setattr(timing, "MOST", 60)
    rng = np.random.default_rng(0)
    at = 1 + 60 + 60 * sessions.FEWEST + 5
    found = judge({ORIGINAL: pressed(clock(10.0, rng), at), "result": clock(8.0, rng)}, 1000.0)
    assert (found.kept, found.faster) == ("result", True) and f"interrupted after {sessions.FEWEST} sessions" in found.why


# ---------------------------------------------------------------- sessions
def lucky(ms: float, rng: np.random.Generator, luck: float = 0.02) -> Runner:
    """A session whose place in memory makes it faster or slower for as long as it lives."""
    return clock(ms * (1 + luck * rng.standard_normal()), rng, 0.002)


def in_sessions(seed: int, **ms: float) -> Verdict:
    rng = np.random.default_rng(seed)
    return judge({n: lucky(t, rng) for n, t in ms.items()}, 0.0, seed, again=lambda name: lucky(ms[name], rng))


def test_the_luck_of_a_session_hardly_ever_wins() -> None:
    """Within one session each, two in three candidates would be called faster or slower beyond noise."""
    found = [in_sessions(seed, original=10.0, a=10.0, b=10.0) for seed in range(40)]
    assert sum(v.faster for v in found) <= 1
    looked = [v.timings for v in found]
    assert sum(any(t.sessions == 1 and t.ratio.low > 1 for t in ts) or any(t.sessions > 1 for t in ts) for ts in looked) > 20


def test_a_real_gain_wins_whatever_the_luck() -> None:
    won = [in_sessions(seed, original=10.0, result=8.0) for seed in range(10)]
    assert all(v.faster for v in won)
    assert all((t := v.timing("result")) is not None and t.sessions == sessions.FEWEST and t.ratio.low < 1.25 < t.ratio.high for v in won)


def test_models_are_loaded_in_one_order_and_then_in_the_other() -> None:
    rng = np.random.default_rng(0)
    loaded: list[str] = []

    def load(name: str) -> Runner:
        loaded.append(name)
        return clock(1.0, rng)

    blocks = Sessions({n: partial(load, n) for n in "abc"}, rng)
    blocks.run(0.0)
    assert len(blocks.blocks) == sessions.FEWEST and all(loaded[k + 3 : k + 6] == loaded[k : k + 3][::-1] for k in range(0, len(loaded), 6))


def test_an_interrupt_while_a_model_is_loaded_keeps_the_blocks_before() -> None:
    rng = np.random.default_rng(0)
    count = [0]

    def load() -> Runner:
        count[0] += 1
        if count[0] == 4:
            raise KeyboardInterrupt
        return clock(1.0, rng)

    blocks = Sessions({ORIGINAL: load}, rng)
    blocks.run(0.0)
    assert blocks.interrupted and len(blocks.blocks) == 3 and not blocks.enough and not blocks.timings(ORIGINAL)


# ---------------------------------------------------------------- what is worth a run
def test_prefixes_are_the_whole_and_where_most_of_the_gain_is() -> None:
    assert prefixes([]) == []
    assert prefixes([1.0, 2.0]) == [2, 1]
    assert prefixes([5.0, 4.0, 0.5, 0.3, 0.2]) == [5, 1, 2]
    assert prefixes([-1.0, 0.0, 6.0, 0.0, 0.0]) == [5, 3]


def test_as_many_are_run_as_the_time_is_enough_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "LEAST", 8)
    took = {"original": 100.0, "result": 90.0, "a": 100.0, "b": 100.0}
    assert affordable(took, 100.0) == list(took)
    assert affordable(took, 5.0) == ["original", "result", "a"]
    assert affordable(took, 2.0) == []  # not even two
    assert affordable({"original": 0.005, "result": 0.005}, 1.0) == ["original", "result"]
