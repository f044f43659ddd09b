"""Limits: a process in a cell takes no more than it may, and has nothing of its maker's."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from cgorl.background import Background, Cell
from cgorl.limits import Limits, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")

PROBE = """
import os, sys, threading, time
from cgorl import background

def probe(worker, values):
    what = values["what"]
    if what == "memory":
        bytearray(4 << 30)
    elif what == "cpu":
        while True:
            pass
    elif what == "file":
        with open("big", "wb") as f:
            f.write(bytes(2 << 20))
    elif what == "sleep":
        time.sleep(600)
    worker.say("end", env=dict(os.environ), cwd=os.getcwd(), path=sys.path)

def main():
    background.main({"probe": probe})
"""
LIMITS = Limits(memory=2 << 30, cpu_seconds=1, file_bytes=1 << 20, threads=1)


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cell:
    lib, folder = tmp_path / "lib", tmp_path / "cell"
    lib.mkdir()
    folder.mkdir()
    (lib / "probing.py").write_text(PROBE)
    (folder / "probing.py").write_text("raise SystemExit('imported from the cell')")
    monkeypatch.setenv("PYTHONPATH", str(lib))
    monkeypatch.setenv("SECRET_TOKEN", "of the maker")
    return Cell(folder, LIMITS, "probing")


def test_a_cell_has_no_secret_and_imports_nothing_from_its_folder(cell: Cell) -> None:
    end = Background("probe", {"what": "look"}, cell=cell).wait(60)
    assert end["kind"] == "end", end
    assert "SECRET_TOKEN" not in end["env"] and end["env"]["OMP_NUM_THREADS"] == "1"
    assert end["cwd"] == str(cell.folder) and str(cell.folder) not in end["path"] and "" not in end["path"]
    assert end["env"]["TMPDIR"] == end["env"]["HOME"] == str(cell.folder)


@pytest.mark.parametrize(
    ("what", "why"),
    [("memory", "not enough memory"), ("cpu", "SIGXCPU"), ("file", "File too large")],
)
def test_a_cell_ends_where_it_asks_too_much(cell: Cell, what: str, why: str) -> None:
    end = Background("probe", {"what": what}, cell=cell).wait(60)
    assert end["kind"] == "error" and why in end["text"]


def test_a_dropped_cell_is_gone(cell: Cell) -> None:
    job = Background("probe", {"what": "sleep"}, cell=cell)
    job.drop()
    assert job.wait(30)["kind"] == "error"
    until = time.monotonic() + 30
    while Path(f"/proc/{job.pid}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_an_environment_is_made_of_what_is_known(tmp_path: Path) -> None:
    made = environment(
        tmp_path, 2, {"PATH": "/bin", "DATABASE_URL": "postgres://u:p@h/d", "CGORL_SECRET_KEY": "s", "OPENBLAS_CORETYPE": "Z"}
    )
    assert made["PATH"] == "/bin" and made["OPENBLAS_CORETYPE"] == "Z" and made["OMP_NUM_THREADS"] == "2"
    assert not {"DATABASE_URL", "CGORL_SECRET_KEY"} & made.keys()
