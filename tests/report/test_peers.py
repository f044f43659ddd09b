"""Other optimizers beside cgorl, with fakes at the seam: one that crashes, hangs, is wrong or is not there costs its row and no more."""

import csv
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

from cgorl.ir.onnx_io import ModelError
from cgorl.report import files, side
from cgorl.report.bench import peers, promise
from cgorl.report.bench.peers import Peer, Row
from cgorl.report.side import Ended, Seen, apart, side_by_side
from tests.texts import model

TEXT = "agraph (float[n,64] x) => (float[n,64] y) { a = Neg(x) b = Neg(a) c = Exp(b) y = Abs(c) }"
WRONG = "import onnx; m = onnx.load(sys.argv[1]); m.graph.node[2].op_type = 'Tanh'; onnx.save(m, sys.argv[2])"
OTHERWISE = (
    "import onnx; m = onnx.load(sys.argv[1]); m.graph.output[0].type.tensor_type.shape.dim[0].dim_param = 'k'; onnx.save(m, sys.argv[2])"
)
FAKES = {
    "copies": Peer("onnx", "import shutil; shutil.copy(sys.argv[1], sys.argv[2])"),
    "aborts": Peer("onnx", "import os; os.abort()"),
    "raises": Peer("onnx", "raise ValueError('no such | thing')"),
    "hangs": Peer("onnx", "import time; time.sleep(60)"),
    "writes nonsense": Peer("onnx", "open(sys.argv[2], 'w').write('hello')"),
    "is wrong": Peer("onnx", WRONG),
    "says it otherwise": Peer("onnx", OTHERWISE),
    "is not there": Peer("a_package_that_there_is_not", ""),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    onnx.save(model(TEXT), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def fake_tool(path: Path, output: Path, sizes: Any, rest: Sequence[str], runs: Path, timeout: float) -> tuple[Ended, dict[str, Any]]:
    """cgorl, which takes the two Negs out."""
    assert sizes == {"n": 3} and timeout > 0
    made = onnx.load(path)
    del made.graph.node[:2]
    made.graph.node[0].input[0] = "x"
    onnx.save(made, output)
    return Ended("", 1.5), {"gate": {"kept": "result", "after": {"times_as_fast": 1.1}}, "status": "optimized"}


def test_every_way_to_fail_is_a_row(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "PEERS", FAKES)
    monkeypatch.setattr(peers, "tool", fake_tool)
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None if name in ("openvino", "a_package_that_there_is_not") else 1)
    peers.main([f"model={file}", "dims.n=3", "timing=0.05", "timeout=3", f"runs={tmp_path}/runs", "search=greedy"])
    [folder] = (tmp_path / "runs" / "bench").iterdir()
    rows = {r["tool"]: r for r in csv.DictReader((folder / "peers.csv").open())}
    assert list(rows) == ["original", *FAKES, "cgorl", "OpenVINO"]
    assert {t for t, r in rows.items() if r["times_as_fast"]} == {"original", "copies", "is wrong", "says it otherwise", "cgorl"}
    assert rows["copies"]["agrees"] == rows["cgorl"]["agrees"] == "True" and rows["is wrong"]["agrees"] == "False"
    assert rows["says it otherwise"]["agrees"] == "True" and rows["says it otherwise"]["interface"] == "output 'y' has another type"
    assert (rows["original"]["nodes"], rows["cgorl"]["nodes"], rows["cgorl"]["optimize_s"]) == ("4", "2", "1.5")
    assert float(rows["cgorl"]["low"]) <= float(rows["cgorl"]["times_as_fast"]) <= float(rows["cgorl"]["high"])
    why = {t: r["why"] for t, r in rows.items()}
    assert why["aborts"] == "crashed (SIGABRT)" and why["raises"] == "exit code 1: ValueError: no such | thing"
    assert why["hangs"] == "not done after 3 s" and "is not there" in rows and "pip install" in why["is not there"]
    assert why["writes nonsense"].startswith("does not run: ") and "differs" in why["is wrong"]
    out = capsys.readouterr().out
    assert (folder / "peers.md").read_text().startswith("| model | ms | copies | aborts |")
    for part in ("| aborts |  | ", "no such / thing", "| differs |", "not installed", "geometric mean", "behind", "OpenVINO"):
        assert part in out
    assert not list(Path(folder).glob("**/*.onnx"))


def test_a_process_that_dies_while_it_measures_is_tried_without_openvino(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def died(command: Sequence[str], timeout: float) -> Ended:
        asked.append(json.loads(command[-1]))
        if asked[-1]["openvino"]:
            return Ended("", 1.0, "crashed (SIGSEGV)")
        return Ended('noise\n{"original": {"cpu_ms": 1.0}, "a": {"cpu_ms": 0.5, "ratio": [2.0, 1.9, 2.1]}}\n', 1.0)

    monkeypatch.setattr(side, "apart", died)
    found = side_by_side(file, {"a": file}, {"n": 3}, 0.1, openvino=True)
    assert [j["openvino"] for j in asked] == [True, False] and asked[0]["sizes"] == {"n": 3}
    assert found["OpenVINO"].why == "crashed" and found["a"].cpu_ms == 0.5
    monkeypatch.setattr(side, "apart", lambda *_: Ended("", 1.0, "crashed (SIGSEGV)"))
    assert side_by_side(file, {"a": file}, {}, 0.1)["a"].why == "measuring it crashed (SIGSEGV)"


def test_a_model_that_does_not_run_at_all(tmp_path: Path) -> None:
    made = model("agraph (float[2,3] x) => (float[2,3] y) { y = Abs(x) }")
    made.opset_import.append(onnx.helper.make_opsetid("house", 1))
    made.graph.node[0].domain = "house"
    onnx.save(made, tmp_path / "m.onnx")
    found = side.answer(
        {
            "original": str(tmp_path / "m.onnx"),
            "files": {"a": str(tmp_path / "m.onnx")},
            "sizes": {},
            "seconds": 0,
            "openvino": False,
            "seed": 0,
        }
    )
    assert "does not run" in found["original"]["why"] and found["a"]["why"] == "the original does not run"


def test_a_process_apart_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    late = tmp_path / "late"
    (tmp_path / "child.py").write_text(f"import time; time.sleep(1.5); open({str(late)!r}, 'w')")
    (tmp_path / "parent.py").write_text(f"import subprocess, sys; subprocess.run([sys.executable, {str(tmp_path / 'child.py')!r}])")
    ended = apart([sys.executable, str(tmp_path / "parent.py")], 0.7)
    assert ended.why == "not done after 0.7 s"
    time.sleep(1.2)
    assert not late.exists()


def test_the_tool_is_run_as_a_whole_and_its_summary_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def stub(command: Sequence[str], timeout: float) -> Ended:
        ran.append(list(command))
        folder = tmp_path / "runs" / "optimize" / "x"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "summary.json").write_text('{"status": "optimized"}')
        return Ended("", 2.0, "exit code 4" if len(ran) > 1 else "")

    monkeypatch.setattr(files, "apart", stub)
    words = (file, tmp_path / "o.onnx", {"n": 3}, ["search=greedy", "cost=roofline"], tmp_path / "runs", 9.0)
    assert files.tool(*words) == (Ended("", 2.0), {"status": "optimized"})
    assert ran[0][1].endswith("scripts/optimize.py") and Path(ran[0][1]).is_file()
    assert ran[0][-4:] == ["cost=measured", "dims.n=3", "search=greedy", "cost=roofline"]  # the last word on a key counts
    assert "a proof failed" in files.tool(*words)[0].why


# ---------------------------------------------------------------- words
def test_what_is_behind_is_told_only_beyond_noise_and_only_of_peers_that_are_right() -> None:
    def rows(over: dict[str, tuple[float, float, float]], wrong: str = "") -> list[Row]:
        seen = {t: Seen(1.0, 1.0, (1.0, 0.9, 1.1), 9, why="differs" if t == wrong else "") for t in ("onnxsim", "onnxslim")}
        return [
            Row("m", "original", 5, None, Seen(1.0, 1.0, (1.0, 1.0, 1.0))),
            *(Row("m", t, 4, 1.0, s) for t, s in seen.items()),
            Row("m", "cgorl", 3, 2.0, Seen(1.0, 1.0, (1.0, 0.9, 1.1), 9, over=over)),
        ]

    slower = {"onnxsim": (0.95, 0.94, 0.96), "onnxslim": (1.0, 0.99, 1.01), "OpenVINO": (0.5, 0.4, 0.6)}
    assert peers.behind(rows(slower)) == ["behind onnxsim on m: 0.950 times (0.940 to 0.960) as fast"]
    assert "on no model" in peers.behind(rows(slower, wrong="onnxsim"))[0]
    assert "on no model" in peers.behind(rows({"onnxsim": (0.99, 0.97, 1.01)}))[0]
    assert peers.matrix(rows(slower, wrong="onnxsim"))[2] == "| m | 1.00 | differs | 1.000 | 1.000 |"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model=none.onnx"], "there is neither a file 'none.onnx' nor a graph"),
        (["model=bert", "timing=fast"], "timing must be a number, not 'fast'"),
        (["model=bert", "dims.n=0"], "dims.n must be a whole number of at least 1"),
        (["fast"], "'fast' should read key=value"),
        (["models=."], "there is no .onnx file in the folder '.'"),
    ],
)
def test_words_that_cannot_be(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=said):
        peers.main(words)


def test_models_come_from_files_the_zoo_and_folders_whose_weights_are_restored(file: Path, tmp_path: Path) -> None:
    folder, into = tmp_path / "folder", tmp_path / "into"
    folder.mkdir()
    into.mkdir()
    onnx.save(model(TEXT), folder / "b.stripped.onnx")
    (folder / "restore.py").write_text(
        "import onnx\ndef restore(path):\n    m = onnx.load(path)\n    m.producer_name = 'restored'\n    return m\n"
    )
    found = dict(files.models(f"{file},bert", str(folder), into))
    assert list(found) == ["m", "bert", "b"] and onnx.load(found["b"]).producer_name == "restored"
    assert files.sizes(file, {"unbound": 7}) == {"n": 7} and files.sizes(file, {"n": 2, "k": 1}) == {"n": 2}
    assert files.nodes(file) == 4


# ---------------------------------------------------------------- the promise
def test_the_promise_is_measured_afresh(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ratios = iter([(1.2, 1.1, 1.3), (0.985, 0.97, 1.0), (0.95, 0.94, 0.96)])
    seeds: list[str] = []

    def tool(path: Path, output: Path, sizes: Any, rest: Sequence[str], runs: Path, timeout: float) -> tuple[Ended, dict[str, Any]]:
        seeds.append(rest[-1])
        kept = "original" if len(seeds) == 4 else "result"
        return Ended("", 1.0, "crashed" if len(seeds) == 5 else ""), {"gate": {"kept": kept, "after": {"times_as_fast": 1.25}}}

    monkeypatch.setattr(promise, "tool", tool)
    monkeypatch.setattr(promise, "side_by_side", lambda *_, **more: {"written": Seen(1.0, 1.0, next(ratios), 20)})
    with pytest.raises(SystemExit) as end:
        promise.main([f"model={file}", "count=5", "dims.n=3", f"runs={tmp_path}/runs", "seed=7"])
    assert end.value.code == 1
    out = capsys.readouterr().out
    assert seeds == [f"seed={k}" for k in range(7, 12)]
    assert "5 runs, 1 failed: 2 below 0.99 of the original's speed, 1 of them beyond noise" in out
    assert "worst 0.950" in out and "handed back 1 times" in out and "m: 0.950 to 1.200 in 4 runs" in out
    [folder] = (tmp_path / "runs" / "bench").iterdir()
    rows = list(csv.DictReader((folder / "promise.csv").open()))
    assert [r["ratio"] for r in rows] == ["1.2", "0.985", "0.95", "1.0", ""]


def test_a_promise_that_was_kept_ends_well(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promise, "tool", lambda *_: (Ended("", 1.0, ""), {"gate": {"kept": "original"}}))
    promise.main([f"model={file}", "count=2", "dims.n=3", f"runs={tmp_path}/runs"])
