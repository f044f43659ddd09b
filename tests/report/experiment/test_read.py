"""Reading runs: one tidy frame, whoever ran them and however far they came; what cannot be read is one sentence."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cgorl.report.experiment import read, tidy
from cgorl.report.experiment.kinds import ReportError
from cgorl.tracking import TrackError, Wandb, offline
from tests.report.experiment.made import config, sweep, training, two_by_three


def test_a_sweep_is_one_tidy_frame(tmp_path: Path) -> None:
    frame = tidy(two_by_three(tmp_path / "s"))
    assert len(frame) == 6 * 4 and frame.columns.is_unique
    assert list(frame["method"].unique()) == ["icm.beta=0.1", "icm.beta=0.2"] and sorted(frame["seed"].unique()) == [1, 2, 3]
    assert list(frame.loc[frame["job"] == 4, "config.icm.beta"]) == [0.2] * 4
    assert list(frame.loc[frame["job"] == 1, "rules/fold"]) == [1, 2, 3, 4] and frame["rules/fold"].dtype == "int64"
    assert list(frame.loc[frame["job"] == 1, "global_step"]) == [16, 32, 48, 64]


def test_jobs_that_failed_or_never_ran_are_told(tmp_path: Path) -> None:
    place = sweep(
        tmp_path / "s",
        [
            ("seed=1", {}),
            ("seed=2", {"error": "no"}),
            ("seed=3", {"absent": True}),
            ("seed=4", {"end": False}),
            ("seed=5", {"error": "interrupted"}),
        ],
    )
    of = read(place)
    states = dict(zip(of.jobs["seed"], of.jobs["state"], strict=True))
    assert states == {1: "ended: all steps trained", 2: "failed", 3: "not begun", 4: "running", 5: "interrupted"}
    assert list(of.jobs["error"]) == ["", "no", "", "", ""]
    assert of.origin["command"] == ("python scripts/sweep.py -m model=net.onnx",) and of.origin["commit"] == ("abc1234",)
    assert list(of.results["seed"]) == [1, 4]  # the killed one counts with its best so far
    assert of.results["cost_ms"].tolist() == pytest.approx([1.8, 1.8])


def test_a_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    run = training(tmp_path / "r", end=False)
    with (run / "metrics.jsonl").open("a") as f:
        f.write('{"global_step": 80, "upd')
    (run / "summary.json").write_text('{"stopped": "all st')
    (run / "job.json").write_text("{")
    assert list(tidy(run)["global_step"]) == [16, 32, 48, 64]


def test_runs_without_a_sweep_are_told_by_their_configuration(tmp_path: Path) -> None:
    for k, about in enumerate(({"icm.beta": 0.1}, {"icm.beta": 0.1, "seed": 1}, {"icm.beta": 0.3, "runs": "elsewhere"})):
        training(tmp_path / "train" / str(k), about=about)
    of = read(tmp_path)
    assert list(of.jobs["method"]) == ["icm.beta=0.1", "icm.beta=0.1", "icm.beta=0.3"] and of.varied == ("icm.beta",)
    assert list(read(tmp_path / "train" / "0").jobs["method"]) == ["as configured"]


def test_sweeps_are_read_as_one(tmp_path: Path) -> None:
    one, two = (
        sweep(tmp_path / "a", [("icm.beta=0.1 seed=1", {})]),
        sweep(tmp_path / "b", [("icm.beta=0.1 seed=2", {}), ("icm.beta=0.2 seed=1", {})]),
    )
    of = read(one, two)
    assert list(of.jobs["job"]) == [1, 2, 3] and list(of.jobs["method"]) == ["icm.beta=0.1", "icm.beta=0.1", "icm.beta=0.2"]
    assert read(tmp_path).jobs.equals(of.jobs)


def test_several_graphs_have_a_mean(tmp_path: Path) -> None:
    run = training(tmp_path / "r")
    rows = [{"model": n, "first_ms": 2.0, "best_ms": b} for n, b in (("a", 1.0), ("b", 2.0))]
    (run / "summary.json").write_text(json.dumps({"stopped": "x", "graphs": rows}))
    of = read(run)
    assert list(of.results["problem"]) == ["a", "b", "mean over the graphs (2)"] and of.jobs["change"].tolist() == [-25.0]
    assert (of.results["cost_ms"] / of.results["initial_ms"]).tolist() == [0.5, 1.0, 0.75]


def test_runs_of_different_kinds_are_not_compared(tmp_path: Path) -> None:
    training(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.yaml").write_text("search:\n  _target_: cgorl.search.beam.Beam\nmodel: x\n")
    with pytest.raises(ReportError, match=r"different kinds.*1 of train\.py or sweep\.py.*1 of optimize\.py"):
        read(tmp_path)


def test_a_search_is_a_job(tmp_path: Path) -> None:
    for name, width in (("one", 4), ("two", 8)):
        run = tmp_path / name
        run.mkdir()
        search = {"_target_": "cgorl.search.beam.Beam", "width": width}
        (run / "config.yaml").write_text(json.dumps({"search": search, "model": "a/net.onnx", "seed": 0}))
        points = [{"seconds": s, "expansions": s, "evaluations": 10 * s, "best_ms": 4.0 - s} for s in (1, 2)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(p) + "\n" for p in points))
        told = {"status": "optimized", "cost_ms": {"initial": 4.0, "final": 2.0}, "search": {"stopped": "seconds"}}
        if name == "one":
            (run / "summary.json").write_text(json.dumps(told))
    of = read(tmp_path)
    assert list(of.jobs["method"]) == ["beam search.width=4", "beam search.width=8"]
    assert of.results["initial_ms"].tolist() == [4.0, 3.0] and of.results["cost_ms"].tolist() == [2.0, 2.0]  # of the second, what it logged
    assert len(of.curves) == 4


def test_an_evaluation_that_was_killed_is_read_by_its_lines(tmp_path: Path) -> None:
    row = {"job": 1, "model": "net", "rules": "default", "device": "taso", "cost": "roofline", "search": "beam", "seed": None}
    ends = {"initial_ms": 2.0, "cost_ms": 1.5, "evaluations": 9, "wall_seconds": 3.0, "stopped": "x", "status": "not proven", "error": None}
    (tmp_path / "config.yaml").write_text("--- # job 1: net\nmodel: net\n")
    with pytest.raises(ReportError, match=r"no job of the evaluation .* has ended yet"):
        read(tmp_path)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"seconds": 0.1, **row, **ends}) + "\n" + '{"job": 2, "mo')
    of = read(tmp_path)
    assert of.kind == "evaluate" and of.results["seconds"].tolist() == [3.0] and of.jobs["change"].tolist() == [-25.0]


def test_a_table_of_results_is_read_with_its_curves(tmp_path: Path) -> None:
    told = {
        "problem": "net",
        "method": "beam",
        "initial_ms": 2.0,
        "cost_ms": 1.0,
        "stopped": "x",
        "evaluations": 5,
        "curve": "0:2 5:1",
        "commit": "c",
    }
    pd.DataFrame([told]).to_csv(tmp_path / "t.csv")
    of = read(tmp_path / "t.csv")
    assert of.curves["best_ms"].tolist() == [2.0, 1.0] and of.origin["commit"] == ("c",)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p / "none", "there is no folder"),
        (lambda p: p, "there are no runs in"),
        (lambda p: training(p / "r", lines=0, end=False), "the run .* has written any metrics yet: there is nothing to report"),
        (lambda p: next(iter([training(p / "r" / n, lines=0, end=False) for n in "ab"])).parent, "none of the 2 runs there have written"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(make: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=says):
        read(make(tmp_path))


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="must be given"):
        read()
    with pytest.raises(ReportError, match="jsonl or wandb, not from 'csv'"):
        read(tmp_path, source="csv")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ReportError, match="no column initial_ms, cost_ms"):
        read(tmp_path / "t.csv")


@pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed")
def test_offline_runs_of_wandb_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("DATA", "CACHE", "CONFIG", "ARTIFACT"):
        monkeypatch.setenv(f"WANDB_{place}_DIR", str(tmp_path / "w"))
    run = training(tmp_path / "s" / "r", about={"seed": 3})
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    opened = Wandb().open(run, config(seed=3), "icm.beta=0.2", "s")
    assert opened is not None
    for line in lines:
        rules = {f"rules/{k}": v for k, v in line.pop("rules").items()}
        opened.log({**line, **rules}, line["global_step"])
    opened.table("rewrites/net", ["rule"], [["fold"]])
    opened.finish()
    told, as_written = tidy(tmp_path / "s", source="wandb"), tidy(tmp_path / "s")
    columns = [c for c in as_written if c != "seconds"]
    assert set(told) == set(as_written) and told["seconds"].notna().all()
    pd.testing.assert_frame_equal(told[columns], as_written[columns], check_dtype=False)
    assert list(read(run, source="wandb").jobs["state"]) == ["ended"]
    [file] = offline.files(run)
    assert (offline.read(file).name, offline.read(file).group) == ("icm.beta=0.2", "s")


def test_without_a_run_of_wandb_it_says_so(tmp_path: Path) -> None:
    training(tmp_path / "r")
    with pytest.raises(ReportError, match="no offline run of W&B"):
        read(tmp_path, source="wandb")
    if find_spec("wandb") is not None:
        (tmp_path / "broken.wandb").write_text("no")
        with pytest.raises(TrackError, match="W&B's reader cannot read"):
            offline.read(tmp_path / "broken.wandb")
