"""Accounts: made and removed by the administrator, and a service that asks for them, in a browser."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from cgorl.web import folders
from cgorl.web.models import Job, Source
from tests.web.chromium import user
from tests.web.serving import ROOT, answers
from tests.web.test_api import post, upload
from tests.widgets.page import browser as chromium

PASSWORD = "a word of passage"


def account(monkeypatch: pytest.MonkeyPatch, name: str, password: str = PASSWORD, **more: Any) -> str:
    """What the command says."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{password}\n"))
    said = io.StringIO()
    call_command("account", name, stdout=said, stderr=io.StringIO(), **more)
    return said.getvalue().strip()


def test_an_account_is_made_and_given_another_password(monkeypatch: pytest.MonkeyPatch) -> None:
    assert account(monkeypatch, "ann") == "ann can log in"
    assert account(monkeypatch, "ann", "another " + PASSWORD) == "ann has another password"
    assert User.objects.get().check_password("another " + PASSWORD) and not User.objects.get().is_superuser
    for name, password, says in (("bob", "short", "too short"), ("bob", "", "too short"), ("b b", PASSWORD, "valid username")):
        with pytest.raises(CommandError, match=says):
            account(monkeypatch, name, password)
    said = io.StringIO()
    call_command("account", stdout=said)
    assert said.getvalue() == "ann\n"


def test_an_account_is_removed_with_all_that_is_its_own(monkeypatch: pytest.MonkeyPatch, browser: Any, settings_of: Any) -> None:
    settings_of(ACCOUNTS=True)
    for name in ("ann", "bob"):
        account(monkeypatch, name)
        one = browser()
        assert one.login(username=name, password=PASSWORD)
        folders.of_job(Job.objects.get(token=post(one, model=upload())["id"])).mkdir()
    assert account(monkeypatch, "ann", remove=True) == "ann is removed, with 1 uploads and 1 jobs"
    kept = Source.objects.get()
    assert kept.user.username == "bob" and Job.objects.get().source == kept
    assert [p.name for p in (settings.DATA / "sources").iterdir()] == [str(kept.pk)] and len(list((settings.DATA / "jobs").iterdir())) == 1
    with pytest.raises(CommandError, match="no account 'ann'"):
        account(monkeypatch, "ann", remove=True)


@contextmanager
def web() -> Iterator[str]:
    """A web process alone, on this process's tables, which asks who one is."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, "CGORL_ACCOUNTS": "true", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-m", "cgorl.web", "web", f"--port={port}"], env=env)
    try:
        until = time.monotonic() + 240  # on a machine that is busy with other things
        while not answers(url := f"http://127.0.0.1:{port}"):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(120)


def test_members_see_their_own_alone_in_a_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    for name in ("ann", "bob"):
        account(monkeypatch, name)
    with web() as url, chromium() as opened, user(opened, url, viewport={"width": 360, "height": 740}) as ann, user(opened, url) as bob:
        made = requests.post(f"{url}/api/v1/jobs", data={"zoo": "resnet18"}, auth=("ann", PASSWORD), timeout=60).json()
        tab = ann.go("/jobs/")
        tab.keyboard.type("ann")
        ann.tab_to("#id_password")
        tab.keyboard.type("wrong")
        tab.keyboard.press("Enter")
        assert tab.inner_text("[role=alert]") == "Name and password do not go together."
        tab.wait_for_selector("#id_password:focus")
        tab.keyboard.type(PASSWORD)
        tab.keyboard.press("Enter")
        tab.wait_for_selector(f"main a[href='{made['url']}']")
        assert tab.inner_text(".who").split("\n")[-2:] == ["ann", "Log out"]
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360

        ann.go().set_input_files("#files", str(tmp_path / "net.onnx"))
        tab.click(".send")
        tab.wait_for_selector("text=Waiting for its turn to be read")
        source = tab.url

        tab = bob.go(made["url"])
        tab.fill("#id_username", "bob")
        tab.fill("#id_password", PASSWORD)
        tab.click("main button")
        tab.wait_for_selector("text=There is nothing here")
        assert "There is nothing here" in bob.go(source).inner_text("main")
        assert "none yet" in bob.go("/jobs/").inner_text("main")

        ann.go().wait_for_selector("#upload")
        ann.tab_to(".who button")
        ann.tab.keyboard.press("Enter")
        ann.tab.wait_for_selector("#id_username:focus")
        assert ann.tab.locator(".top nav a").count() == 1
        ann.tab.go_back()
        ann.tab.wait_for_url("**/login**")  # nothing private comes back
        bob.complaints = [c for c in bob.complaints if "404" not in c]  # the browser notes it
