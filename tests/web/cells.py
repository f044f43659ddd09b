"""Runs many uploads as the service's own process does, each in a child with the limits on: `python -m tests.web.cells FOLDER KIND`.

The engine is imported once and each child begins with it, which saves seconds an upload. Prints a line of JSON for each: its last
message, the signal that ended it (0: none), seconds, and bytes of memory at most.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
from pathlib import Path

from cgorl.background import Worker
from cgorl.limits import Limits, confine

LIMITS = Limits(memory=3 << 30, cpu_seconds=20, file_bytes=256 << 20, threads=1)
SECONDS = 25
OPTIONS = {"expansions": 2, "seconds": 2, "unbound": 1, "gate": False}


def child(folder: Path, kind: str, out: Path) -> None:
    """One upload, in this process, which ends with it."""
    from cgorl.web import process

    os.chdir(folder)
    confine(LIMITS)
    said = io.StringIO()
    worker = Worker(said)
    values = {"model": "model.onnx", "runs": str(folder / "run")}
    work = {"look": process.look, "optimize": process.optimize}[kind]
    worker.run(work, values if kind == "look" else {**values, **OPTIONS})
    out.write_text(said.getvalue().splitlines()[-1])
    os._exit(0)


def run(folder: Path, kind: str) -> dict[str, object]:
    """What came of an upload."""
    out = folder / "said.json"
    began = time.monotonic()
    if not (pid := os.fork()):
        os.dup2(os.open(folder / "stderr.txt", os.O_WRONLY | os.O_CREAT), 2)
        os.setpgid(0, 0)
        try:
            child(folder, kind, out)
        finally:
            os._exit(1)
    status, used = 0, None
    while used is None:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            used = usage
        elif time.monotonic() - began > SECONDS:
            os.kill(pid, 9)
            _, status, used = os.wait4(pid, 0)
        else:
            time.sleep(0.005)
    said = json.loads(out.read_text()) if out.exists() else {}
    return {
        "name": folder.name,
        "said": said,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "seconds": round(time.monotonic() - began, 2),
        "memory": used.ru_maxrss * 1024,
        "stderr": (folder / "stderr.txt").read_text()[-300:],
    }


def main() -> None:
    """All folders of a folder."""
    from cgorl import config
    from cgorl.report import figures
    from cgorl.web import drawn

    assert figures and drawn  # each child begins with what these import
    config.rule_set(config.plain(config.load_config("optimize", values={"model": "x"}))["rules"])
    root, kind = Path(sys.argv[1]), sys.argv[2]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for folder in sorted(p for p in root.iterdir() if len(sys.argv) < 4 or p.name in sys.argv[3:]):
        print(json.dumps(run(folder, kind)), flush=True)


if __name__ == "__main__":
    main()
