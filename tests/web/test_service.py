"""The service whole, in processes of its own: from upload to download, and whatever is killed on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

import cgorl
from tests.web.hostile import WRONG
from tests.web.models import small
from tests.web.serving import ROOT, Service, answers, serving

_PATIENCE = 300
LONG = {"zoo": "bert", "search": "backtracking"}


def until(what: Callable[[], Any]) -> Any:
    """What `what` gives once that is true."""
    end = time.monotonic() + _PATIENCE
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def start(service: Service, **fields: Any) -> dict[str, Any]:
    files = None if "zoo" in fields else {"model": ("net.onnx", small())}
    response = requests.post(f"{service.url}/api/v1/jobs", files=files, data=fields, timeout=60)
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


def state(service: Service, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = requests.get(f"{service.url}/api/v1/jobs/{job['id']}", timeout=60).json()
    return found


def test_the_readmes_example_brings_a_model_back_proven(service: Service, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "/api/v1" in block)
    (tmp_path / "in.onnx").write_bytes(small())
    script = example.replace("http://127.0.0.1:8000", service.url)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("done optimized: "), done.stdout
    made = tmp_path / "in_optimized.onnx"
    assert cgorl.verify(tmp_path / "in.onnx", made) and len(cgorl.load(made).nodes) < len(cgorl.load(tmp_path / "in.onnx").nodes)
    assert json.loads((tmp_path / "summary.json").read_text())["status"] == "optimized"
    assert json.loads((tmp_path / "trace.json").read_text())["steps"]


def test_events_tell_a_job_to_its_end(service: Service) -> None:
    job = start(service, expansions=2)
    told = []
    with requests.get(f"{service.url}/api/v1/jobs/{job['id']}/events", stream=True, timeout=60) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        told = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith(b"data: ")]
    assert told[-1]["state"] == "done" and told[-1]["ended"] and not any(t["ended"] for t in told[:-1])
    end = state(service, job)
    assert end["result"]["points"] and end["result"]["steps"] == len(end["result"]["ledger"]) > 0
    for name in ("before", "after", "film", "0-before", "0-after"):
        picture = requests.get(f"{service.url}/jobs/{job['id']}/drawn/{name}", timeout=60)
        assert picture.status_code == 200 and picture.content[:1] == b"\x78", name


def test_a_look_says_what_a_model_is_or_why_not(service: Service) -> None:
    models = f"{service.url}/api/v1/models"
    made = [
        requests.post(models, files={"model": ("m.onnx", content)}, timeout=60).json()
        for content in (small(), WRONG["two gigabytes declared"]()["model.onnx"])
    ]
    good, bad = (until(lambda m=m: (r := requests.get(f"{models}/{m['id']}", timeout=60).json())["ended"] and r) for m in made)
    assert good["state"] == "done" and good["facts"]["operators"] == [["Conv", 1], ["BatchNormalization", 1], ["Relu", 1]]
    assert good["facts"]["inputs"][0]["shape"] == [1, 3, 16, 16] and good["facts"]["coverage"]["touchable"] == 3
    assert (bad["state"], bad["facts"]) == ("refused", None) and "holds other than its shape says" in bad["reason"]
    assert str(service.data) not in bad["reason"]


@pytest.fixture
def frail(tmp_path: Path) -> Iterator[Service]:
    """A service where the dead are missed soon."""
    with serving(tmp_path, CGORL_LEASE_SECONDS="4") as found:
        yield found


def test_a_killed_worker_and_a_killed_web_process_lose_nothing(frail: Service) -> None:
    job, waits = start(frail, **LONG, seconds=6), start(frail, expansions=1)
    until(lambda: state(frail, job)["stage"] == "searching")
    before = frail.parts()
    os.kill(before["optimize"], signal.SIGKILL)
    # meanwhile: half an upload, and the process that takes it is killed
    with socket.create_connection((urlsplit(frail.url).hostname, urlsplit(frail.url).port)) as s:
        head = ("POST /api/v1/jobs HTTP/1.1", "Host: localhost", "Content-Type: multipart/form-data; boundary=b", "Content-Length: 9000000")
        s.sendall("\r\n".join([*head, "", ""]).encode())
        s.sendall(b'--b\r\nContent-Disposition: form-data; name="model"; filename="m.onnx"\r\n\r\n' + bytes(4_000_000))
        time.sleep(0.5)
        os.kill(before["web"], signal.SIGKILL)
    until(lambda: answers(frail.url))
    for each in (job, waits):
        assert until(lambda e=each: (r := state(frail, e))["ended"] and r)["state"] == "done"
    assert frail.parts().keys() == {"web", "look", "optimize"} and frail.parts()["optimize"] != before["optimize"]
    log = frail.log.read_text()
    number = re.search(r"job (\d+): back in the queue \(its worker died\)", log)
    assert number and log.count("queued (") == 2 and log.count(": done") == 2
    attempts = {p.name for p in (frail.data / "jobs").iterdir()}
    assert f"{number[1]}-2" in attempts
    assert not list((frail.data / "incoming").iterdir()) and len(list((frail.data / "sources").iterdir())) == 1


def test_ctrl_c_ends_everything_and_the_job_at_hand_waits(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        job = start(first, **LONG, seconds=600)
        until(lambda: state(first, job)["stage"] == "searching")
        parts = first.parts().values()
    assert first.process.returncode == 0 and "back in the queue (its worker was stopped)" in first.log.read_text()
    assert not any(Path(f"/proc/{pid}").exists() for pid in parts)
    with serving(tmp_path) as second:  # the same secret, the same jobs
        until(lambda: state(second, job)["state"] == "running")
        requests.post(f"{second.url}/api/v1/jobs/{job['id']}/cancel", timeout=60)
        end = until(lambda: (r := state(second, job))["ended"] and r)
        assert end["state"] in ("done", "cancelled")
