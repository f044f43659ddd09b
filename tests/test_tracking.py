"""Tracker: a folder for each run, never shared, and one clear error where there is none to be had."""

import itertools
import json
import multiprocessing
import os
from pathlib import Path

import pytest

from cgorl.tracking import Tracker, TrackError


def _made(root: str) -> str:
    return str(Tracker(root, "optimize", "same").folder)


def test_runs_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        folders = pool.map(_made, [str(tmp_path)] * 12)
    folders += [_made(str(tmp_path)) for _ in range(8)]
    assert len(set(folders)) == 20 and all(Path(f).is_dir() for f in folders)


@pytest.mark.parametrize("label", ["a b,c='x'", "../../up", "ünï", "x" * 500, "", "-dash", "a\nb"])
def test_any_label_makes_a_folder_inside_the_root(tmp_path: Path, label: str) -> None:
    folder = Tracker(tmp_path, "optimize", label).folder
    assert folder.parent == tmp_path / "optimize" and folder.is_dir()


def test_metrics_are_lines_that_are_there_at_once(tmp_path: Path) -> None:
    run = Tracker(tmp_path, "optimize", "m")
    for k in range(3):
        run.log(step=k, best_ms=float("inf") if k == 0 else 1.5)
        lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == list(range(k + 1))
    assert all(a["seconds"] <= b["seconds"] for a, b in itertools.pairwise(lines))


def test_seconds_may_be_those_of_a_search_and_lines_may_be_appended(tmp_path: Path) -> None:
    run = Tracker(tmp_path, "optimize", "m")
    run.log(seconds=7.5)
    assert json.loads((run.folder / "metrics.jsonl").read_text()) == {"seconds": 7.5}
    for k in range(2):
        run.append("rows.jsonl", {"k": k})
    assert (run.folder / "rows.jsonl").read_text() == '{"k": 0}\n{"k": 1}\n'


def test_write_takes_mappings_and_text(tmp_path: Path) -> None:
    run = Tracker(tmp_path, "optimize", "m")
    assert json.loads(run.write("a.json", {"k": [1, Path("x")]}).read_text()) == {"k": [1, "x"]}
    assert run.write("b.txt", "é\n").read_text(encoding="utf-8") == "é\n"


def test_a_root_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(TrackError, match="cannot make the run folder"):
        Tracker(tmp_path / "runs", "optimize", "m")


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    run = Tracker(tmp_path, "optimize", "m")
    (run.folder / "metrics.jsonl").mkdir()
    with pytest.raises(TrackError, match=r"cannot write '.*metrics\.jsonl'"):
        run.log(step=1)


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    run = Tracker(tmp_path, "optimize", "m")
    (run.folder / "summary.json").symlink_to("/dev/full")
    with pytest.raises(TrackError, match=os.strerror(28)):
        run.write("summary.json", {"a": 1})
