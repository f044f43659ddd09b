"""JupyterLab as a person has it: a server of its own, without a network, opened in headless chromium."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_TOKEN = "cgorl"
_APPUTILS = "@jupyterlab/apputils-extension"


@contextmanager
def lab(folder: Path, dark: bool = False, options: Sequence[str] = ()) -> Iterator[str]:
    """The address of a server on `folder`; its settings are in there too, and nothing of the person's own is read.

    `options` are more of those that `jupyter lab` takes.
    """
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed (pip install -e '.[dev]')")
    settings = folder / ".jupyter" / "settings"
    for name, value in (
        ("notification", {"fetchNews": "false", "checkForUpdates": False}),
        ("themes", {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"}),
    ):
        file = settings / _APPUTILS / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    env = {**os.environ, **{n: str(folder / ".jupyter" / n.lower()) for n in names}, "JUPYTERLAB_SETTINGS_DIR": str(settings)}
    env |= {"PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython"), "OMP_NUM_THREADS": "1"}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={_TOKEN}", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.extension_manager=readonly", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += options
    address = f"http://127.0.0.1:{port}"
    with (folder / ".server.log").open("w") as log, subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log) as server:
        try:
            _until(lambda: bool(get(address, "api/status")), 60)
            yield address
        finally:
            server.terminate()


def get(address: str, path: str) -> Any:
    """What the server answers, as JSON data; None while it does not."""
    try:
        with urllib.request.urlopen(f"{address}/{path}?token={_TOKEN}", timeout=5) as answer:
            return json.load(answer)
    except OSError:
        return None


def shut_down(address: str) -> None:
    """Ends all kernels."""
    for session in get(address, "api/sessions"):
        path = f"{address}/api/sessions/{session['id']}?token={_TOKEN}"
        urllib.request.urlopen(urllib.request.Request(path, method="DELETE"), timeout=10).close()


def opened(tab: Any, address: str, notebook: str) -> None:
    """Opens a notebook alone and waits until its kernel listens.

    Without `reset` JupyterLab opens again what was open before, whose kernels are gone.
    """
    tab.goto(f"{address}/lab/tree/{notebook}?reset&token={_TOKEN}")
    listening(tab, address)


def started(tab: Any, address: str) -> None:
    """Opens what the server opens by itself."""
    tab.goto(f"{address}/?token={_TOKEN}")


def listening(tab: Any, address: str, kernels_there: int = 1) -> None:
    """Waits until so many kernels listen, that of the notebook in front too: the mark of idleness turns idle before it is connected."""
    tab.get_by_text("Python 3 (ipykernel) | Idle").first.wait_for(timeout=60_000)

    def listens() -> bool:
        kernels = get(address, "api/kernels")
        return sum(k["execution_state"] == "idle" and k["connections"] >= 1 for k in kernels or []) >= kernels_there

    _until(listens, 30)


def watch(tab: Any, said: list[str], asked: list[str]) -> None:
    """Notes what goes wrong on a page, and every address that it asks."""
    tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
    tab.on("pageerror", lambda e: said.append(str(e)))
    tab.on("request", lambda r: asked.append(r.url))


def run_all(tab: Any) -> None:
    """Runs all cells by the menu, as a person does."""
    tab.get_by_role("menuitem", name="Run", exact=True).click()
    tab.get_by_text("Run All Cells", exact=True).click()


def notebook(path: Path, cells: Sequence[str]) -> None:
    """Writes a notebook of code cells."""
    made = [
        {"cell_type": "code", "id": f"c{k}", "execution_count": None, "metadata": {}, "outputs": [], "source": c}
        for k, c in enumerate(cells)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    path.write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def _until(done: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "JupyterLab did not get ready"
        time.sleep(0.1)
