"""The life of a job: put into the queue, begun, kept up, ended, taken back from a dead worker. Each step is one conditional update.

The queue itself is django-tasks'. What it does not know is that a worker has died: here a running job has a lease.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from cgorl.web.models import Job, Kind, Source, State

log = logging.getLogger(__name__)

_AGAIN = 10
"""Priority of a job that is tried again: it has waited already."""
DIED = "the worker that ran it died, and so did the one that tried it again"


class Lost(Exception):
    """The job is not this worker's any more: deleted, or taken from it."""


def add(kind: Kind, source: Source, options: Mapping[str, Any]) -> Job:
    """A new job in the queue, of the source's owner; row and entry in the queue come to be together."""
    with transaction.atomic():
        job = Job(kind=kind, source=source, owner=source.owner, user=source.user, address=source.address, options=dict(options))
        job.save()
        _enqueue(job)
    log.info("job %d: queued (%s)", job.number, kind)
    return job


def begin(number: int, task: UUID, worker: str) -> Job | None:
    """The job, now this worker's; None where that entry of the queue is not the one that counts any more."""
    now = timezone.now()
    mine = Job.objects.filter(pk=number, state=State.QUEUED, task=task).update(
        state=State.RUNNING, attempt=F("attempt") + 1, worker=worker, lease=_lease(), started=now, progress={}
    )
    return Job.objects.select_related("source").get(pk=number) if mine else None


def keep(job: Job, progress: Mapping[str, Any] | None = None) -> Job:
    """Renews the lease, with how far it is; returns the job as it stands, with what its user asked. Raises Lost."""
    told = {} if progress is None else {"progress": progress}
    if not _mine(job).update(lease=_lease(), **told):
        raise Lost
    try:
        found: Job = Job.objects.get(pk=job.pk)
    except Job.DoesNotExist:
        raise Lost from None
    return found


def end(job: Job, state: State, reason: str = "", result: Mapping[str, Any] | None = None) -> None:
    """Ends the job. Raises Lost."""
    if not _mine(job).update(state=state, reason=reason, result=result, ended=timezone.now(), lease=None):
        raise Lost
    log.info("job %d: %s%s", job.number, state, f" ({reason})" if reason else "")


def give_back(job: Job) -> None:
    """Puts the job back into the queue, as if it had not begun: its worker is told to stop. Raises Lost."""
    _again(job, job.deaths, "its worker was stopped")


def cancel(job: Job) -> None:
    """Ends a waiting job, and asks the worker of a running one to come to an end with the best so far."""
    if Job.objects.filter(pk=job.pk, state=State.QUEUED).update(
        state=State.CANCELLED, ended=timezone.now(), reason="cancelled before it began"
    ):
        DBTaskResult.objects.filter(id=job.task, status="READY").delete()
    Job.objects.filter(pk=job.pk, state=State.RUNNING).update(stop=True)


def position(job: Job) -> int:
    """How many jobs wait before this one, itself counted; 0 where it does not wait."""
    if job.state != State.QUEUED:
        return 0
    return int(Job.objects.filter(state=State.QUEUED, kind=job.kind, pk__lte=job.pk).count())


def recover() -> int:
    """Takes jobs from workers that have died: each is tried once more, or has failed. Returns how many."""
    now, found = timezone.now(), 0
    for job in Job.objects.filter(state=State.RUNNING, lease__lt=now):
        found += _recovered(job)
    # Entries of the queue that a worker took and died with before it began the job, and entries that are no more.
    waiting = DBTaskResult.objects.filter(status="READY").values("id")
    for job in Job.objects.filter(state=State.QUEUED, created__lt=now - _lease_time()).exclude(task__in=waiting):
        entry = DBTaskResult.objects.filter(id=job.task).first()
        if entry is None or (entry.status != "READY" and (entry.started_at or now) < now - _lease_time()):
            with transaction.atomic():
                if (locked := _locked(job, State.QUEUED)) is not None:
                    _enqueue(locked, _AGAIN)
                    found += 1
    return found


def _recovered(job: Job) -> bool:
    with transaction.atomic():
        found = _locked(job, State.RUNNING)
        if found is None or found.lease is None or found.lease >= timezone.now():
            return False
        DBTaskResult.objects.filter(id=found.task).delete()
        if found.deaths + 1 >= settings.ATTEMPTS:
            Job.objects.filter(pk=found.pk).update(
                state=State.FAILED, reason=DIED, ended=timezone.now(), lease=None, deaths=F("deaths") + 1
            )
            log.warning("job %d: failed (%s)", found.number, DIED)
            return True
    _again(found, found.deaths + 1, "its worker died")
    return True


def _again(job: Job, deaths: int, why: str) -> None:
    with transaction.atomic():
        if not Job.objects.filter(pk=job.pk, attempt=job.attempt, state=State.RUNNING).update(
            state=State.QUEUED, lease=None, deaths=deaths, progress={}
        ):
            raise Lost
        _enqueue(job, _AGAIN)
    log.info("job %d: back in the queue (%s)", job.number, why)


def _locked(job: Job, state: State) -> Job | None:
    found: Job | None = Job.objects.select_for_update().filter(pk=job.pk, state=state, attempt=job.attempt).first()
    return found


def _enqueue(job: Job, priority: int = 0) -> None:
    from cgorl.web.tasks import work  # which runs jobs, and so needs this module

    entry = work.using(queue_name=job.kind, priority=priority).enqueue(job.pk)
    job.task = UUID(str(entry.id))
    Job.objects.filter(pk=job.pk).update(task=job.task)


def _mine(job: Job) -> Any:
    return Job.objects.filter(pk=job.pk, attempt=job.attempt, state=State.RUNNING)


def _lease_time() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def _lease() -> timezone.datetime:
    return timezone.now() + _lease_time()
