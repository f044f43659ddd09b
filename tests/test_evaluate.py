"""scripts/evaluate.py: what it prints and writes, its exit codes, and one clear line for each mistake."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cgorl import cli, pipeline
from cgorl.certificate import trace

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "evaluate.py"
REPVGG = ("model=repvgg_a0", "zoo.image=32", "zoo.width=0.125", "zoo.depth=[1,1,1,1]", "zoo.classes=8")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.evaluate(list(argv), "the script's help")
    said = capsys.readouterr()
    return code, said.out, said.err


def test_what_is_printed_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *REPVGG, "search=greedy,annealing", "seed=1,2", "search.steps=60", "evaluations=400")
    assert (code, err) == (0, "")
    for part in (
        *("1/3  repvgg_a0 default taso greedy", "3/3  repvgg_a0 default taso annealing seed=2", "not proven (prove=true proves each)"),
        *("at equal evaluations", "at equal seconds", "run once, since without a seed: greedy", "several seeds: the median"),
    ):
        assert part in out
    [folder] = Path("runs/evaluate").iterdir()
    assert sorted(p.name for p in folder.iterdir()) == [
        *(
            "anytime_repvgg_a0.png",
            "config.yaml",
            "curves.csv",
            "curves.parquet",
            "metrics.jsonl",
            "run.json",
            "table.csv",
            "table.parquet",
            "traces.jsonl",
        )
    ]
    table = pd.read_csv(folder / "table.csv")
    digits = re.search(r"repvgg_a0 default taso zoo.image=32 .*: \d+\.(\d+) ms before", out)
    assert digits and table["budget.evaluations"].eq(400).all()
    assert re.search(rf"^ ?greedy .* {table['cost_ms'].iloc[0]:.{len(digits[1])}f} ", out, re.M)
    assert "evaluations: 400" in (folder / "config.yaml").read_text()


def test_failed_jobs_are_listed_and_the_others_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.onnx").write_text("hello")
    code, out, err = run(capsys, REPVGG[0] + ",bad.onnx", *REPVGG[1:])
    assert (code, err) == (1, "") and "failed: 1 of 2 jobs" in out and out.count("is not an ONNX file") == 2
    [table] = Path("runs").glob("evaluate/*/table.parquet")
    assert list(pd.read_parquet(table)["status"]) == ["not proven", "failed"]


def test_all_jobs_may_fail(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.onnx").write_text("hello")
    code, out, err = run(capsys, "model=bad.onnx", "search=greedy,beam")
    assert (code, err) == (1, "") and "failed: 2 of 2 jobs" in out and len(list(Path("runs").glob("evaluate/*/table.csv"))) == 1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((*REPVGG, "serch=greedy"), "no key 'serch'; did you mean 'search'?"),
        ((*REPVGG, "search=greedy,gredy"), "did you mean 'greedy'?"),
        (("model=repvgg_a1",), "did you mean 'repvgg_a0'?"),
        (("search=greedy",), "'model' must be given"),
        ((*REPVGG, "seconds=abc,3"), "seconds must be a number"),
        ((*REPVGG, "runs=file"), "cannot make the run folder 'file/evaluate/"),
        (("experiment=landscap",), "there is no experiment=landscap; there is curiosity, landscape"),
        (("experiment=landscape", "best.secs=3"), "no key 'best.secs'"),
        (("experiment=landscape", "model=bert", "output=file", "rules=none", "device=taso", "best.seconds=0", "zoo.layers=1"), "file"),
    ],
)
def test_each_mistake_is_one_line(argv: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    Path("file").write_text("")
    if "runs=file" not in argv and "output=file" not in argv:
        monkeypatch.setattr(pipeline, "load_model", None)
    code, _, err = run(capsys, *argv)
    assert code == 1 and err.count("\n") == 1 and says in err and "fault of cgorl" not in err, err
    assert not Path("runs").exists()


def test_a_proof_that_fails_shows_in_the_exit_code(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from cgorl.certificate.rewrite import RewriteProof

    assert run(capsys, *REPVGG, "prove=true")[0] == 0
    monkeypatch.setattr(trace, "prove_rewrite", lambda g, m, s, r: RewriteProof(m.rule.name, 1.0, "the result differs"))
    code, out, _ = run(capsys, *REPVGG, "prove=true")
    assert code == 4 and "failed: 1 of 1 jobs" in out and "the result differs" in out


def test_the_landscape_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    quick = [f"methods.{m}='search={m} expansions=4'" for m in ("lookahead", "backtracking", "beam", "annealing")]
    argv = ("experiment=landscape", *REPVGG, "rules=none", "device=taso", "best.seconds=0.1", "output=kept", *quick)
    code, out, err = run(capsys, *argv)
    assert (code, err) == (0, "") and "6/6 " in out and "no room" in out and "written   kept/landscape.csv, landscape.md" in out
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert "in kept/landscape.csv already" in run(capsys, *argv)[1]


def start(*argv: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, str(SCRIPT), *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def test_help_is_quick_and_names_the_keys() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start("--help")
    out, err = process.communicate(timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0 and "experiment=landscape" in out and "prove: false" in out and err == ""
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


def test_ctrl_c_writes_what_is_done() -> None:
    process = start(
        *REPVGG, "search=greedy,random_walk,beam", "search.walks=100000", "search.patience=100000", "search.width=0", "seconds=60"
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("1/3  repvgg_a0")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "") and "interrupted: 2 of 3 jobs are in the table" in out and "at equal seconds" in out
    [table] = Path("runs").glob("evaluate/*/table.parquet")
    assert list(pd.read_parquet(table)["stopped"]) == ["no rewrite gains", "interrupted"]
