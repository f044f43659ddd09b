"""What the service remembers: what was uploaded, and the jobs on it."""

from __future__ import annotations

import secrets
from datetime import timedelta
from enum import StrEnum

from django.conf import settings
from django.db import models
from django.utils import timezone


def token() -> str:
    """A name that cannot be guessed: 192 random bits."""
    return secrets.token_urlsafe(24)


def expiry() -> timezone.datetime:
    """When what begins to exist now will be removed."""
    return timezone.now() + timedelta(seconds=settings.KEEP_SECONDS)


class Source(models.Model):
    """What is to be optimized: an uploaded model, or one of the zoo.

    `token` stands in its link, `owner` in the session that made it (empty: made by the API without one), `address` is a keyed
    digest of where it came from, `name` what its file was called, for people alone.
    """

    token = models.CharField(max_length=64, unique=True, default=token)
    owner = models.CharField(max_length=64, db_index=True, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    address = models.CharField(max_length=64, blank=True)
    name = models.CharField(max_length=255)
    zoo = models.CharField(max_length=64, blank=True)
    bytes = models.BigIntegerField(default=0)
    files = models.JSONField(default=list)
    created = models.DateTimeField(default=timezone.now)
    expires = models.DateTimeField(default=expiry, db_index=True)


class State(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (State.DONE, State.REFUSED, State.FAILED, State.CANCELLED)


class Kind(StrEnum):
    """What a job does; each has a queue of its own, so that a look never waits for an optimization."""

    LOOK = "look"
    OPTIMIZE = "optimize"


class Job(models.Model):
    """One piece of work on a source.

    `attempt` counts its beginnings and fences them: a worker writes only while the job runs and the attempt is its own. A running
    job whose `lease` has passed has lost its worker; `deaths` counts those. `task` is its entry in the queue. `stop` is what its user asked
    of its worker: to end with the best so far. `number` tells it in logs, where its token must not stand.
    """

    token = models.CharField(max_length=64, unique=True, default=token)
    kind = models.CharField(max_length=16, choices=[(k, k) for k in Kind])
    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="jobs")
    owner = models.CharField(max_length=64, db_index=True, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE)
    address = models.CharField(max_length=64, blank=True)
    options = models.JSONField(default=dict)

    state = models.CharField(max_length=16, choices=[(s, s) for s in State], default=State.QUEUED)
    attempt = models.IntegerField(default=0)
    deaths = models.IntegerField(default=0)
    worker = models.CharField(max_length=64, blank=True)
    lease = models.DateTimeField(null=True)
    task = models.UUIDField(null=True)
    stop = models.BooleanField(default=False)

    progress = models.JSONField(default=dict)
    result = models.JSONField(null=True)
    reason = models.TextField(blank=True)

    created = models.DateTimeField(default=timezone.now, db_index=True)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)
    expires = models.DateTimeField(default=expiry, db_index=True)

    class Meta:
        """Indices for the queue's questions."""

        indexes = (models.Index(fields=["state", "kind"]),)

    @property
    def number(self) -> int:
        """Its number in logs and folders."""
        return int(self.pk)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ENDED
