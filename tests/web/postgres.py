"""A PostgreSQL of a test run's own, on a socket in a folder, where it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote


def missing() -> str:
    """Why there can be none; empty where there can."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        return "PostgreSQL (initdb, pg_ctl) is not installed"
    if os.getuid() == 0 and (shutil.which("setpriv") is None or not _user()):
        return "PostgreSQL does not run as root, and there is no user 'postgres' to run it as"
    return ""


@contextmanager
def postgres() -> Iterator[str]:
    """Its DATABASE_URL."""
    folder = Path(tempfile.mkdtemp(prefix="cgorl-pg-"))  # a path short enough for a socket
    user = _user() if os.getuid() == 0 else ""
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    if user:
        shutil.chown(folder, user)
    data = str(folder / "data")
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=60"
    try:
        initdb = ["initdb", "-D", data, "-U", "cgorl", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*as_user, *initdb], check=True, capture_output=True, cwd=folder)
        start = ["pg_ctl", "-D", data, "-l", str(folder / "log"), "-w", "-t", "120", "-o", options, "start"]
        subprocess.run([*as_user, *start], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        try:
            yield f"postgres://cgorl@{quote(str(folder), safe='')}/postgres"
        finally:
            stop = ["pg_ctl", "-D", data, "-m", "immediate", "stop"]
            subprocess.run([*as_user, *stop], check=False, stdout=subprocess.DEVNULL, cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    with suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return ""
