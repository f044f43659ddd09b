"""Load on the service: clients that send jobs and look at pages while workers are busy; each job must end, once.

Usage: bench.py web [clients=50] [jobs=200] [workers=2] [timeout=1500] [seconds=2] [database=]

Starts a service of its own on a free port of the loopback, with its files in a temporary folder, and ends it. The model is a small
one; `seconds` are for each search; `database` is the address of an empty one, SQLite's in that folder unless given. Prints how long
pages took to answer, median and 99th of a hundred, and what came of the jobs.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cgorl.report.files import options

_DEFAULTS = {"clients": "50", "jobs": "200", "workers": "2", "timeout": "1500", "seconds": "2", "database": ""}
_PAGES = ("/", "/jobs/", "/api/v1/choices", "/job")
_LIMITS = ("WAITING", "WAITING_EACH", "WAITING_OF_AN_ADDRESS", "AN_HOUR", "AN_HOUR_OF_AN_ADDRESS")
_QUOTAS = {f"CGORL_MOST_{name}": "1000000" for name in _LIMITS}


class _Load:
    """What clients saw."""

    def __init__(self, url: str, seconds: str) -> None:
        self.url, self.seconds = url, seconds
        self.sent: list[str] = []
        self.took: dict[str, list[float]] = {}
        self.failed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def ask(self, name: str, path: str, data: bytes | None = None, kind: str = "") -> Any:
        """One request; its time counts under `name`."""
        began = time.monotonic()
        try:
            request = urllib.request.Request(self.url + path, data, {"Content-Type": kind} if kind else {})
            with urllib.request.urlopen(request, timeout=60) as response:
                body = response.read()
        except (OSError, urllib.error.URLError) as e:
            with self._lock:
                self.failed[f"{name}: {e}"] += 1
            return None
        with self._lock:
            self.took.setdefault(name, []).append(time.monotonic() - began)
        return json.loads(body) if path.startswith("/api") else body

    def client(self, jobs: int, model: bytes, done: threading.Event) -> None:
        """Sends so many jobs, and looks at pages until all are done."""
        mine: list[str] = []
        for _ in range(jobs):
            fields = {"seconds": self.seconds, "expansions": "5"}
            parts = [f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
            parts.append(b'--b\r\nContent-Disposition: form-data; name="model"; filename="m.onnx"\r\n\r\n' + model + b"\r\n--b--\r\n")
            made = self.ask("upload", "/api/v1/jobs", b"".join(parts), "multipart/form-data; boundary=b")
            if made is not None:
                mine.append(made["id"])
        with self._lock:
            self.sent += mine
        turn = 0
        while not done.wait(1.0):
            page = _PAGES[turn % len(_PAGES)]
            self.ask("page", page if page != "/job" or not mine else f"/jobs/{mine[turn % len(mine)]}/")
            turn += 1


def main(arguments: Sequence[str]) -> None:
    """Prints; exits with 1 where a job was lost, run twice or has failed, or a request was not answered."""
    own = options(arguments, _DEFAULTS, (__doc__ or "").split("\n\n")[1]).own
    clients, jobs = int(own["clients"]), int(own["jobs"])
    with tempfile.TemporaryDirectory(prefix="cgorl-load-") as folder:
        data = Path(folder)
        port = _free()
        log = (data / "log.txt").open("w")
        env = {**os.environ, **_QUOTAS, "CGORL_DATA": folder, "DATABASE_URL": own["database"], "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "cgorl.web", "serve", f"--port={port}", f"--workers={own['workers']}"]
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            good = _run(_Load(f"http://127.0.0.1:{port}", own["seconds"]), clients, jobs, float(own["timeout"]), data)
        finally:
            process.terminate()
            process.wait(60)
    if not good:
        sys.exit(1)


def _run(load: _Load, clients: int, jobs: int, timeout: float, data: Path) -> bool:
    until = time.monotonic() + 60
    while load.ask("start", "/health") is None:
        if time.monotonic() > until:
            sys.exit((data / "log.txt").read_text())
        time.sleep(0.2)
    load.failed.clear()
    done, began = threading.Event(), time.monotonic()
    model = _model()
    each = [jobs // clients + (k < jobs % clients) for k in range(clients)]
    threads = [threading.Thread(target=load.client, args=(n, model, done)) for n in each]
    for t in threads:
        t.start()
    ended: dict[str, Any] = {}
    while time.monotonic() - began < timeout and len(ended) < jobs:
        time.sleep(2)
        for name in [n for n in list(load.sent) if n not in ended]:
            found = load.ask("poll", f"/api/v1/jobs/{name}")
            if found is None or not found["ended"]:
                break  # they end about in the order in which they came
            ended[name] = found
    done.set()
    for t in threads:
        t.join()
    return _told(load, ended, jobs, time.monotonic() - began, data)


def _told(load: _Load, ended: dict[str, Any], jobs: int, seconds: float, data: Path) -> bool:
    for name, took in sorted(load.took.items()):
        late = sorted(took)[min(len(took) - 1, int(0.99 * len(took)))]
        print(f"{name:8} {len(took):6} answers, median {1000 * statistics.median(took):7.1f} ms, 99 of 100 below {1000 * late:7.1f} ms")
    states = Counter(f"{j['state']}" for j in ended.values())
    log = (data / "log.txt").read_text()
    attempts = Counter(p.name.split("-")[0] for p in (data / "jobs").iterdir())
    twice = sum(1 for n in attempts.values() if n > 1) + max(0, log.count(": done") - len(ended))
    lost = jobs - len(ended)
    print(f"jobs     {jobs:6} sent, {dict(states)}, {lost} lost, {twice} run twice; {seconds:.0f} s, {len(ended) / seconds:.2f} a second")
    for why, times in load.failed.items():
        print(f"not answered {times} times: {why}")
    return not lost and not twice and states == {"done": jobs} and not load.failed


def _model() -> bytes:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    weights = [numpy_helper.from_array(draw.standard_normal((8, 3, 3, 3), np.float32), "w")]
    weights += [numpy_helper.from_array(np.abs(draw.standard_normal(8, np.float32)) + 1, n) for n in ("scale", "shift", "mean", "var")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 3, 16, 16]), ("y", [1, 8, 16, 16]))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString())


def _free() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
