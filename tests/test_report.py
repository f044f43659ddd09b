"""scripts/report.py: what it writes and says, each key, each mistake, and what is pushed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cgorl import cli, config
from cgorl.config import CONF
from cgorl.tracking import workspaces
from tests.report.experiment.made import training, two_by_three
from tests.test_config import Watched, keys

ROOT = Path(__file__).resolve().parents[1]
with_workspaces = pytest.mark.skipif(find_spec("wandb_workspaces") is None, reason="wandb-workspaces is not installed")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = cli.report(list(argv), "the script's help")
    said = capsys.readouterr()
    return code, said.out, said.err


def test_what_is_written_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    two_by_three(Path("s"))
    code, out, err = run(capsys, "sweep=s", "figures=svg")
    assert (code, err) == (0, "")
    for part in (
        "7 jobs, of which 1 failed.",
        "net: lowest cost by icm.beta=0.2, -14.00 %",
        "differences to icm.beta=0.2",
        "at most 1, not 7",
    ):
        assert part in out
    there = {p.name for p in Path("s/report").iterdir()}
    assert {"report.html", "comparison.csv", "net_change_of_the_cost_by_method.svg"} <= there
    assert ("report.wandb.json" in there) == workspaces.available()
    assert run(capsys, "sweep=s")[0] == 0  # a report inside is no run


def test_each_key_has_a_reader(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    two_by_three(Path("s"))
    seen: set[str] = set()
    right = config.plain
    monkeypatch.setattr(config, "plain", lambda cfg: Watched(right(cfg), seen))
    monkeypatch.setattr(workspaces, "available", lambda: True)
    monkeypatch.setattr(workspaces, "build", lambda *words: words)
    monkeypatch.setattr(workspaces, "to_json", lambda told: json.dumps(told[2:]))
    monkeypatch.setattr(workspaces, "owner", lambda entity: entity or "me")
    monkeypatch.setattr(workspaces, "sync", lambda folders, project, entity: len(folders))
    monkeypatch.setattr(workspaces, "push", lambda told: "/".join(told[2:]))
    given = ["output=o", "title=A name", "axis=seconds", "figures=png", "push=true", "entity=us", "project=p"]
    code, out, _ = run(capsys, "sweep=s", *given)
    assert code == 0 and "sent      7 offline runs to us/p" in out and "pushed    p/us" in out
    assert seen >= set(keys(CONF / "report.yaml"))
    assert "<h1>A name</h1>" in Path("o/report.html").read_text() and "over seconds of wall-clock time" in Path("o/report.html").read_text()
    assert json.loads(Path("o/report.wandb.json").read_text()) == ["p"] and list(Path("o").glob("*.png"))


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["sweep=none"], "there is no folder 'none'"),
        (["sweep=empty"], "there are no runs in 'empty'"),
        (["sweep=begun"], "the run 'begun' has written any metrics yet: there is nothing to report"),
        (["sweep=mixed"], "different kinds"),
        (["sweep=s", "axis=steps"], "these runs have no metric 'steps'"),
        (["sweep=s", "axis=1"], "axis must be the name of a metric, or null, not 1"),
        (["sweep=s", "figures=gif"], "figures must be svg, png, pdf or null, not 'gif'"),
        (["sweep=s", "source=csv"], "source must be jsonl or wandb, not 'csv'"),
        (["sweep=s", "push=maybe"], "push must be true or false, not 'maybe'"),
        (["sweep=s", "outputs=x"], "there is no key 'outputs'; did you mean 'output'?"),
        (["output=x"], "'sweep' must be given, as sweep=..."),
        (["sweep=s", "output=s/sweep.json"], "cannot write the report into 's/sweep.json'"),
        (["sweep=a.csv"], "no column initial_ms, cost_ms"),
    ],
)
def test_each_mistake_is_one_clear_line(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    two_by_three(Path("s"))
    Path("empty").mkdir()
    Path("a.csv").write_text("a,b\n1,2\n")
    training(Path("begun"), lines=0, end=False)
    training(Path("mixed/a"))
    Path("mixed/b").mkdir()
    Path("mixed/b/config.yaml").write_text("search: {}\n")
    code, _, err = run(capsys, *argv)
    assert code == 1 and says in err and err.count("\n") == 1 and "Traceback" not in err


def test_a_sweep_in_which_all_failed_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.report.experiment.made import sweep

    sweep(Path("s"), [("seed=1", {"error": "no memory"}), ("seed=2", {"absent": True})])
    code, out, err = run(capsys, "sweep=s")
    assert (code, err) == (0, "") and "2 jobs, of which 1 failed, 1 not begun." in out and "no memory" in out


def test_several_folders_and_what_they_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    two_by_three(Path("s"))
    two_by_three(Path("t, u"))
    code, out, _ = run(capsys, "sweep=s,'t, u'", "output=o")
    assert code == 0 and "14 jobs, of which 2 failed." in out
    assert run(capsys, "sweep=t, u")[0] == 0 and Path("t, u/report/report.html").is_file()


@with_workspaces
def test_pushing_needs_a_login(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    two_by_three(Path("s"))
    code, _, err = run(capsys, "sweep=s", "push=true")
    assert code == 1 and "push=true needs a login to W&B: 'wandb login'" in err and err.count("\n") == 1
    assert Path("s/report/report.wandb.json").is_file()


class Server(BaseHTTPRequestHandler):
    """As much of W&B's server as saving a report asks for."""

    saved: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        """Answers a query."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        query, given = asked["query"], asked.get("variables") or {}
        project = {"id": "p", "name": "cgorl", "entityName": "me"}
        node = {**project, "createdAt": "2026-01-01", "user": None, "entity": {"name": "me"}, "internalId": "1", "isBenchmark": False}
        if "upsertView" in query:
            Server.saved.append(given)
            view = {"id": "Vmlldzox", "type": "runs", **{k: given[k] for k in ("name", "displayName", "description", "spec")}}
            told: dict[str, Any] = {
                "upsertView": {"view": {**view, "project": project, "updatedAt": "2026-01-01T00:00:00"}, "inserted": True}
            }
        elif "upsertModel" in query:
            told = {
                "upsertModel": {"model": {**project, "description": "", "access": "", "views": ""}, "project": project, "inserted": False}
            }
        elif "ProjectInternalId" in query:
            told = {"project": {"id": "p", "internalId": "1"}}
        elif "models(" in query:
            told = {"models": {"pageInfo": {"hasNextPage": False, "endCursor": None}, "edges": [{"node": node, "cursor": "x"}]}}
        else:
            empty: dict[str, Any] = {"edges": []}
            viewer = {
                "id": "u",
                "username": "me",
                "entity": "me",
                "email": "",
                "admin": False,
                "flags": "{}",
                "teams": empty,
                "apiKeys": empty,
            }
            told = {"viewer": viewer, "serverInfo": {"cliVersionInfo": {}, "latestLocalVersionInfo": None, "features": []}}
        text = json.dumps({"data": told}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture(name="server")
def serve() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@with_workspaces
def test_what_is_pushed_is_what_is_kept(server: str, tmp_path: Path) -> None:
    two_by_three(Path("s"))
    login = {"WANDB_BASE_URL": server, "WANDB_API_KEY": "a" * 40, "HOME": str(tmp_path), "no_proxy": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, str(ROOT / "scripts" / "report.py"), "sweep=s", "push=true", "project=cgorl"]
    done = subprocess.run(words, env={**os.environ, **login}, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and f"pushed    {server}/me/cgorl/reports/" in done.stdout, done.stderr
    [saved] = Server.saved
    kept = json.loads(Path("s/report/report.wandb.json").read_text())

    def texts(spec: Any) -> list[Any]:
        return [b.get("content") or b["children"] for b in spec["blocks"] if b["type"] != "panel-grid"]

    assert texts(json.loads(saved["spec"])) == texts(kept["spec"]) and saved["displayName"] == kept["displayName"] == "train: s"


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    two_by_three(Path("s"))
    monkeypatch.setitem(sys.modules, "cgorl.report.experiment", None)
    code, _, err = run(capsys, "sweep=s")
    assert code == 1 and err.startswith("error: a report needs ") and err.count("\n") == 1


def test_help_names_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.report(["--help"], "the script's help") == 0 and cli.report([], "help") == 1
    out = capsys.readouterr().out
    assert "push: false" in out and "choices" not in out
