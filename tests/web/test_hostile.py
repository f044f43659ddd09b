"""Hostile files end in a refusal within seconds, with little memory; strange ones end; none reaches out of its cell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.web.hostile import STRANGE, WRONG, Files
from tests.web.serving import ROOT

MEMORY = 600 << 20


def run(root: Path, kind: str, corpus: Mapping[str, Files]) -> dict[str, Any]:
    """What came of each upload, by name."""
    for name, files in corpus.items():
        (root / name).mkdir(parents=True)
        for file, content in files.items():
            (root / name / file).write_bytes(content)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.web.cells", str(root), kind], capture_output=True, text=True, check=False, env=env, cwd=ROOT
    )
    found = {d["name"]: d for d in map(json.loads, done.stdout.splitlines())}
    assert found.keys() == corpus.keys(), done.stderr
    return found


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("wrong"), "look", {name: make() for name, make in WRONG.items()})


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("strange"), "optimize", {name: make() for name, make in STRANGE.items()})


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_a_reason(name: str, refused: dict[str, Any]) -> None:
    found = refused[name]
    assert found["said"].get("kind") == "error" and found["said"]["refused"], found
    assert 10 < len(found["said"]["text"]) < 400 and found["signal"] == 0
    assert found["memory"] < MEMORY


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_strange_ends(name: str, ended: dict[str, Any]) -> None:
    found = ended[name]
    said = found["said"]
    assert said.get("kind") == "end" or (said.get("kind") == "error" and said["refused"]), found
    assert found["signal"] == 0 and found["memory"] < MEMORY


def test_nothing_of_an_upload_is_run_or_written_elsewhere(tmp_path: Path) -> None:
    corpus = {name: {**WRONG, **STRANGE}[name]() for name in ("a module among its data", "pickle", "archive")}
    root = tmp_path / "uploads"
    assert all(found["said"] for found in run(root, "optimize", corpus).values())
    assert {p.name for p in tmp_path.iterdir()} == {"uploads"} and {p.name for p in root.iterdir()} == corpus.keys()
    for name, files in corpus.items():
        assert {p.name for p in (root / name).iterdir()} <= {*files, "run", "drawn", "said.json", "stderr.txt"}
