"""Each notebook runs from top to bottom."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path: Path) -> None:
    pytest.importorskip("nbmake")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--nbmake", "--nbmake-timeout=120", str(path)],
        capture_output=True,
        text=True,
        cwd=path.parent,
    )
    assert run.returncode == 0, run.stdout[-3000:]
