"""Runs a job: a process of its own in a cell, watched from here until it ends, asks too much, or is not ours any more."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import OperationalError, close_old_connections

from cgorl.background import Background, Cell
from cgorl.limits import Limits
from cgorl.web import folders, queue
from cgorl.web.models import Job, Kind, State
from cgorl.web.names import RUN
from cgorl.web.progress import READING, Heard
from cgorl.web.reasons import TIME, Ended, ended

log = logging.getLogger(__name__)

stopping = threading.Event()
"""Set when this worker is told to end: its job goes back into the queue."""

_TICK, _LOOK_AT_DISK = 0.2, 2.0


class Over(NamedTuple):
    """A job that asked too much: of what, in words for its user."""

    why: str


def run(number: int, task: UUID, worker: str) -> str:
    """Runs the job that an entry of the queue is for; returns how it ended, in a word."""
    job = queue.begin(number, task, worker)
    if job is None:
        return "not ours"
    folder = folders.of_job(job)
    try:
        folders.lay(job.source, folder)
        how = _watched(job, folder)
        if how is None:
            queue.give_back(job)
            return "given back"
        queue.end(job, how.state, how.reason, how.result)
        return str(how.state)
    except queue.Lost:
        log.info("job %d: no longer this worker's", number)
        shutil.rmtree(folder, ignore_errors=True)
        return "lost"
    except FileNotFoundError:
        queue.end(job, State.FAILED, "its upload is no longer there")
        return str(State.FAILED)
    finally:
        folders.unlay(folder)


def _watched(job: Job, folder: Path) -> Ended | None:
    """How the job's process ended; None where this worker is to end before it. Raises Lost."""
    seconds = settings.MOST_LOOK_SECONDS if job.kind == Kind.LOOK else settings.MOST_JOB_SECONDS
    heard = Heard()
    process = Background(job.kind, _values(job, folder), heard.take, _cell(folder, seconds))
    began = renewed = time.monotonic()
    looked = began
    asked = over = None
    try:
        while process.wait(_TICK) == {} and process.running:
            now = time.monotonic()
            if stopping.is_set():
                return None
            if now - renewed >= min(1.0, settings.LEASE_SECONDS / 4):
                job_now = _kept(job, heard, now - renewed)
                if job_now is not None:
                    renewed = now
                    if job_now.stop and asked is None:
                        process.stop()
                        asked = now
            if now - looked >= _LOOK_AT_DISK:
                looked = now
                over = _too_much(process.pid, folder)
            over = over or _too_long(now - began, seconds, heard)
            if over is not None:
                process.drop()
                process.wait(10)
                break
    finally:
        process.drop()
    return ended(job, process.last, heard.points, folder, over.why if over else "", asked is not None)


def _kept(job: Job, heard: Heard, since: float) -> Job | None:
    """The job with its lease renewed; None where the database does not answer, for as long as the lease lasts. Raises Lost."""
    try:
        close_old_connections()
        return queue.keep(job, heard.progress())
    except OperationalError:
        if since > settings.LEASE_SECONDS:
            raise queue.Lost from None
        return None


def _values(job: Job, folder: Path) -> dict[str, Any]:
    source = job.source
    values = {**job.options, "model": source.zoo or source.files[0], "runs": str(folder / RUN)}
    if job.options.get("cost") == "measured":
        values |= {"cost.table": str(settings.DATA / "costs"), "cost.shipped": str(settings.SHIPPED / "costs")}
    return values


def _cell(folder: Path, seconds: int) -> Cell:
    limits = Limits(
        memory=settings.JOB_MEMORY_BYTES,
        cpu_seconds=(seconds + 60) * max(1, settings.JOB_THREADS),
        file_bytes=settings.JOB_DISK_BYTES,
        threads=settings.JOB_THREADS,
    )
    return Cell(folder, limits, "cgorl.web.process")


def _too_long(took: float, seconds: int, heard: Heard) -> Over | None:
    if took > seconds:
        return Over(
            f"{TIME}: it took longer than the {seconds:,} seconds that "
            f"{'a look' if seconds == settings.MOST_LOOK_SECONDS else 'a job'} may take"
        )
    if took > settings.MOST_LOOK_SECONDS and heard.stage in READING:
        return Over(f"{TIME}: the model could not be read within {settings.MOST_LOOK_SECONDS} seconds")
    if heard.silent > settings.MOST_SILENT_SECONDS:
        return Over(
            f"{TIME}: nothing was heard of it for {settings.MOST_SILENT_SECONDS} seconds, so that one run of the model takes too long "
            "here, or never ends (a loop without end)"
        )
    return None


def _too_much(pid: int, folder: Path) -> Over | None:
    if folders.used(folder) > settings.JOB_DISK_BYTES:
        return Over(f"it wrote more than the {settings.JOB_DISK_BYTES >> 20:,} MB that a job may write")
    with suppress(OSError, ValueError):
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
        if resident > settings.JOB_MEMORY_BYTES:
            return Over(f"it took more than the {settings.JOB_MEMORY_BYTES >> 20:,} MB of memory that a job may take")
    return None
