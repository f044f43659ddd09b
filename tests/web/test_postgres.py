"""What touches the database passes on PostgreSQL too, where that is installed; it always passes on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.web.postgres import missing, postgres
from tests.web.serving import ROOT

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif("CGORL_TEST_DATABASE_URL" in os.environ, reason="this is the run on PostgreSQL"),
]
TELLING = ("queue", "privacy", "sweep")
"""Leases, who gets a job, and who sees one: seconds, so that they always run."""
REST = ("api", "pages", "runner", "guard", "answers", "accounts", "tables", "service")


def passes(*names: str) -> None:
    """Runs files of tests on a PostgreSQL of their own."""
    with postgres() as url:
        env = {**os.environ, "CGORL_TEST_DATABASE_URL": url}
        files = [f"tests/web/test_{name}.py" for name in names]
        command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *files]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and " passed" in said[-1] and "skipped" not in said[-1], done.stdout[-4000:] + done.stderr[-1000:]
    print(said[-1])


def test_leases_queue_and_privacy_hold_on_postgresql() -> None:
    passes(*TELLING)


@pytest.mark.slow
def test_the_suite_passes_on_postgresql() -> None:
    passes(*TELLING, *REST)
