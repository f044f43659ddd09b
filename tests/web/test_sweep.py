"""What expires is removed, with its files; what runs is not; what a crash left is found."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.test import Client
from django.utils import timezone

from cgorl.web import folders, sweep
from cgorl.web.models import Job, Source, State
from tests.web.test_api import post, upload


def test_the_old_goes_with_its_files_and_the_young_stays(client: Client) -> None:
    old, busy, young = (Job.objects.get(token=post(client, model=upload())["id"]) for _ in range(3))
    for job, state in ((old, State.DONE), (busy, State.RUNNING), (young, State.DONE)):
        Job.objects.filter(pk=job.pk).update(state=state, attempt=1)
        job.refresh_from_db()
        folders.of_job(job).mkdir()
    past = timezone.now() - timedelta(seconds=1)
    uploads = [folders.of_source(j.source) for j in (old, busy, young)]
    Job.objects.exclude(pk=young.pk).update(expires=past)
    Source.objects.exclude(pk=young.source.pk).update(expires=past)
    assert sweep.expire() == 2  # the job and its upload
    assert list(Job.objects.order_by("pk")) == [busy, young] and Source.objects.count() == 2
    _touch_back()
    sweep.expire()
    assert [folders.of_job(j).exists() for j in (old, busy, young)] == [False, True, True]
    assert [path.exists() for path in uploads] == [False, True, True]


def test_what_a_crash_left_is_removed_once_it_is_old() -> None:
    for path in ("incoming/tmp1.upload", "sources/77", "jobs/88-1"):
        (settings.DATA / path).mkdir()
    sweep.expire()
    assert (settings.DATA / "jobs/88-1").exists()  # it may be in the making
    _touch_back()
    sweep.expire()
    assert not any((settings.DATA / p).exists() for p in ("incoming/tmp1.upload", "sources/77", "jobs/88-1"))


def test_a_deleted_job_takes_an_upload_that_has_no_other(client: Client) -> None:
    first = post(client, model=upload())
    second = post(client, source=first["source"]["id"])
    folder = folders.of_source(Source.objects.get())
    client.delete(f"/api/v1/jobs/{first['id']}")
    assert folder.exists()
    client.delete(f"/api/v1/jobs/{second['id']}")
    assert not folder.exists() and not Source.objects.exists()


def _touch_back() -> None:
    long_ago: Any = time.time() - 7 * 3600
    for kind in folders.KINDS:
        for path in (settings.DATA / kind).iterdir():
            os.utime(path, (long_ago, long_ago))
