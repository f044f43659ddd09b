"""The life of a job: begun once, kept by its lease, taken from a dead worker, tried once more, never stuck."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from cgorl.web import queue
from cgorl.web.models import Job, Kind, Source, State


def job(owner: str = "me") -> Job:
    return queue.add(Kind.OPTIMIZE, Source.objects.create(owner=owner, name="m", zoo="resnet18"), {})


def entry(found: Job) -> DBTaskResult:
    """The job's entry in the queue, taken by a worker."""
    taken: DBTaskResult = DBTaskResult.objects.get(id=Job.objects.get(pk=found.pk).task)
    taken.claim("w")
    return taken


def begun(found: Job, worker: str = "w") -> Job:
    taken = queue.begin(found.pk, entry(found).id, worker)
    assert taken is not None
    return taken


def lost(found: Job) -> None:
    """The job's worker is not heard of any more."""
    Job.objects.filter(pk=found.pk).update(lease=timezone.now() - timedelta(seconds=1))


def test_a_job_is_begun_by_one_worker_alone() -> None:
    found = job()
    task = entry(found).id
    assert queue.begin(found.pk, uuid4(), "other") is None
    assert queue.begin(found.pk, task, "a") is not None
    assert queue.begin(found.pk, task, "b") is None
    assert Job.objects.get(pk=found.pk).worker == "a"


def test_a_job_whose_worker_died_is_tried_once_more_and_has_then_failed() -> None:
    found = job()
    first = begun(found)
    assert queue.recover() == 0
    lost(found)
    assert queue.recover() == 1
    again = Job.objects.get(pk=found.pk)
    assert (again.state, again.attempt, again.deaths) == (State.QUEUED, 1, 1)
    second = begun(again, "v")
    assert second.attempt == 2
    lost(found)
    assert queue.recover() == 1
    end = Job.objects.get(pk=found.pk)
    assert (end.state, end.reason) == (State.FAILED, queue.DIED)
    assert queue.recover() == 0
    for dead in (first, second):  # a worker that was only asleep
        with pytest.raises(queue.Lost):
            queue.keep(dead)
        with pytest.raises(queue.Lost):
            queue.end(dead, State.DONE)
    assert Job.objects.get(pk=found.pk).state == State.FAILED


def test_one_that_waited_goes_before_those_that_came_later() -> None:
    found, later = job(), job()
    begun(found)
    lost(found)
    queue.recover()
    assert DBTaskResult.objects.ready().first().id == Job.objects.get(pk=found.pk).task
    assert [queue.position(Job.objects.get(pk=j.pk)) for j in (found, later)] == [1, 2]


def test_a_lease_that_is_renewed_lasts() -> None:
    taken = begun(job())
    lost(taken)
    kept = queue.keep(taken, {"stage": "search"})
    assert kept.progress == {"stage": "search"} and kept.lease > timezone.now()
    assert queue.recover() == 0


@pytest.mark.parametrize("how", ["gone", "taken"])
def test_a_waiting_job_never_loses_its_place_in_the_queue(how: str) -> None:
    found = job()
    old = timezone.now() - timedelta(seconds=settings.LEASE_SECONDS + 5)
    if how == "gone":
        DBTaskResult.objects.all().delete()
    else:
        entry(found)  # by a worker that died before it began the job
        DBTaskResult.objects.update(started_at=old)
    assert queue.recover() == 0  # it may be about to begin
    Job.objects.update(created=old)
    assert queue.recover() == 1
    assert begun(Job.objects.get(pk=found.pk)).attempt == 1
    assert queue.recover() == 0


def test_a_worker_that_is_told_to_end_gives_its_job_back_unharmed() -> None:
    found = job()
    for attempt in (1, 2, 3):
        taken = begun(Job.objects.get(pk=found.pk))
        assert taken.attempt == attempt
        queue.give_back(taken)
    assert Job.objects.get(pk=found.pk).deaths == 0


def test_what_is_cancelled() -> None:
    waiting, running, over = job(), begun(job()), begun(job())
    queue.end(over, State.DONE)
    for each in (waiting, running, over):
        queue.cancel(Job.objects.get(pk=each.pk))
    states = [Job.objects.get(pk=j.pk).state for j in (waiting, running, over)]
    assert states == [State.CANCELLED, State.RUNNING, State.DONE]
    assert queue.keep(running).stop
    assert not DBTaskResult.objects.filter(id=waiting.task).exists()


def test_a_deleted_job_is_lost_to_its_worker() -> None:
    taken = begun(job())
    Job.objects.get(pk=taken.pk).delete()
    with pytest.raises(queue.Lost):
        queue.keep(taken)
