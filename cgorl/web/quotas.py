"""Quotas: how many jobs may wait, of all, of one user and of one address, and begin in an hour; how many uploads, and how large."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Q, Sum
from django.utils import timezone

from cgorl.web.models import Job, Kind, Source, State
from cgorl.web.owner import Owner
from cgorl.web.refusals import RefusalError

_HOUR = 3600


def check_jobs(owner: Owner) -> None:
    """Raises RefusalError (429) where one more job would be too many."""
    jobs = Job.objects.filter(kind=Kind.OPTIMIZE)
    open_ = jobs.filter(state__in=(State.QUEUED, State.RUNNING))
    own = _own(owner)
    if open_.filter(state=State.QUEUED).count() >= settings.MOST_WAITING:
        raise RefusalError(429, f"the queue is full ({settings.MOST_WAITING} jobs wait): try again later", 60)
    if open_.filter(own).count() >= settings.MOST_WAITING_EACH:
        raise RefusalError(
            429, f"{settings.MOST_WAITING_EACH} of your jobs wait or run, which is the limit: wait for one to end, or cancel one", 30
        )
    if open_.filter(address=owner.address).count() >= settings.MOST_WAITING_OF_AN_ADDRESS:
        most = settings.MOST_WAITING_OF_AN_ADDRESS
        raise RefusalError(429, f"{most} jobs from your address wait or run, which is the limit: wait for one to end", 60)
    recent = jobs.filter(created__gte=timezone.now() - timedelta(seconds=_HOUR))
    if recent.filter(own).count() >= settings.MOST_AN_HOUR:
        raise RefusalError(429, f"you have started {settings.MOST_AN_HOUR} jobs within an hour, which is the limit: try again later", 600)
    if recent.filter(address=owner.address).count() >= settings.MOST_AN_HOUR_OF_AN_ADDRESS:
        most = settings.MOST_AN_HOUR_OF_AN_ADDRESS
        raise RefusalError(429, f"{most} jobs were started from your address within an hour, which is the limit: try again later", 600)


def check_uploads(owner: Owner) -> None:
    """Raises RefusalError (429) where one more upload would be too many, or too much is kept already."""
    uploads = Source.objects.filter(_own(owner), created__gte=timezone.now() - timedelta(seconds=_HOUR))
    if uploads.count() >= settings.MOST_AN_HOUR:
        raise RefusalError(429, f"you have brought {settings.MOST_AN_HOUR} models within an hour, which is the limit: try again later", 600)
    kept = Source.objects.filter(address=owner.address).aggregate(bytes=Sum("bytes"))["bytes"] or 0
    if kept >= settings.MOST_KEPT_BYTES_OF_AN_ADDRESS:
        gigabytes = settings.MOST_KEPT_BYTES_OF_AN_ADDRESS >> 30
        raise RefusalError(429, f"the uploads from your address come to {gigabytes} GB, which is the limit: delete some first", 600)


def _own(owner: Owner) -> Q:
    """What counts as the owner's: of a program without a session, all that came from its address without one."""
    return owner.own() if owner.user is not None or owner.session else Q(address=owner.address, owner="", user=None)
