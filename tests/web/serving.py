"""The whole service as `make serve` runs it, on a free port with its files in a folder."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Service(NamedTuple):
    """Where it answers, where its files are, its first process, and what it logs."""

    url: str
    data: Path
    process: subprocess.Popen[bytes]
    log: Path

    def parts(self) -> dict[str, int]:
        """The numbers of its processes, by what they do: web, look, optimize."""
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False)
        found = {}
        for line in listed.stdout.splitlines():
            pid, words = line.split(None, 1)
            if m := re.search(r"cgorl\.web (web|work --queue=(\w+))", words):
                found[m[2] or m[1]] = int(pid)
        return found


@contextmanager
def serving(folder: Path, workers: int = 1, **variables: str) -> Iterator[Service]:
    """The service; `variables` are further ones of its environment."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CGORL_", "DATABASE_URL", "DJANGO_"))}
    env |= {"CGORL_DATA": str(folder), "PYTHONPATH": str(ROOT), "DATABASE_URL": _database(folder), **variables}
    log = folder / "log.txt"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "cgorl.web", "serve", f"--port={port}", f"--workers={workers}"]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 240  # on a machine that is busy with other things
        while not answers(url):
            assert process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield Service(url, folder, process, log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _database(folder: Path) -> str:
    """The address of the database of a folder: on the PostgreSQL of the test run if it has one, else empty, which is SQLite."""
    url = os.environ.get("CGORL_TEST_DATABASE_URL", "")
    if not url:
        return ""
    import psycopg  # installed with the service, but needed here alone

    name = f"service_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    with psycopg.connect(url, autocommit=True) as connection, suppress(psycopg.errors.DuplicateDatabase):
        connection.execute(f"CREATE DATABASE {name}")
    return f"{url.rpartition('/')[0]}/{name}"


def answers(url: str) -> bool:
    """Whether the service answers."""
    with suppress(OSError):
        return bool(urllib.request.urlopen(url + "/health", timeout=5).status == 200)
    return False
