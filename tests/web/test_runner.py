"""A worker at its job: done, refused, too much, lost, told to end; whatever happens, the state is right and nothing runs on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django_tasks_db.management.commands.db_worker import Worker
from django_tasks_db.models import DBTaskResult

from cgorl.background import STOPPED
from cgorl.web import folders, queue, runner
from cgorl.web.models import Job, State
from tests.web.test_api import post, upload

END = {
    "kind": "end",
    "summary": {"seconds": {"search": 1.5}, "search": {"found_ms": 1.0}, "cost_ms": {"initial": 2.0, "final": 1.0}},
    "files": [["net_optimized.onnx", 3]],
    "folder": "run/x",
}


def work() -> None:
    """Runs what waits, in this process, as a worker does."""
    Worker(
        queue_names=["look", "optimize"],
        interval=0,
        batch=True,
        backend_name="default",
        startup_delay=False,
        max_tasks=None,
        worker_id="w",
        excluded_queue_names=[],
    ).run()


class Played:
    """A process that says what a test tells it, in place of a real one."""

    pid = 1
    begun: list[Played]

    def __init__(self, last: Mapping[str, Any] | None, meanwhile: Any = None) -> None:
        self._last, self._meanwhile, self.dropped, self.stopped = last, meanwhile, False, False

    def __call__(self, kind: str, values: Mapping[str, Any], tell: Any, cell: Any) -> Played:
        self.values, self.cell, self._tell = values, cell, tell
        return self

    @property
    def last(self) -> Mapping[str, Any]:
        return self._last if self._last is not None and not self.dropped else {"kind": "error", "text": "ended from outside"}

    @property
    def running(self) -> bool:
        return self._last is None and not self.dropped

    def wait(self, seconds: float) -> Mapping[str, Any]:
        if self._meanwhile is not None:
            self._meanwhile(self)
        return {} if self.running else self.last

    def stop(self) -> None:
        self.stopped = True
        self._last = {"kind": "error", "text": STOPPED}

    def drop(self) -> None:
        self.dropped = self.dropped or self._last is None


def one(client: Client, monkeypatch: pytest.MonkeyPatch, played: Played, **fields: Any) -> Job:
    """A job that was worked at."""
    monkeypatch.setattr(runner, "Background", played)
    found = post(client, model=upload(), **fields)
    work()
    return Job.objects.get(token=found["id"])


def test_a_job_that_is_done(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(END)
    job = one(client, monkeypatch, played, search="beam")
    assert (job.state, job.attempt, job.deaths, job.lease) == (State.DONE, 1, 0, None)
    assert job.result["points"] == [[0.0, 2.0], [1.5, 1.0]]
    assert played.values["model"] == "net.onnx" and played.values["search"] == "beam"
    assert played.cell.folder == folders.of_job(job) and not (folders.of_job(job) / "net.onnx").exists()
    assert (
        played.cell.limits.memory and played.cell.limits.cpu_seconds and played.cell.limits.file_bytes and played.cell.limits.threads == 1
    )
    assert DBTaskResult.objects.get().return_value == "done"
    shown = client.get(f"/api/v1/jobs/{job.token}").json()
    assert shown["files"] == [{"name": "net_optimized.onnx", "bytes": 3, "url": f"/jobs/{job.token}/files/net_optimized.onnx"}]


@pytest.mark.parametrize(
    ("last", "state", "words"),
    [
        ({"text": "'net.onnx' is damaged", "refused": True}, State.REFUSED, "damaged"),
        ({"text": "there is not enough memory for this model"}, State.FAILED, "MB"),
        ({"text": "the process ended without a result (SIGXCPU)"}, State.FAILED, "computing time"),
        ({"text": "the process ended without a result (SIGSEGV: /srv/x.so)"}, State.FAILED, "inside the service"),
        ({"text": "a fault of cgorl's: KeyError: 'x' (details in /srv/data/jobs/1/error.txt)"}, State.FAILED, "inside the service"),
        ({"text": "cannot read '/srv/lab/data/net.onnx': no", "refused": True}, State.REFUSED, "cannot read 'net.onnx'"),
    ],
)
def test_a_job_that_ends_otherwise(client: Client, monkeypatch: Any, last: dict[str, Any], state: State, words: str) -> None:
    job = one(client, monkeypatch, Played({"kind": "error", **last}))
    assert job.state == state and words in job.reason and "/srv" not in job.reason and job.result is None


def test_a_job_that_is_cancelled_on_the_way(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(None, lambda p: queue.cancel(Job.objects.get()))
    job = one(client, monkeypatch, played)
    assert played.stopped and (job.state, job.reason) == (State.CANCELLED, "cancelled before there was a proven result")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"MOST_JOB_SECONDS": 0}, "0 seconds"),
        ({"MOST_SILENT_SECONDS": 0}, "takes too long"),
        ({"MOST_LOOK_SECONDS": 0}, "could not be read"),
    ],
)
def test_a_job_that_takes_too_long(client: Client, monkeypatch: Any, settings_of: Any, settings: dict[str, int], words: str) -> None:
    settings_of(**settings)
    played = Played(None)
    job = one(client, monkeypatch, played)
    assert played.dropped and job.state == State.FAILED and words in job.reason


def test_a_job_that_writes_too_much(client: Client, monkeypatch: pytest.MonkeyPatch, settings_of: Any) -> None:
    settings_of(JOB_DISK_BYTES=1000)
    monkeypatch.setattr(runner, "_LOOK_AT_DISK", 0.0)
    played = Played(None, lambda p: (Path(p.cell.folder) / "big").write_bytes(bytes(2000)))
    job = one(client, monkeypatch, played)
    assert played.dropped and job.state == State.FAILED and "may write" in job.reason


def test_a_job_that_is_deleted_on_the_way_is_ended(client: Client, monkeypatch: pytest.MonkeyPatch, settings_of: Any) -> None:
    settings_of(LEASE_SECONDS=0.01)
    played = Played(None, lambda p: Job.objects.all().delete())
    monkeypatch.setattr(runner, "Background", played)
    post(client, model=upload())
    work()
    assert played.dropped and not Job.objects.exists() and not Path(played.cell.folder).exists()


def test_a_worker_that_is_told_to_end_gives_the_job_back(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(None, lambda p: runner.stopping.set())
    monkeypatch.setattr(runner, "Background", played)
    found = post(client, model=upload())
    entry = DBTaskResult.objects.get()
    entry.claim("w")
    assert runner.run(Job.objects.get().pk, entry.id, "w") == "given back"
    job = Job.objects.get(token=found["id"])
    assert played.dropped and job.state == State.QUEUED and DBTaskResult.objects.ready().get().id == job.task


def test_an_upload_that_is_gone(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Background", Played(END))
    found = post(client, model=upload())
    folders.remove("sources", {str(Job.objects.get().source.pk)})
    work()
    job = Job.objects.get(token=found["id"])
    assert (job.state, job.reason) == (State.FAILED, "its upload is no longer there")
