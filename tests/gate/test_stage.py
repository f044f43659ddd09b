"""The gate in a job: what is run, what is handed back, what an interrupt leaves, and what is told of it."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from cgorl import cli, config, gate, jobs, pipeline
from cgorl.certificate.inputs import feeds
from cgorl.gate import ORIGINAL, SIMPLIFIED, Ratio, Timing, Verdict, runner, shares, stage, timing
from cgorl.gate.candidates import RESULT, candidates
from cgorl.gate.judge import Share
from cgorl.gate.runner import Run, even
from cgorl.gate.stage import Gated
from cgorl.gate.timing import Rounds, Runner
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.pipeline import Outcome, Status
from cgorl.report.ledger import ledger, summary
from cgorl.report.screen import lines
from cgorl.report.speed import measured_share, speed
from cgorl.search.beam import Beam
from cgorl.search.greedy import Greedy
from cgorl.search.searcher import Budget
from tests.cost.test_roofline import taso
from tests.texts import ZOO, graph, model, rules, small

WASTE = "agraph (float[2,3] x) => (float[2,3] y) { i = Identity(x) a = Neg(i) b = Neg(a) c = Abs(b) d = Abs(c) y = Relu(d) }"


def job(g: Graph, how: Gated | None = None, **more: Any) -> Outcome:
    return pipeline.optimize(g, rules(), taso(), Greedy(), Budget(), gated=how or Gated(10.0), **more)


def judged(monkeypatch: pytest.MonkeyPatch, kept: str, g: Graph | None = None, **more: Any) -> tuple[Outcome, list[str]]:
    """A job whose gate lets `kept` through, and the names of the graphs that it had run."""
    asked: list[str] = []

    def judge(candidates: dict[str, Runner], *_: object) -> Verdict:
        asked.extend(candidates)
        rates = {name: Ratio(1.2, 1.1, 1.3) if name == kept != SIMPLIFIED else Ratio(1.0, 0.995, 1.005) for name in candidates}
        return Verdict(kept, tuple(Timing(name, 1.0, 1.1, r, 20) for name, r in rates.items()), "one thread")

    monkeypatch.setattr(stage, "judge", judge)
    return job(graph(WASTE) if g is None else g, **more), asked


@pytest.mark.parametrize("kept", [ORIGINAL, SIMPLIFIED, RESULT])
def test_a_job_hands_back_what_the_gate_lets_through(monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    done, asked = judged(monkeypatch, kept)
    assert asked[:3] == [ORIGINAL, RESULT, SIMPLIFIED]
    told = "\n".join(line for line in lines(done) if line.startswith("gate"))
    found = summary(done)
    assert done.cost_ms == done.cost.cost_ms(done.graph) and done.cost_ms <= done.initial_cost_ms
    assert (done.cost_ms == done.initial_cost_ms) == (kept != RESULT)
    assert json.dumps(found) and found["gate"]["kept"] == kept and found["gate"]["before"]["cpu_ms"] == 1.0
    assert {"options", "onnxruntime", "onnx", "machine", "date", "measured", "after"} <= set(found["gate"])
    if kept == RESULT:
        assert done.status is Status.OPTIMIZED and done.trace and "1.200 times (1.100 to 1.300) as fast" in told
    else:
        assert not done.trace and "already optimal for these rules on this target; the" in told and f"the {kept} graph is kept" in told
        assert done.status is Status.OPTIMAL and (done.graph is done.original) == (kept == ORIGINAL)


@pytest.mark.parametrize("name", ["first 5 rewrites", "without neg-neg"])
def test_what_else_the_trace_offers_is_run_and_proven_as_a_trace_of_its_own(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    g = small("repvgg_a0")
    if name.startswith("without"):
        g = graph("""agraph (float[1,2,4,4] x) => (float[1,2,4,4] y)
          <float[2,2,1,1] w = {1,2,3,4}, float[2] s = {1,2}, float[2] v = {1,1}> {
          n = Neg(x) o = Neg(n) c = Conv(o, w) d = BatchNormalization(c, s, s, s, v) e = Conv(d, w) f = BatchNormalization(e, s, s, s, v)
          a = Neg(f) y = Neg(a) }""")
    done, asked = judged(monkeypatch, name, g)
    assert name in asked and ORIGINAL in asked and SIMPLIFIED not in asked  # the clean-up found nothing
    rule = [s.match.rule.name for s in done.trace]
    assert len(rule) == 5 if name.startswith("first") else rule == ["fold-norm"] * 2
    assert done.proof.ok and done.proof.whole is not None and len(done.proof.rewrites) == len(done.trace)
    assert done.cost_ms == pytest.approx(taso().cost_ms(done.graph)) and done.trace[-1].after_ms == pytest.approx(done.cost_ms)


def test_what_cannot_be_proven_does_not_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prefix is compared as a whole; where that fails, the judge is asked again without it."""
    kept = ["first 5 rewrites", RESULT]
    right = stage.compare
    monkeypatch.setattr(stage, "compare", lambda *a, **k: type(right(*a, **k))(1.0, 1, 1, "it differs"))
    seen: list[list[str]] = []

    def judge(candidates: dict[str, Runner], *_: object) -> Verdict:
        seen.append(list(candidates))
        name = kept[len(seen) - 1]
        return Verdict(name, (Timing(name, 1.0, 1.0, Ratio(1.2, 1.1, 1.3), 20),), "")

    monkeypatch.setattr(stage, "judge", judge)
    done = job(small("repvgg_a0"))
    assert len(done.trace) == 10 and "first 5 rewrites" in seen[0] and "first 5 rewrites" not in seen[1]


def test_a_result_whose_proof_failed_in_part_is_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from cgorl.certificate import trace
    from cgorl.certificate.rewrite import RewriteProof

    right = trace.prove_rewrite
    monkeypatch.setattr(
        trace, "prove_rewrite", lambda g, m, *r: RewriteProof(m.rule.name, 1.0, "differs") if m.rule.name == "abs-abs" else right(g, m, *r)
    )
    done, asked = judged(monkeypatch, ORIGINAL)
    assert asked and done.status is Status.PROOF_FAILED and done.graph is done.original and done.proof.dropped


def test_a_model_that_does_not_run_is_handed_back_as_it_is() -> None:
    made = model("agraph (float[2,3] x) => (float[2,3] y) { a = Neg(x) b = Neg(a) y = Abs(b) }")
    made.opset_import.append(onnx.helper.make_opsetid("house", 1))
    made.graph.node[2].domain = "house"
    done = job(from_proto(made))
    assert done.graph is done.original and done.status is Status.UNCHANGED
    assert "the original does not run" in next(line for line in lines(done) if line.startswith("gate"))


def test_too_little_time_says_how_much_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, ms in (("took_ms", 3000.0), ("made_ms", 0.0)):
        monkeypatch.setattr(Run, name, property(lambda self, ms=ms: ms, lambda self, v: None), raising=False)
    done = job(small("repvgg_a0"), Gated(20.0))
    told = next(line for line in lines(done) if line.startswith("gate"))
    assert "a run takes 3 s, so 20 s tell nothing: gate_seconds=115 would; the original graph is kept" in told
    assert done.graph is done.original and json.dumps(summary(done))


def test_no_time_at_all_says_what_would_do() -> None:
    told = next(line for line in lines(job(small("repvgg_a0"), Gated(0.0))) if line.startswith("gate"))
    assert "so 0 s tell nothing: gate_seconds=1 would" in told


@pytest.mark.parametrize("where", ["runner", "judge", "prove_trace"])
def test_an_interrupt_does_not_lose_the_job(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Whatever stage of the gate it meets, the job ends with a graph, and says what happened."""

    def press(*_: Any, **more: Any) -> Any:
        raise KeyboardInterrupt

    if where == "judge":
        monkeypatch.setattr(Run, "__call__", lambda self, count=[0]: press() if count[0] > 40 else (count.append(0), (1.0, 1.0))[1])
        monkeypatch.setattr(Rounds, "run", lambda self, *_: setattr(self, "interrupted", True))
        done = job(graph(WASTE))
        assert done.gate is not None and "interrupted after 0 rounds" in done.gate.why
    elif where == "runner":
        monkeypatch.setattr(stage, where, press)
        done = job(graph(WASTE))
        assert done.gate is not None and done.gate.why == "interrupted before anything was measured"
    else:
        monkeypatch.setattr(stage, where, press)
        done, _ = judged(monkeypatch, "without neg-neg")
        assert done.gate is not None and done.gate.why == "interrupted before 'without neg-neg' was proven"
    assert done.graph is done.original and done.status is Status.UNCHANGED and not done.trace
    assert any("interrupted" in line for line in lines(done)) and json.dumps(summary(done))


def test_what_is_said_of_a_search_that_was_cut_off_and_of_a_gate_that_was(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = judged(monkeypatch, ORIGINAL)
    assert done.gate is not None
    assert "optimal for these rules on this target; the original" in speed(done, done.gate)[0]
    cut = replace(done, status=Status.UNCHANGED, search={**done.search, "stopped": "seconds"})
    assert "this target, as far as the search came (seconds); the original" in speed(cut, done.gate)[0]
    stopped = replace(done.gate, why="interrupted after 20 rounds")
    assert "in what was measured; the original graph is kept" in speed(cut, stopped)[0] and stopped.why in speed(cut, stopped)
    assert "0 of the 2 rewrites that the search found are kept" in "\n".join(speed(done, done.gate))
    single = replace(done, search={**done.search, "found_rewrites": 1})
    assert "the one rewrite that the search found is not kept (" in "\n".join(speed(single, done.gate))


# ---------------------------------------------------------------- what is asked for
def test_auto_measures_where_the_prices_are_this_machines() -> None:
    def how(*overrides: str) -> Gated | None:
        cfg = config.load_config("optimize", ["model=bert", *overrides])
        return jobs._gated(config.plain(cfg), jobs.cost(cfg))

    assert how() is None
    assert how("gate=true") == Gated(20, "all", None, 10)
    assert how("cost=measured") == Gated(20, "all", None, 10)
    assert how("cost=measured", "cost.level=extended", "unbound=3", "gate_seconds=5", "ledger_seconds=0") == Gated(5, "extended", 3, 0)
    assert how("cost=measured", "gate=false") is None


# ---------------------------------------------------------------- running
def test_both_sides_are_really_run() -> None:
    g = small("repvgg_a0")
    made, failed = gate.runners({ORIGINAL: g, "again": g}, feeds(g, {}, np.random.default_rng(0)))
    assert not failed
    rounds = Rounds(made, np.random.default_rng(0))
    rounds.run(0.0)
    found = rounds.timings(ORIGINAL)
    assert all(t.cpu_ms > 0 and t.wall_ms > 0 and t.runs == 8 for t in found.values())


def test_models_that_take_microseconds_are_run_several_times_for_a_sample(tmp_path: Path) -> None:
    g = graph(WASTE)
    given = feeds(g, {}, np.random.default_rng(0))
    pair = [runner.runner(g, given, tmp_path / "m.onnx") for _ in range(2)]
    even(pair)
    assert 1 < pair[0].times == pair[1].times <= runner.MOST_TIMES
    cpu, wall = pair[0]()
    assert 0 < cpu < 0.5 and wall > 0  # of one run


def test_a_job_is_measured_for_real() -> None:
    """Nothing is faked: whatever comes out faster, the model handed back is one of those that were run."""
    done = job(small("repvgg_a0"), Gated(0.6, shares=0.4))
    assert done.gate is not None and done.gate.timing(ORIGINAL) is not None and done.gate.timing(RESULT) is not None
    assert (done.graph is done.original) == (done.gate.kept == ORIGINAL)
    assert done.gate.timing(done.gate.kept) is not None and json.dumps(summary(done))


# ---------------------------------------------------------------- the ledger
def test_rewrites_are_measured_by_leaving_them_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph without the k-th takes k tenths of a ms longer: 10 ms are the original's, 8 the kept one's."""
    g = small("repvgg_a0")
    found = pipeline.optimize(g, rules(), taso(), Greedy(), Budget())
    rank = sorted(range(10), key=lambda k: found.trace[k].after_ms - found.trace[k].before_ms)[: shares.MOST]
    left: list[Graph] = []

    class Fake:
        took_ms = made_ms = 1.0
        times = 1

        def __init__(self, ms: float) -> None:
            self.ms = ms

        def __call__(self) -> tuple[float, float]:
            return self.ms, self.ms

        def again(self) -> Any:
            return self

    def fake(made: Graph, *_: object) -> Any:
        left.append(made)
        return Fake(8.0 + rank[len(left) - 1] / 10)

    monkeypatch.setattr(shares, "runner", fake)
    monkeypatch.setattr(timing, "MOST", 10)
    pair: Any = (Fake(10.0), Fake(8.0))
    measured = shares.shares(found.start, found.trace, pair, {}, "all", 60.0, tmp_path)
    assert list(measured) == sorted(rank)
    assert all(s.share is not None and s.share.middle == pytest.approx(k / 100) for k, s in measured.items())
    assert len({m.key for m in left}) == len(left)
    assert shares.shares(found.start, found.trace, pair, {}, "all", 0.0, tmp_path) == {}


def test_a_rewrite_that_others_rest_on_is_not_left_out(tmp_path: Path) -> None:
    g = graph("agraph (float[2,3] x) => (float[2,3] y) { a = Abs(x) b = Neg(a) c = Neg(b) y = Abs(c) }")
    found = pipeline.optimize(g, rules(), taso(), Greedy(), Budget())
    assert [s.match.rule.name for s in found.trace] == ["neg-neg", "abs-abs"]
    given = feeds(g, {}, np.random.default_rng(0))
    first, second = (runner.runner(x, given, tmp_path / f"{k}.onnx") for k, x in enumerate((g, found.graph)))
    measured = shares.shares(found.start, found.trace, (first, second), given, "all", 0.2, tmp_path)
    assert measured[0].why == "another rests on it" and measured[1].share is not None


def test_the_ledger_tells_what_was_measured_and_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {0: Share(Ratio(0.05, 0.04, 0.06)), 2: Share(None, "2 rewrites rest on it")}
    monkeypatch.setattr(stage, "shares", lambda *_: told)
    done, _ = judged(monkeypatch, RESULT, small("repvgg_a0"), how=Gated(10.0, shares=5.0))
    rows = ledger(done)
    assert rows[0]["measured"] == {"share": 0.05, "interval": (0.04, 0.06)}
    assert rows[2]["measured"] == {"share": None, "why": "2 rewrites rest on it"}
    assert rows[1]["measured"] == {"share": None, "why": "not measured"}
    assert [r["measured"] for r in summary(done)["largest_rewrites"]][:2] != [rows[1]["measured"]] * 2
    assert [measured_share(told.get(k)) for k in range(3)] == [
        "5.00 % (4.00 to 6.00)",
        "not measured",
        "2 rewrites rest on it",
    ]


def test_candidates_are_distinct_graphs() -> None:
    found = pipeline.optimize(graph(WASTE), rules(), taso(), Greedy(), Budget())
    made = list(candidates(found.start, found.trace))
    keys = [found.start.key, found.graph.key, *(c.graph.key for c in made)]
    assert len(set(keys)) == len(keys) and next(c.name for c in made) == "first 1 rewrites"


def test_the_next_best_graphs_of_a_search_are_run_and_one_may_win(monkeypatch: pytest.MonkeyPatch) -> None:
    g = small("repvgg_a0")
    found = Beam()(g, rules(), taso(), Budget(expansions=50))
    made = {c.name: c for c in candidates(g, found.trace, found.runners_up)}
    second = made["runner-up 1"]
    assert len({c.graph.key for c in made.values()} | {found.graph.key}) == len(made) + 1 and second.trace[-1].after_ms >= found.cost_ms

    kept: list[list[str]] = []

    def judge(candidates: dict[str, Runner], *_: object) -> Verdict:
        kept.append(list(candidates))
        return Verdict("runner-up 1", (Timing("runner-up 1", 1.0, 1.0, Ratio(1.2, 1.1, 1.3), 20),), "")

    monkeypatch.setattr(stage, "judge", judge)
    done = pipeline.optimize(g, rules(), taso(), Beam(), Budget(expansions=50), gated=Gated(30.0))
    assert {"runner-up 1", "runner-up 2"} <= set(kept[0]) and done.proof.ok and len(done.proof.rewrites) == len(done.trace)
    assert done.graph.key == second.graph.key and done.cost_ms == pytest.approx(second.trace[-1].after_ms)


# ---------------------------------------------------------------- on the command line
def test_ctrl_c_in_the_gate_writes_a_model_and_says_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The signal comes in a run, as it does: the job ends well, with the graph that it is safe to hand back."""
    monkeypatch.chdir(tmp_path)
    right, count = Run.__call__, [0]

    def run(self: Run) -> tuple[float, float]:
        count[0] += 1
        if count[0] == 12:
            signal.raise_signal(signal.SIGINT)
        return right(self)

    monkeypatch.setattr(Run, "__call__", run)
    words = [f"zoo.{k}={str(list(v) if isinstance(v, tuple) else v).replace(' ', '')}" for k, v in ZOO["repvgg_a0"].items()]
    code = cli.optimize(["model=repvgg_a0", *words, "gate=true", "output=o.onnx"], "")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out, err = capsys.readouterr()
    assert (code, err) == (0, "") and onnx.load("o.onnx").graph.node
    assert "gate      interrupted after 0 rounds, too few to call anything faster; the original graph is kept" in out
    [folder] = Path("runs/optimize").iterdir()
    assert json.loads((folder / "summary.json").read_text())["gate"]["why"].startswith("interrupted after 0 rounds")
