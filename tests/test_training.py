"""scripts/train.py and scripts/sweep.py: what they write, exit codes, an interrupt, and no network where W&B is offline."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from cgorl import cli, config, sweep, training
from cgorl.agent import checkpoint
from cgorl.config import CONF
from cgorl.ir.onnx_io import save
from cgorl.tracking import Tracker
from tests.test_config import Watched, keys
from tests.texts import small

ROOT = Path(__file__).resolve().parents[1]
SMALL = ["zoo.image=32", "zoo.width=0.125", "zoo.depth=[1,1,1,1]", "zoo.classes=8", "device=v100"]
QUICK = ["encoder.hidden=8", "encoder.layers=1", "ppo.num_envs=2", "ppo.num_steps=8", "ppo.total_timesteps=48", "tracking=jsonl"]
REPVGG = ["model=repvgg_a0", *SMALL, *QUICK]
SWEPT = ["-m", *REPVGG[:-2], "ppo.total_timesteps=16", "tracking=jsonl"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.train(list(argv), "the script's help")
    said = capsys.readouterr()
    return code, said.out, said.err


def folder() -> Path:
    return max(Path("runs/train").iterdir(), key=lambda p: p.stat().st_mtime)


def lines(where: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (where / "metrics.jsonl").read_text().splitlines()]


def test_what_is_written_and_that_the_policy_searches(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *REPVGG)
    assert (code, err) == (0, "") and "all steps trained: 48 steps" in out and "% saved" in out
    where = folder()
    pictures, files = {"before.svg", "best.svg"}, {"best.onnx", "checkpoint.pt", "config.yaml", "metrics.jsonl", "policy.pt"}
    assert {p.name for p in where.iterdir()} == {*pictures, *files, "run.json", "summary.json", "trace.json"}
    told = lines(where)
    assert [t["global_step"] for t in told] == [16, 32, 48] and "losses/approx_kl" in told[0] and told[0]["rules"]
    row = json.loads((where / "summary.json").read_text())["graphs"][0]
    assert row["best_ms"] <= row["first_ms"]
    name = row["model"]
    assert [f"cost/first_ms/{name}" in t for t in told] == [True, False, False] and told[0][f"cost/first_ms/{name}"] == row["first_ms"]
    assert all(t["cost/best_share"] == t[f"cost/best_ms/{name}"] / row["first_ms"] <= t["cost/current_share"] + 1e-12 for t in told)
    assert told[-1]["cost/best_share"] == row["best_ms"] / row["first_ms"]
    ended = [t for t in told if "charts/episodic_return" in t]
    assert ended and all(t["charts/episodic_intrinsic_return"] > 0 for t in ended)
    about = json.loads((where / "run.json").read_text())
    assert about["command"] == shlex.join(["python", "scripts/train.py", *REPVGG]) and {"commit", "machine", "date"} <= set(about)
    given = ["model=repvgg_a0", *SMALL, "search=agent", f"search.checkpoint={where / 'checkpoint.pt'}", "output=o.onnx", "prove=false"]
    assert cli.optimize(given, "") == 0 and Path("o.onnx").is_file()
    assert run(capsys, *REPVGG, "ppo.total_timesteps=16", f"initial={where / 'policy.pt'}", "encoder.hidden=4", "runs=more")[0] == 0
    more = next(Path("more/train").iterdir())
    assert torch.load(more / "policy.pt", weights_only=True)["encoder"]["hidden"] == 8  # that of the policy it began with
    (where / "checkpoint.pt").write_text("broken")
    assert cli.optimize(given, "") == 1 and "is no checkpoint of an agent" in capsys.readouterr().err


def test_a_resumed_run_equals_one_that_was_not_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *REPVGG, "ppo.total_timesteps=64", "runs=whole")
    whole = lines(next(Path("whole/train").iterdir()))
    cfg = config.load_config("train", [*REPVGG, "ppo.total_timesteps=64"])

    def interrupt(update: training.Update) -> None:
        if update.steps == 32:
            raise KeyboardInterrupt

    from cgorl.tracking import Tracker

    cut = Tracker("cut", "train", "x")
    assert training.train(cfg, interrupt, cut).stopped == "interrupted"
    assert run(capsys, *REPVGG, "ppo.total_timesteps=64", f"resume={cut.folder / 'checkpoint.pt'}", "runs=rest")[0] == 0
    rest = lines(next(Path("rest/train").iterdir()))
    assert [t["global_step"] for t in rest] == [48, 64]
    for a, b in zip(whole[2:], rest, strict=True):
        same = {k for k in a if k.startswith(("losses", "charts/ep", "curiosity", "cost", "rules"))}
        assert {k: a[k] for k in same if a[k] == a[k]} == {k: b[k] for k in same if b[k] == b[k]}
    summaries = [json.loads(next(Path(d).glob("*/*/summary.json")).read_text())["graphs"] for d in ("whole", "rest")]
    assert summaries[0] == summaries[1]


def test_several_graphs_in_one_training(capsys: pytest.CaptureFixture[str]) -> None:
    other = Path("other.onnx")
    save(small("inception_v3"), other)
    code, out, err = run(capsys, *REPVGG, f"models=[{other}]", "ppo.total_timesteps=16", "runs=both")
    assert code == 0, err
    assert out.count("% ") >= 2
    where = next(Path("both/train").iterdir())
    assert {"trace_1.json", "trace_2.json", "best_1.onnx", "best_2.onnx"} <= {p.name for p in where.iterdir()}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["model=repvgg_a0", "icm.betta=1"], "did you mean 'icm.beta'?"),
        (["model=repvgg_a0", "icm=some"], "there is no icm=some"),
        ([*REPVGG, "icm.beta=2"], "icm.beta must be a number of at least 0 and at most 1"),
        ([*REPVGG, "env.horizon=0"], "env.horizon must be a whole number of at least 1"),
        ([*REPVGG, "env=dense", "env.reward=x"], "env.reward must be one of"),
        ([*REPVGG, "encoder.kind=mlp"], "encoder.kind must be one of"),
        ([*REPVGG, "resume=no.pt"], "there is no checkpoint 'no.pt'"),
        ([*REPVGG, "rules=none"], "no rule matches in 'repvgg_a0': there is nothing to learn"),
        ([*REPVGG, "search=greedy"], "no key 'search'"),
        (["model="], "there is nothing to train on"),
        (["model=no_such"], "no_such"),
    ],
)
def test_each_mistake_is_one_clear_line(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, *argv)
    assert code == 1 and says in err and err.startswith("error: ") and err.count("\n") == 1


def test_each_key_of_train_has_a_reader(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: set[str] = set()
    right = config.plain
    monkeypatch.setattr(config, "plain", lambda cfg: Watched(right(cfg), seen))
    assert run(capsys, *REPVGG, "ppo.total_timesteps=16")[0] == 0
    assert set(keys(CONF / "train.yaml")) <= seen | {"runs"}  # read as cfg.runs: the folder is there


def test_every_choice_of_every_group_trains(capsys: pytest.CaptureFixture[str]) -> None:
    short = [*REPVGG, "ppo.total_timesteps=16", "env.horizon=4"]
    for choice in ("env=terminal", "env=best", "encoder=gat", "encoder=gin", "encoder=none", "icm=none", "icm=count"):
        assert run(capsys, *short, choice, "encoder.hidden=8", "encoder.layers=1")[0] == 0, choice


def test_a_sweep_of_four_with_one_failing(capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.sweep([*SWEPT, "icm.beta=0.1,7", "seed=1,2"], "help")
    out = capsys.readouterr().out
    assert code == 1 and "failed: 2 of 4 jobs" in out and out.count("icm.beta must be") == 2 and "icm.beta=0.1 seed=2" in out
    [place] = Path("runs/sweep").iterdir()
    told = json.loads((place / "sweep.json").read_text())
    assert [job["words"] for job in told["jobs"]] == [f"icm.beta={b} seed={s}" for b in ("0.1", "7") for s in (1, 2)]
    assert told["command"].startswith("python scripts/sweep.py -m ") and f"report.py sweep={place}" in out
    jobs = {(f.parent, job["number"]): job for f in place.glob("jobs/*/job.json") for job in [json.loads(f.read_text())]}
    assert sorted(n for _, n in jobs) == [1, 2, 3, 4] and {job["sweep"] for job in jobs.values()} == {place.name}
    assert all((p / "checkpoint.pt").is_file() == (n < 3) == (not job["error"]) for (p, n), job in jobs.items())
    assert cli.sweep([*SWEPT, "icm=none,count"], "help") == 0
    assert "failed" not in capsys.readouterr().out


def test_a_sweep_with_an_unknown_key_says_so_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.sweep([*SWEPT, "icm.betta=1,2"], "help") == 1
    assert "icm.betta" in capsys.readouterr().err and not Path("runs").exists()
    assert len(sweep.jobs([*SWEPT[1:], "seed=1,2,3"])) == 3


def test_help_names_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.train(["--help"], "the script's help") == 0 and cli.sweep(["-m"], "help") == 1
    out = capsys.readouterr().out
    assert "icm=count|default|none" in out and "resume:" in out and "search=" not in out


def test_an_interrupt_keeps_the_checkpoint() -> None:
    script = ROOT / "scripts" / "train.py"
    argv = [sys.executable, str(script), *REPVGG, "ppo.total_timesteps=1000000"]
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not list(Path("runs").glob("train/*/checkpoint.pt")) and time.monotonic() < end:
        time.sleep(0.2)
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=60)
    assert job.returncode == 130 and "interrupted:" in out, err
    where = folder()
    assert torch.load(where / "checkpoint.pt", weights_only=True)["learner"]["updates"] == len(lines(where))
    assert (where / "summary.json").is_file()


@pytest.mark.parametrize("at", ["checkpoint.save", "Tracker.log", "Tracker.write"])
def test_an_interrupt_while_files_are_written_comes_after_them(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name = {"checkpoint": checkpoint, "Tracker": Tracker}[at.partition(".")[0]], at.partition(".")[2]
    right = getattr(owner, name)

    def pressed(*args: Any, **more: Any) -> Any:
        if name != "write" or args[1] == "trace.json":
            signal.raise_signal(signal.SIGINT)
        return right(*args, **more)

    monkeypatch.setattr(owner, name, pressed)
    cfg = config.load_config("train", [*REPVGG, "ppo.total_timesteps=64"])  # 4 updates
    done = training.train(cfg, tracker=Tracker("runs", "train", "x"))
    where = folder()
    assert done.stopped == ("all steps trained" if name == "write" else "interrupted") and (where / "summary.json").is_file()
    updates = torch.load(where / "checkpoint.pt", weights_only=True)["learner"]["updates"]
    assert updates == len(lines(where)) == (4 if name == "write" else 1)


def test_wandb_offline_keeps_all_and_calls_nobody(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if find_spec("wandb") is None:  # not imported here: what it reports of itself is turned off before it is
        pytest.skip("wandb is not installed")
    called: list[Any] = []
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    quit_now = threading.Event()

    def listen() -> None:
        while not quit_now.is_set():
            try:
                caller = listener.accept()[0]
                caller.settimeout(1)
                called.append(caller.recv(200))
            except TimeoutError:
                continue

    thread = threading.Thread(target=listen)
    thread.start()
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "WANDB_BASE_URL"):
        monkeypatch.setenv(name, here)  # whoever calls anybody calls here
    monkeypatch.delenv("NO_PROXY", raising=False)
    for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.delenv(name, raising=False)
    try:
        code, _, err = run(capsys, *REPVGG, "tracking=offline")
    finally:
        for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR"):
            os.environ.pop(name, None)
        quit_now.set()
        thread.join()
        listener.close()
    assert (code, err) == (0, "") and called == []
    assert list(folder().glob("wandb/offline-run-*/run-*.wandb")) and len(lines(folder())) == 3


def test_without_wandb_nothing_is_lost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert run(capsys, *REPVGG, "tracking=offline")[0] == 0 and len(lines(folder())) == 3
    assert run(capsys, *REPVGG, "tracking=offline", "tracking.mode=sometimes")[0] == 1


def test_online_needs_a_login(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    code, _, err = run(capsys, *REPVGG[:-1], "tracking=online")
    assert code == 1 and "tracking=online needs a login" in err and err.count("\n") == 1


def test_a_sweep_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    code = cli.sweep([*SWEPT, "icm.beta=0.1,7", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"], "help")
    out = capsys.readouterr().out
    assert code == 1 and "failed: 1 of 2 jobs" in out and "icm.beta must be" in out and "2 jobs by hydra/launcher=joblib" in out
    assert sum((p / "checkpoint.pt").is_file() for p in Path("runs").glob("sweep/*/jobs/*")) == 1
    assert len(list(Path("runs").glob("sweep/*/jobs/*/job.json"))) == 2


@pytest.mark.parametrize(("launcher", "plugin"), [("ray", "hydra_ray_launcher"), ("submitit_local", "hydra_submitit_launcher")])
@pytest.mark.slow
def test_a_sweep_by_ray_or_as_slurm_would(launcher: str, plugin: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(f"hydra_plugins.{plugin}", reason=f"{plugin} is not installed")
    more = ["+hydra.launcher.ray.init.num_cpus=2"] if launcher == "ray" else []
    assert cli.sweep([*SWEPT, "seed=1,2", f"hydra/launcher={launcher}", *more], "help") == 0
    assert "failed" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("end", "code", "said"), [(KeyboardInterrupt, 130, "interrupted"), (RuntimeError("a b"), 1, "gave up: RuntimeError")]
)
def test_what_ended_is_told_where_a_launcher_does_not(
    end: Any, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_and_no_more(launcher: Any, work: Any, count: int, folder: Path) -> Any:
        work({"job": 1})
        raise end

    monkeypatch.setattr(config, "launch", one_and_no_more)
    assert cli.sweep([*SWEPT, "seed=1,2", "hydra/launcher=joblib"], "help") == code
    out = capsys.readouterr().out
    assert "failed: 1 of 2 jobs" in out and out.count(said) == 1 and "% │ runs/sweep" in out


def test_a_sweep_reads_as_one_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.sweep([*SWEPT, "icm=none,count", "seed=1,2"], "help") == 0
    command = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("compare "))
    assert cli.report(command.split()[3:], "help") == 0
    out = capsys.readouterr().out
    assert "4 jobs, all of which ended." in out and "differences to icm=" in out and "report.html" in out


def test_a_launcher_that_is_not_there_says_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    if find_spec("hydra_plugins.hydra_ray_launcher") is not None:
        pytest.skip("hydra-ray-launcher is installed")
    assert cli.sweep([*SWEPT, "hydra/launcher=ray"], "help") == 1
    assert "hydra/launcher=ray is not installed: pip install" in capsys.readouterr().err and not list(Path("runs").glob("sweep/*"))
