"""Provenance: what a kept result says of where it comes from."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path


def provenance() -> dict[str, str]:
    """The commit of the code ("+" behind it where files other than results differ), the machine in words, and the date."""
    return {"commit": _commit(), "machine": _machine(), "date": time.strftime("%Y-%m-%d")}


def _commit() -> str:
    found = [
        _git("rev-parse", "--short", "HEAD"),
        _git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)data/results"),
    ]
    return (found[0] or "unknown") + ("+" if found[1] else "")


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _machine() -> str:
    """The processor's name and how many cores this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor() or platform.machine()
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores, Python {platform.python_version()}"
