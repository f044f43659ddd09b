"""What touches the database passes on PostgreSQL too, where that is installed; it always passes on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.web.postgres import missing, postgres
from tests.web.serving import ROOT

SUITE = ("queue", "api", "privacy", "sweep", "runner", "guard", "service")


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.skipif("CGORL_TEST_DATABASE_URL" in os.environ, reason="this is the run on PostgreSQL")
@pytest.mark.slow
def test_the_suite_passes_on_postgresql() -> None:
    with postgres() as url:
        env = {**os.environ, "CGORL_TEST_DATABASE_URL": url}
        files = [f"tests/web/test_{name}.py" for name in SUITE]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr[-1000:]
