"""Limits: what a process that reads strangers' files may take, put on it by itself before it reads any."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV", "ORT_DISABLE_TELEMETRY")
_KEPT_BEGINNINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LAST_CPU_SECONDS = 5
"""Between the signal that says that the time is up and the one that nothing survives."""
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Limits(NamedTuple):
    """What a process may take, and its children each; 0: as much as there is.

    `memory` is bytes of address space, which is more than what is used of it; `file_bytes` the size of one file it writes.
    """

    memory: int = 0
    cpu_seconds: int = 0
    file_bytes: int = 0
    threads: int = 0


def environment(folder: Path, threads: int, source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of such a process: none that might hold a secret, no module of its folder imported, all its files in there."""
    kept = {k: v for k, v in source.items() if k in _KEPT or k.startswith(_KEPT_BEGINNINGS)}
    kept |= {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | (dict.fromkeys(_THREADS, str(threads)) if threads else {})


def confine(limits: Limits) -> None:
    """Puts the limits on this process. It ends with its parent, gains no rights, leaves no core, and goes first when memory is short.

    What the system does not know of these is left out.
    """
    if sys.platform == "win32":
        return
    import resource

    wanted = [(resource.RLIMIT_CORE, 0)]
    if limits.memory:
        wanted.append((resource.RLIMIT_AS, limits.memory))
    if limits.cpu_seconds:
        wanted.append((resource.RLIMIT_CPU, limits.cpu_seconds))
    if limits.file_bytes:
        wanted.append((resource.RLIMIT_FSIZE, limits.file_bytes))
    for what, most in wanted:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        last = most + _LAST_CPU_SECONDS if what == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else most
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, last))
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _control(_PR_SET_NO_NEW_PRIVS, 1)


def end_with_parent() -> None:
    """Has this process told to end when its parent does, where the system knows how to."""
    if sys.platform == "linux":
        _control(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _control(what: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)
