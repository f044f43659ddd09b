"""The command line: one clear line for each mistake, the exit code that says what happened, and no partial file."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from cgorl import cli, pipeline
from cgorl.certificate import trace
from cgorl.certificate.rewrite import RewriteProof
from cgorl.tracking import Tracker, TrackError
from tests.texts import model

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "optimize.py"
BERT = ("model=bert", "zoo.layers=1", "zoo.hidden=8", "zoo.heads=2", "zoo.seq=4")
REPVGG = ("model=repvgg_a0", "zoo.image=32", "zoo.width=0.125", "zoo.depth=[1,1,1,1]", "zoo.classes=8")
ROOT_USER = os.geteuid() == 0


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.optimize(list(argv), "the script's help")
    said = capsys.readouterr()
    return code, said.out, said.err


def fails(capsys: pytest.CaptureFixture[str], says: str, *argv: str, code: int = 1) -> None:
    """The job ends with `code` and one line on stderr that says `says`; of what was asked for nothing is written."""
    before = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()}
    found, _, err = run(capsys, *argv)
    assert found == code and err.count("\n") == 1 and says in err and "Traceback" not in err and "fault of cgorl" not in err, err
    after = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file() and "runs" not in p.parts}
    assert after == {p: data for p, data in before.items() if "runs" not in p.parts}


def simple(path: str = "m.onnx", opset: int = 17, dims: str = "2,3") -> None:
    Path(path).write_bytes(model(f"agraph (float[{dims}] x) => (float[{dims}] y) {{ y = Relu(x) }}", opset).SerializeToString())


# ---------------------------------------------------------------- input that is none
def test_input_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    simple()
    data = Path("m.onnx").read_bytes()
    Path("cut.onnx").write_bytes(data[: len(data) // 2])
    Path("text.onnx").write_text("hello")
    Path("empty.onnx").write_text("")
    fails(capsys, "there is no file 'none.onnx'", "model=none.onnx", "output=o.onnx")
    fails(capsys, "'text.onnx' is not an ONNX file, or is cut short", "model=text.onnx", "output=o.onnx")
    fails(capsys, "'cut.onnx' is not an ONNX file, or is cut short", "model=cut.onnx", "output=o.onnx")
    fails(capsys, "'empty.onnx' holds no ONNX model", "model=empty.onnx", "output=o.onnx")
    fails(capsys, "is a folder", f"model={Path.cwd()}", "output=o.onnx")
    fails(capsys, "did you mean 'inception_v3'?", "model=inception_v4", "output=o.onnx")
    fails(capsys, "bert has no parameter 'hiden' (did you mean 'hidden'?)", *BERT, "zoo.hiden=3", "output=o.onnx")
    fails(capsys, "heads must divide hidden", *BERT, "zoo.heads=3", "output=o.onnx")
    fails(capsys, "parameters (image) are for graphs of the zoo", "model=m.onnx", "zoo.image=3", "output=o.onnx")


def test_external_data_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    made = model("agraph (float[2,512] x) => (float[2,512] y) <float[512] b> { y = Add(x, b) }")
    made.graph.initializer.append(numpy_helper.from_array(np.ones(512, np.float32), "b"))
    onnx.save(made, "e.onnx", save_as_external_data=True, location="e.data", size_threshold=0)
    Path("e.data").unlink()
    fails(capsys, "external data file 'e.data' of tensor 'b' is missing", "model=e.onnx", "output=o.onnx")


def test_a_symbol_without_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    simple(dims="batch,3")
    fails(capsys, "dim 'batch' of input 'x' has no size; give one, e.g. dims.batch=8", "model=m.onnx", "output=o.onnx")
    fails(
        capsys, "the model has no dim 'bach' to give a size to; it has batch", "model=m.onnx", "dims.bach=2", "unbound=1", "output=o.onnx"
    )
    assert run(capsys, "model=m.onnx", "dims.batch=2", "output=o.onnx")[0] == 0


@pytest.mark.parametrize(
    "wrong", ["serch=x", "search=gredy", "device.peak_flopz=1", "rules.exclude=[nope]", "search.least_mss=1", "seconds=abc", "dims.batch=0",
              "device.peak_flops=abc", "search.least_ms=abc", "rules.growth=x", "--fast", "exit_codes=fancy", "versus=gredy"],
)  # fmt: skip
def test_a_wrong_configuration_is_told_before_anything_is_loaded(wrong: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(pipeline, "load_model", None)
    fails(capsys, "error: ", *BERT, wrong, "output=o.onnx")
    assert not Path("runs").exists()


# ---------------------------------------------------------------- output that cannot be
def test_output_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    fails(capsys, "there is no folder 'none' to write 'o.onnx' into", *BERT, "output=none/o.onnx")
    fails(capsys, "is a folder; give the name of a file", *BERT, f"output={Path.cwd()}")
    fails(capsys, "is a device or pipe", *BERT, "output=pipe")
    fails(capsys, "is a device or pipe", *BERT, "output=/dev/full")
    assert not Path("runs").exists()


@pytest.mark.skipif(ROOT_USER, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    Path("ro").mkdir(mode=0o555)
    fails(capsys, "no right to write into 'ro'", *BERT, "output=ro/o.onnx")
    fails(capsys, "cannot make the run folder", *BERT, "runs=ro/runs", "output=o.onnx")


def test_a_run_folder_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    fails(capsys, "cannot make the run folder 'file/optimize/", *BERT, "runs=file", "output=o.onnx")


@pytest.mark.parametrize("known", [True, False])
def test_no_space_left(known: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, no part of the new one does, and the trace of the search is kept."""
    Path("o.onnx").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28 if known else 5, os.strerror(28 if known else 5))

    monkeypatch.setattr(os, "fsync", full)
    fails(capsys, "there is no space left" if known else "cannot write", *REPVGG, "output=o.onnx")
    assert sorted(p.name for p in Path().iterdir()) == ["o.onnx", "runs"]
    [folder] = Path("runs/optimize").iterdir()
    assert json.loads((folder / "trace.json").read_text())["steps"]


def test_a_full_run_folder_does_not_cost_the_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = Tracker._put

    def full(self: Tracker, name: str, text: str, mode: str) -> Path:
        if name in ("config.yaml", "run.json"):  # what is written before there is anything to lose
            return right(self, name, text, mode)
        raise TrackError(f"cannot write '{name}': No space left on device")

    monkeypatch.setattr(Tracker, "_put", full)
    code, _, err = run(capsys, *REPVGG, "output=o.onnx")
    assert code == 1 and "No space left" in err and onnx.load("o.onnx").graph.node


# ---------------------------------------------------------------- names of files
@pytest.mark.parametrize(
    "name",
    ["a b.onnx", "a=b.onnx", 'it\'s "x".onnx', "a,b.onnx", "ünï.onnx", "-dash.onnx", "a\\b.onnx", "${x}.onnx", "[red].onnx", "null.onnx"],
)
def test_any_file_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    simple(name)
    code, out, err = run(capsys, f"model={name}", f"output=o_{name}", "rules=none")
    assert (code, err) == (0, "") and f"written   o_{name} (" in out
    assert onnx.load(f"o_{name}").graph.node


def test_output_may_take_the_place_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    made = model("agraph (float[2,512] x) => (float[2,512] y) { a = Neg(x) b = Identity(a) y = Add(b, w) }")
    made.graph.initializer.append(numpy_helper.from_array(np.arange(512, dtype=np.float32), "w"))
    onnx.save(made, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert run(capsys, "model=m.onnx", "output=m.onnx", "rules=none")[0] == 0
    again = onnx.load("m.onnx")
    assert [n.op_type for n in again.graph.node] == ["Neg", "Add"]
    assert np.array_equal(numpy_helper.to_array(again.graph.initializer[0]), np.arange(512))


# ---------------------------------------------------------------- what comes of it
def test_what_is_shown_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *REPVGG, "output=o.onnx")
    assert (code, err) == (0, "") and onnx.load("o.onnx").graph.node
    for part in (
        "coverage ",
        "operators",
        "largest rewrites",
        "nodes ",
        "cost ",
        "weights ",
        "proof ",
        "status    optimized",
        "written ",
        "run ",
    ):
        assert part in out
    [folder] = Path("runs/optimize").iterdir()
    assert sorted(p.name for p in folder.iterdir()) == [
        *("anytime.png", "config.yaml", "ledger.json", "metrics.jsonl", "run.json", "summary.json", "trace.json")
    ]
    told = json.loads((folder / "summary.json").read_text())
    assert told["status"] == "optimized" and told["files"] == ["o.onnx"] and told["proof"]["whole"]["ok"]
    assert len(json.loads((folder / "ledger.json").read_text())["rewrites"]) == told["rewrites"]
    assert [json.loads(line)["expansions"] for line in (folder / "metrics.jsonl").read_text().splitlines()][-1] == told["search"][
        "expansions"
    ]


def test_another_search_for_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    """What it comes to by itself, with the same rules, prices and limits; the difference is that of the two costs."""
    assert "versus" not in run(capsys, *REPVGG)[1]
    code, out, err = run(capsys, *REPVGG, "search=beam", "search.width=1", "search.patience=1", "versus=greedy")
    assert (code, err) == (0, "") and re.search(r"versus    greedy alone: (\S+) ms, not proven; beam found \1 ms \(the same\)", out)
    _, out, _ = run(capsys, *REPVGG, "expansions=9", "versus=random_walk", "seed=5")
    told = re.search(r"versus    random_walk alone: (\S+) ms \(stopped: expansions\), not proven; greedy found (\S+) ms \((\S+) %\)", out)
    assert told and abs(100 * (float(told[2]) / float(told[1]) - 1) - float(told[3])) < 0.02 and float(told[3]) < 0
    [summary] = [s for f in Path("runs/optimize").iterdir() if "versus" in (s := json.loads((f / "summary.json").read_text())["search"])
                 and s["versus"] == "random_walk"]  # fmt: skip
    assert summary["name"] == "greedy" and abs(summary["versus_ms"] - float(told[1])) < 1e-4


def test_no_picture_of_a_single_point_or_without_matplotlib(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    simple()
    assert run(capsys, "model=m.onnx")[0] == 0 and not list(Path("runs").glob("*/*/anytime.png"))
    monkeypatch.delattr("cgorl.report.figures")
    monkeypatch.setitem(sys.modules, "cgorl.report.figures", None)
    assert run(capsys, *REPVGG)[0] == 0 and not list(Path("runs").glob("*/*/anytime.png"))


def test_without_output_only_the_run_folder_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *BERT, "rules=none", "output=null", "runs=elsewhere")[0] == 0
    assert [p.name for p in Path().iterdir()] == ["elsewhere"]


def test_large_models_name_every_file_written(capsys: pytest.CaptureFixture[str]) -> None:
    made = model("agraph (float[2,512] x) => (float[2,512] y) { y = Add(x, w) }")
    made.graph.initializer.append(numpy_helper.from_array(np.ones(512, np.float32), "w"))
    onnx.save(made, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert re.findall(r"written   (\S+) ", run(capsys, "model=m.onnx", "output=o.onnx")[1]) == ["o.onnx", "o.onnx.data"]


def test_exit_codes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    simple()
    simple("old.onnx", opset=6)
    assert run(capsys, "model=m.onnx")[0] == 0
    assert run(capsys, "model=m.onnx", "exit_codes=detailed", "output=o.onnx")[0] == 10
    assert Path("o.onnx").exists()
    fails(capsys, "refused: the model uses opset 6", "model=old.onnx", "output=p.onnx", code=3)
    assert run(capsys, *REPVGG, "exit_codes=detailed")[0] == 0
    monkeypatch.setattr(trace, "prove_rewrite", lambda g, m, s, r: RewriteProof(m.rule.name, 1.0, "the result differs"))
    code, out, err = run(capsys, *REPVGG, "output=q.onnx")
    assert (code, err) == (4, "") and "status    proof failed" in out and onnx.load("q.onnx").graph.node


def test_a_fault_of_cgorls_own_is_one_line_and_its_traceback_is_kept(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(pipeline, "optimize", lambda *_: 1 / 0)
    code, _, err = run(capsys, *BERT)
    assert code == 1 and err.count("\n") == 1 and "a fault of cgorl's: ZeroDivisionError" in err
    assert "Traceback" in Path(re.search(r"details in (.*)\)", err)[1]).read_text()  # type: ignore[index]


def test_an_interrupt_before_there_is_a_result(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: Any, **more: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(trace, "compare", press)
    fails(capsys, "interrupted before there was a proven result; nothing was written", *REPVGG, "output=o.onnx", code=130)


def test_help_names_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, code in ((["--help"], 0), (["-h"], 0), ([], 1), ([*BERT, "--help"], 0)):
        found, out, _ = run(capsys, *argv)
        assert found == code and out.startswith("the script's help") and "evaluations: null" in out


# ---------------------------------------------------------------- in a process of its own
def start(*argv: str, code: str = "", **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code] if code else [sys.executable, str(SCRIPT)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*command, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, **more)


def test_help_is_quick() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start("--help")
    out, err = process.communicate(timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0 and "keys" in out and err == ""
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


def test_whoever_reads_the_output_may_leave() -> None:
    process = start(*REPVGG, "output=o.onnx")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=60)
    assert "Traceback" not in err and "Exception" not in err and err.count("\n") <= 1
    assert process.returncode in (0, 1)


SLOWLY = """
import sys, time
from cgorl import cli
from cgorl.cost.roofline import Roofline
right = Roofline.price
def slow(self, graph, edit):
    time.sleep(0.02)
    return right(self, graph, edit)
Roofline.price = slow
sys.exit(cli.optimize(sys.argv[1:], ""))
"""


def test_ctrl_c_in_the_search_writes_the_best_so_far_with_its_proof() -> None:
    process = start(*REPVGG, "output=o.onnx", code=SLOWLY)
    wanted = time.monotonic() + 60
    while time.monotonic() < wanted and not [f for f in Path().glob("runs/optimize/*/metrics.jsonl") if f.read_text().count("\n") >= 3]:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "") and "search stopped: interrupted" in out and "the whole agrees" in out
    assert 0 < sum(n.op_type == "BatchNormalization" for n in onnx.load("o.onnx").graph.node) < 10


@pytest.mark.parametrize("after", [0.1, 0.5, 1.0])
def test_ctrl_c_at_any_time_leaves_no_traceback(after: float) -> None:
    """While modules are imported, among others."""
    code = "import sys; from cgorl import cli; print('on', flush=True); sys.exit(cli.optimize(sys.argv[1:], ''))"
    process = start(*REPVGG, "output=o.onnx", code=code)
    assert process.stdout is not None and process.stdout.readline() == "on\n"
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode in (0, -signal.SIGINT):  # done before the signal came, or while the interpreter was going down
        assert onnx.load("o.onnx").graph.node
    else:
        assert process.returncode == 130 and err == "interrupted before there was a proven result; nothing was written\n"
        assert not Path("o.onnx").exists()


def test_ctrl_c_while_the_result_is_written_is_too_late_to_lose_it() -> None:
    """Whatever says "nothing was written" must be true, so a save that has begun ends."""
    code = """
import os, signal, sys
from cgorl import cli, pipeline
from cgorl.certificate import trace
save = pipeline.save
def pressed(graph, path):
    os.kill(os.getpid(), signal.SIGINT)
    found = save(graph, path)
    os.kill(os.getpid(), signal.SIGINT)
    return found
pipeline.save = pressed
sys.exit(cli.optimize(sys.argv[1:], ""))
"""
    process = start(*REPVGG, "output=o.onnx", code=code)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "") and "written   o.onnx" in out
    assert onnx.load("o.onnx").graph.node


def test_a_search_goes_on_from_its_checkpoint() -> None:
    """Stopped by a budget and started again with a larger one, it comes out as one that never stopped."""
    ran = [
        cli.optimize([*REPVGG, "search=backtracking", f"expansions={n}", f"output={name}.onnx", f"checkpoint={file}", "prove=false"], "")
        for n, name, file in ((12, "a", "c.json"), (30, "b", "c.json"), (30, "whole", "other.json"))
    ]
    assert ran == [0, 0, 0]
    assert Path("b.onnx").read_bytes() == Path("whole.onnx").read_bytes()
    spent = [json.loads(Path(f).read_text().split("\n", 1)[1])["spent"]["expansions"] for f in ("c.json", "other.json")]
    assert spent[0] == spent[1] > 12


@pytest.mark.parametrize(("path", "said"), [("nowhere/c.json", "no folder"), (".", "folder")])
def test_a_checkpoint_that_cannot_be_is_an_error_at_once(path: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.optimize([*REPVGG, f"checkpoint={path}"], "") == 1
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("search=beam search.width=-1", "search.width must be a whole number of at least 0, not -1"),
        ("search=beam search.width=1.5", "search.width must be a whole number"),
        ("search=beam search.width=abc", "search.width must be a whole number"),
        ("search=backtracking search.alpha=nan", "search.alpha must be a number of at least 1"),
        ("search=backtracking search.alpha=null", "search.alpha must be a number of at least 1"),
        ("search=backtracking search.queue=0", "search.queue must be"),
        ("search=annealing search.cold=0", "search.cold must be a number above 0, not 0"),
        ("search=annealing search.steps=0", "search.steps must be"),
        ("search=random_walk search.walks=-1", "search.walks must be"),
        ("search=lookahead search.steps=0", "search.steps must be"),
        ("search=exhaustive search.growth=abc", "search.growth must be"),
        ("versus=[]", "versus must be the name of a search"),
        ("checkpoint=5", "checkpoint must be the name of a file"),
        ("seed=1,2", "'seed' takes one value here"),
    ],
)
def test_a_search_that_cannot_be_is_one_sentence(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    fails(capsys, said, *REPVGG, *words.split())


def test_a_search_that_draws_and_finds_nothing_does_not_call_it_optimal(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.optimize([*BERT, "rules=none", "search=annealing", "search.steps=1", "exit_codes=detailed"], "") == 11
    assert "nothing found" in capsys.readouterr().out


def test_a_checkpoint_of_another_search_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.optimize([*REPVGG, "checkpoint=c.json", "expansions=3"], "") == 0
    assert cli.optimize([*REPVGG, "checkpoint=c.json", "search=beam"], "") == 1
    err = capsys.readouterr().err
    assert "other settings" in err and err.count("\n") == 1


def test_a_large_model_goes_through_files() -> None:
    """The limit is lowered here; a table of 2.2 GB, by hand, takes 23 s and 174 MB."""
    rows, columns = 50_000, 64
    table = TensorProto(name="e", data_type=TensorProto.FLOAT, dims=[rows, columns], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "t.bin"), ("offset", "0"), ("length", str(rows * columns * 4))):
        table.external_data.add(key=key, value=value)
    with Path("t.bin").open("wb") as f:
        f.truncate(rows * columns * 4)
    made = model("agraph (int64[4] i) => (float[4,64] y) { h = Gather(e, i) n = Neg(h) y = Neg(n) }")
    made.graph.initializer.append(table)
    Path("m.onnx").write_bytes(made.SerializeToString())
    process = start(
        "model=m.onnx",
        "output=o.onnx",
        code=SLOWLY.replace("from cgorl import cli", "from cgorl import cli\nfrom cgorl.certificate import pair\npair.LARGE_BYTES = 1000"),
    )
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert Path("o.onnx.data").stat().st_size == rows * columns * 4 or "already optimal" in out
