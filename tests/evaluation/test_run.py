"""Jobs into tables: what a row says, failing jobs, interrupts, and that searches begin alike."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cgorl import jobs
from cgorl.certificate import trace
from cgorl.config import load_config
from cgorl.evaluation.run import Listening, evaluate, save
from cgorl.search.beam import Beam
from cgorl.tracking import Tracker

BERT = ("zoo.layers=1", "zoo.hidden=8", "zoo.heads=2", "zoo.seq=4")
REPVGG = ("model=repvgg_a0", "zoo.image=32", "zoo.width=0.125", "zoo.depth=[1,1,1,1]", "zoo.classes=8")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_row_is_what_the_search_says() -> None:
    results, curves, interrupted = evaluate([*REPVGG, "search=greedy,annealing", "seed=3,4", "search.steps=40"])
    assert not interrupted and list(results["search"]) == ["greedy", "annealing", "annealing"]
    cfg = load_config("optimize", [*REPVGG, "search=annealing", "search.steps=40", "seed=4"])
    rules, cost, search, budget = jobs.parts(cfg)
    start = jobs.simplified(cfg)
    found = search(start, rules, cost, budget)
    row = results.iloc[2]
    assert (row["seed"], row["cost_ms"], row["rewrites"], row["evaluations"], row["expansions"], row["stopped"]) == (
        *(4, found.cost_ms, len(found.trace), found.evaluations, found.expansions, found.stopped),
    )
    assert (row["graph_key"], row["rules_digest"], row["status"]) == (start.key, rules.digest, "not proven")
    assert row["improvement"] == pytest.approx(1 - found.cost_ms / found.initial_cost_ms)
    assert results["initial_ms"].nunique() == 1 and results["cost_ms"].nunique() == 3
    mine = curves[curves["job"] == 3]
    assert mine["best_ms"].iloc[0] == found.initial_cost_ms and mine["best_ms"].iloc[-1] == found.cost_ms
    assert mine["evaluations"].is_monotonic_increasing and (mine["best_ms"].diff().iloc[1:-1] < 0).all()
    assert mine["evaluations"].iloc[-1] == found.evaluations


def test_a_failing_job_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("bad.onnx").write_text("hello")
    right = Beam.__call__

    def wrong(self: Beam, *rest: Any) -> Any:
        return right(self, *rest) if self.width != 3 else 1 / 0

    monkeypatch.setattr(Beam, "__call__", wrong)
    tracker = Tracker("runs", "evaluate", "x")
    ends: list[Any] = []
    listen = Listening(end=lambda done: ends.append(done.row["status"]))
    done = evaluate(["model=bad.onnx,bert", *BERT, "search=beam", "search.width=3,2", "zoo.seed=1"], listen, tracker)
    results = done.results
    assert list(results["status"]) == ["failed", "failed", "failed", "not proven"] == ends
    assert results["error"].iloc[0].startswith("'bad.onnx' is not an ONNX file")
    assert results["error"].iloc[2] == "a fault of cgorl's: ZeroDivisionError: division by zero" and pd.isna(results["error"].iloc[3])
    assert "Traceback" in (tracker.folder / "error_3.txt").read_text() and not (tracker.folder / "error_1.txt").exists()
    assert set(done.curves["job"]) == {4}
    kept = [json.loads(line) for line in (tracker.folder / "metrics.jsonl").read_text().splitlines()]
    assert [k["status"] for k in kept] == list(results["status"])
    [trace] = [json.loads(line) for line in (tracker.folder / "traces.jsonl").read_text().splitlines()]
    assert trace["job"] == 4 and len(trace["steps"]) == results["rewrites"].iloc[3] and trace["initial_key"] == results["graph_key"].iloc[3]


def test_an_interrupt_keeps_what_is_done_and_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def press(progress: Any) -> None:
        seen.append(progress.best_ms)
        if len(seen) == 60:
            signal.raise_signal(signal.SIGINT)

    done = evaluate([*REPVGG, "search=greedy,beam,backtracking"], Listening(progress=press))
    assert done.interrupted and list(done.results["search"]) == ["greedy", "beam"]
    assert done.results["stopped"].iloc[1] == "interrupted" and done.results["cost_ms"].iloc[1] == pytest.approx(min(seen[-30:]))
    assert done.results["cost_ms"].iloc[1] < done.results["initial_ms"].iloc[1]


def test_an_interrupt_between_searches() -> None:
    def press(job: Any) -> None:
        if job.number == 2:
            signal.raise_signal(signal.SIGINT)

    done = evaluate([*REPVGG, "search=greedy,beam"], Listening(begin=press))
    assert done.interrupted and list(done.results["search"]) == ["greedy"]


def test_with_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    from cgorl.certificate.rewrite import RewriteProof

    done = evaluate(["model=bert", *BERT, "prove=true"])
    assert list(done.results["status"]) == ["proven"] and done.results["cost_ms"].iloc[0] < done.results["initial_ms"].iloc[0]
    monkeypatch.setattr(trace, "prove_rewrite", lambda g, m, s, r: RewriteProof(m.rule.name, 1.0, "the result differs"))
    row = evaluate(["model=bert", *BERT, "prove=true"]).results.iloc[0]
    assert (row["status"], row["rewrites"]) == ("proof failed", 0) and "the result differs" in row["error"]
    assert row["cost_ms"] == pytest.approx(row["initial_ms"])


def test_a_misspelt_dim_is_a_failed_job_and_one_model_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from cgorl import pipeline

    read: list[str] = []
    right = pipeline.load_model
    monkeypatch.setattr(pipeline, "load_model", lambda name, parameters=None: read.append(name) or right(name, parameters))
    done = evaluate(["model=bert,nasrnn", *BERT[:1], "zoo.hidden=16", "zoo.heads=2", "zoo.length=2", "search=greedy,beam", "expansions=2"])
    assert read == ["bert", "nasrnn"] and set(done.results["status"]) == {"not proven"}
    done = evaluate(["model=bert", *BERT, "dims.bach=2", "unbound=1"])
    assert "no dim 'bach'" in done.results["error"].iloc[0]


def test_what_is_saved_reads_back(tmp_path: Path) -> None:
    done = evaluate(["model=bert,repvgg_a0", *BERT, *REPVGG[1:], "search=greedy,annealing", "search.steps=20", "seed=1,2", "expansions=8"])
    files = save(done, tmp_path)
    assert [f.name for f in files] == [
        *("table.parquet", "table.csv", "curves.parquet", "curves.csv", "anytime_bert.png", "anytime_repvgg_a0.png")
    ]
    assert all(f.stat().st_size > 200 for f in files)
    again = pd.read_parquet(tmp_path / "table.parquet")
    assert list(again.columns) == list(done.results.columns) == list(pd.read_csv(tmp_path / "table.csv").columns)
    assert (again["cost_ms"] == done.results["cost_ms"]).all() and len(again) == len(done.results) == 6
    assert list(again["zoo.depth"].dropna().unique()) == ["[1,1,1,1]"] and str(again["zoo.layers"].dtype) == "Int64"
    assert len(done.anytime().axes) == 4, "a row of two for each model"
    assert again["seed"].isna().sum() == 2 and again["budget.expansions"].eq(8).all() and again["budget.seconds"].eq(60).all()
    assert len(pd.read_parquet(tmp_path / "curves.parquet")) == len(done.curves)
