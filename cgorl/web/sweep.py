"""Sweeping: jobs of dead workers go on, what has expired is removed, and what a crash left behind."""

from __future__ import annotations

import logging
import re
from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from cgorl.web import folders
from cgorl.web.models import Job, Source, State

log = logging.getLogger(__name__)

_YOUNG = 3600.0
"""Seconds that a folder without a row is left alone: its row may be in the making."""


def expire() -> int:
    """Removes what has expired, and folders that belong to nothing; returns how many rows went. Nothing that runs is touched."""
    now = timezone.now()
    with transaction.atomic():
        old = list(Source.objects.filter(expires__lt=now).exclude(jobs__state__in=(State.QUEUED, State.RUNNING)))
        numbers = [j.number for s in old for j in s.jobs.all()]
        for source in old:
            source.delete()
    numbers += [j.number for j in Job.objects.filter(expires__lt=now).exclude(state__in=(State.QUEUED, State.RUNNING))]
    Job.objects.filter(pk__in=numbers).delete()
    _orphans()
    Session.objects.filter(expire_date__lt=now).delete()
    day = now - timedelta(days=1)
    DBTaskResult.objects.exclude(status="READY").filter(enqueued_at__lt=now - timedelta(seconds=settings.KEEP_SECONDS)).delete()
    DBTaskResult.objects.filter(finished_at__lt=day).delete()
    if numbers or old:
        log.info("removed what has expired: %d uploads, %d jobs", len(old), len(numbers))
    return len(numbers) + len(old)


def _orphans() -> None:
    folders.remove("incoming", {p.name for p in folders.older("incoming", 6 * _YOUNG)})
    for kind, rows in (("sources", Source), ("jobs", Job)):
        found = {p.name: int(m[0]) for p in folders.older(kind, _YOUNG) if (m := re.match(r"\d+", p.name))}
        there = set(rows.objects.filter(pk__in=set(found.values())).values_list("pk", flat=True))
        folders.remove(kind, {name for name, pk in found.items() if pk not in there})
