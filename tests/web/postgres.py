"""A PostgreSQL of a test run's own, on a socket in a folder, where it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from urllib.parse import quote


def _program(name: str) -> str:
    """Where one of its programs is; Debian keeps them off the path, a folder for each version. Empty where it is not installed."""
    folders = [os.environ.get("PATH", ""), *sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return shutil.which(name, path=os.pathsep.join(folders)) or ""


def missing() -> str:
    """Why there can be none; empty where there can."""
    if not _program("initdb") or not _program("pg_ctl"):
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
        initdb = [_program("initdb"), "-D", data, "-U", "cgorl", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([*as_user, *initdb], check=True, capture_output=True, cwd=folder)
        start = [_program("pg_ctl"), "-D", data, "-l", str(folder / "log"), "-w", "-t", "120", "-o", options, "start"]
        subprocess.run([*as_user, *start], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        try:
            yield f"postgres://cgorl@{quote(str(folder), safe='')}/postgres"
        finally:
            stop = [_program("pg_ctl"), "-D", data, "-m", "immediate", "stop"]
            subprocess.run([*as_user, *stop], check=False, stdout=subprocess.DEVNULL, cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    with suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return ""
