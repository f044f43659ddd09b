"""The gate on synthetic timings: a slower candidate can't win, noise can't win, a real gain does."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from cgorl import config, gate, jobs, pipeline
from cgorl.certificate.inputs import feeds
from cgorl.gate import ORIGINAL, SIMPLIFIED, Ratio, Runner, Timing, Verdict, judge, prefixes, ratio
from cgorl.pipeline import Gated, Outcome, Status
from cgorl.report.ledger import summary
from cgorl.report.screen import lines
from cgorl.search.greedy import Greedy
from cgorl.search.searcher import Budget
from tests.cost.test_roofline import taso
from tests.texts import rules, small


def clock(ms: float, rng: np.random.Generator, noise: float = 0.05) -> Runner:
    """A model that takes `ms`, more or less, and now and then much longer."""

    def run() -> tuple[float, float]:
        took = ms * (1 + noise * rng.standard_normal() + (rng.random() < 0.1) * 2)
        return took, took

    return run


def verdict(seed: int, **ms: float) -> Verdict:
    rng = np.random.default_rng(seed)
    return judge({name: clock(t, rng) for name, t in ms.items()}, 0.0, seed)


# ---------------------------------------------------------------- in a job
def judged(monkeypatch: pytest.MonkeyPatch, kept: str) -> tuple[Outcome, list[str]]:
    """A job whose gate lets `kept` through, and the names of the graphs that it had run."""
    asked: list[str] = []

    def judge(candidates: dict[str, Runner], *_: object) -> Verdict:
        asked.extend(candidates)
        rates = {name: Ratio(1.2, 1.1, 1.3) if name == kept != SIMPLIFIED else Ratio(1.0, 0.995, 1.005) for name in candidates}
        return Verdict(kept, tuple(Timing(name, 1.0, 1.1, r, 20) for name, r in rates.items()), "one thread")

    monkeypatch.setattr(gate, "judge", judge)
    done = pipeline.optimize(small("repvgg_a0"), rules(), taso(), Greedy(), Budget(), gated=Gated(0.0))
    return done, asked


@pytest.mark.parametrize("kept", [ORIGINAL, SIMPLIFIED, "result"])
def test_a_job_hands_back_what_the_gate_lets_through(monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    done, asked = judged(monkeypatch, kept)
    assert {ORIGINAL, SIMPLIFIED, "result"} <= set(asked)
    told = next(line for line in lines(done) if line.startswith("gate"))
    assert done.gate is not None and json.dumps(summary(done))
    if kept == "result":
        assert done.status is Status.OPTIMIZED and done.trace and "1.200 times" in told
    else:
        assert not done.trace and "already optimal for these rules on this target" in told
        assert (done.graph is done.original) == (kept == ORIGINAL) == (done.status is Status.OPTIMAL)


def test_a_prefix_is_a_trace_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = judged(monkeypatch, ORIGINAL)
    name = next(a for a in asked if a.endswith("rewrites"))
    done, _ = judged(monkeypatch, name)
    assert len(done.trace) == int(name.split()[0])
    assert done.cost_ms == pytest.approx(taso().cost_ms(done.graph))


def test_auto_measures_where_the_prices_are_this_machines() -> None:
    def how(*overrides: str) -> Gated | None:
        cfg = config.load_config("optimize", ["model=bert", *overrides])
        return jobs._gated(config.plain(cfg), jobs.cost(cfg))

    assert how() is None
    assert how("gate=true") == Gated(20, "all", None)
    assert how("cost=measured") == Gated(20, "all", None)
    assert how("cost=measured", "cost.level=extended", "unbound=3", "gate_seconds=5") == Gated(5, "extended", 3)
    assert how("cost=measured", "gate=false") is None


def test_both_sides_are_really_run() -> None:
    g = small("repvgg_a0")
    made, failed = gate.runners({ORIGINAL: g, "again": g}, feeds(g, {}, np.random.default_rng(0)))
    assert not failed
    found = gate.compare(made, 0.0, np.random.default_rng(0))
    assert all(t.cpu_ms > 0 and t.wall_ms > 0 and t.runs == gate.LEAST for t in found.values())


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "LEAST", 60)


def test_a_real_gain_wins() -> None:
    found = verdict(0, original=10.0, simplified=10.0, result=8.0, prefix=9.0)
    assert (found.kept, found.faster) == ("result", True)
    assert found.timing("result").ratio.low > 1.1


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


def test_a_slow_phase_meets_both_sides() -> None:
    """The machine is half as fast in the second half of the rounds, for both: the ratio stands."""
    rng = np.random.default_rng(0)
    phase = np.repeat([1.0, 2.0], 50)
    found = ratio(10 * phase, 8 * phase * (1 + 0.01 * rng.standard_normal(100)), rng)
    assert found.low == pytest.approx(1.25, rel=0.02)
    assert found.high == pytest.approx(1.25, rel=0.02)


def test_prefixes_are_the_whole_and_where_most_of_the_gain_is() -> None:
    assert prefixes([]) == []
    assert prefixes([1.0, 2.0]) == [2, 1]
    assert prefixes([5.0, 4.0, 0.5, 0.3, 0.2]) == [5, 1, 2]
    assert prefixes([-1.0, 0.0, 6.0, 0.0, 0.0]) == [5, 3]
