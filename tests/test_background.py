"""Jobs in a process of their own: how they go, how they are stopped, and what is said of what goes wrong."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import cgorl
from cgorl.background import Background

REPVGG = {"model": "repvgg_a0", "zoo": {"image": 32}}


def test_an_optimization_says_how_it_goes_and_what_came_of_it(tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    job = Background("optimize", {**REPVGG, "expansions": 6, "runs": str(tmp_path)}, told.append)
    end = job.wait(120)
    assert end["kind"] == "end", end
    stages = [m["stage"] for m in told if m["kind"] == "stage"]
    assert stages[0] == "load" and "search" in stages and stages[-1] == "save" and stages.index("search") < stages.index("prove")
    assert end["summary"]["cost_ms"]["final"] < end["summary"]["cost_ms"]["initial"]
    [[file, size]] = end["files"]
    assert Path(file).stat().st_size == size and Path(file).parent == job.folder
    assert cgorl.verify(cgorl.load("repvgg_a0", image=32), file)
    assert not job.running and (job.folder / "summary.json").is_file()


def test_a_stopped_search_keeps_its_best(tmp_path: Path) -> None:
    found = threading.Event()
    first = cgorl.optimize("repvgg_a0", zoo={"image": 32}, prove=False, expansions=0).initial_cost_ms

    def tell(message: Mapping[str, Any]) -> None:
        if message.get("point") and message["point"][1] < first:
            found.set()

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a kernel of Jupyter's
    try:
        job = Background("optimize", {**REPVGG, "search": "backtracking", "seconds": 600, "runs": str(tmp_path)}, tell)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.wait(120)
    job.stop()
    job.stop()  # an impatient person's second time takes nothing away
    end = job.wait(120)
    assert end["kind"] == "end", end
    assert end["summary"]["search"]["stopped"] == "interrupted"
    assert end["summary"]["proof"]["whole"]["ok"] and end["files"]


def test_two_jobs_at_once_have_folders_of_their_own(tmp_path: Path) -> None:
    values = {**REPVGG, "expansions": 3, "prove": False, "runs": str(tmp_path)}
    pair = [Background("optimize", values) for _ in range(2)]
    ends = [job.wait(120) for job in pair]
    assert [e["kind"] for e in ends] == ["end", "end"]
    assert pair[0].folder != pair[1].folder
    assert ends[0]["summary"]["cost_ms"] == ends[1]["summary"]["cost_ms"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": "repvgg"}, "repvgg"),
        ({"model": "none.onnx"}, "none.onnx"),
        ({"model": "bert", "search": "bream"}, "there is no search=bream"),
        ({"model": "bert", "seconds": "long"}, "seconds must be a number"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    job = Background("optimize", {**values, "runs": str(tmp_path)})
    end = job.wait(120)
    assert end["kind"] == "error" and said in end["text"]
    assert "Traceback" not in end["text"] and "fault" not in end["text"]
    with pytest.raises(RuntimeError, match=r"\w"):
        _ = job.folder


def test_a_dropped_job_says_so(tmp_path: Path) -> None:
    job = Background("optimize", {**REPVGG, "runs": str(tmp_path)})
    job.drop()
    assert "ended from outside" in job.wait(120)["text"]


def test_it_ends_with_whoever_began_it(tmp_path: Path) -> None:
    job = Background("optimize", {**REPVGG, "search": "backtracking", "seconds": 600, "runs": str(tmp_path)})
    assert job.folder.parent == tmp_path / "optimize"
    assert job._process.stdin is not None
    job._process.stdin.close()  # as when the notebook's kernel dies
    end = job.wait(60)
    assert end["kind"] == "error" and "the process ended without a result" in end["text"]


def test_a_training_ends_with_its_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    small = {"ppo.total_timesteps": 32, "ppo.num_envs": 1, "ppo.num_steps": 16, "tracking": "jsonl", "icm": "none"}
    job = Background("train", {**REPVGG, **small, "runs": str(tmp_path)})
    end = job.wait(200)
    assert end["kind"] == "end" and end["stopped"] == "all steps trained", end
    assert (job.folder / "checkpoint.pt").is_file()
