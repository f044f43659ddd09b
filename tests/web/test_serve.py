"""`serve`: what it is told wrongly is one sentence, before anything is begun."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.serving import ROOT


def refused(folder: Path, *words: str, **variables: str) -> str:
    env = {**os.environ, "CGORL_DATA": str(folder), "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "cgorl.web", "serve", *words], env=env, capture_output=True, text=True, timeout=60, cwd=folder
    )
    assert done.returncode != 0 and "Traceback" not in done.stderr and not done.stdout
    return done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--port=99999"], "'99999' is no whole number from 1 to 65535"),
        (["--port=0"], "'0' is no whole number"),
        (["--workers=0"], "'0' is no whole number of at least 1"),
        (["--processes=-1"], "'-1' is no whole number of at least 1"),
        (["--address=192.0.2.1"], "cannot listen on port 8000 of 192.0.2.1: "),
    ],
)
def test_what_it_cannot_do_is_said(tmp_path: Path, words: list[str], says: str) -> None:
    assert says in refused(tmp_path, *words)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert f"port {number} of 127.0.0.1 is taken" in refused(tmp_path, f"--port={number}")


def test_a_variable_that_will_not_do(tmp_path: Path) -> None:
    assert refused(tmp_path, CGORL_UPLOAD_MB="abc").startswith("error: CGORL_UPLOAD_MB must be a whole number")
