"""Events: what changes of a job, sent as it does. However many watch, the database is asked once a second by each web process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, close_old_connections
from django.http import StreamingHttpResponse

from cgorl.web.models import Job
from cgorl.web.shown import watched

_PACE, _QUIET = 1.0, 15.0
"""Seconds between two looks, and between two signs of life on a connection where nothing changes."""
Told = dict[str, Any] | None


class Hub:
    """Looks for all that are watched, as long as any are."""

    def __init__(self) -> None:
        self._watching: dict[int, set[asyncio.Queue[Told]]] = {}
        self._last: dict[int, Told] = {}
        self._pool = ThreadPoolExecutor(1, "events")  # one thread: one connection to the database
        self._looking: asyncio.Task[None] | None = None

    async def watch(self, number: int) -> AsyncIterator[Told]:
        """What a job's watchers see of it, whenever that changes, to its end; None where nothing has, now and then."""
        inbox: asyncio.Queue[Told] = asyncio.Queue()
        self._watching.setdefault(number, set()).add(inbox)
        if number in self._last:
            inbox.put_nowait(self._last[number])
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            while True:
                told: Told = None
                with suppress(TimeoutError):
                    told = await asyncio.wait_for(inbox.get(), _QUIET)
                yield told
                if told is not None and told["ended"]:
                    return
        finally:
            self._watching[number].discard(inbox)
            if not self._watching[number]:
                del self._watching[number]
                self._last.pop(number, None)

    async def _look(self) -> None:
        while self._watching:
            numbers = list(self._watching)
            with suppress(DatabaseError):  # it will answer again
                for number, told in (await asyncio.get_running_loop().run_in_executor(self._pool, _read, numbers)).items():
                    if told != self._last.get(number) and number in self._watching:
                        self._last[number] = told
                        for inbox in self._watching[number]:
                            inbox.put_nowait(told)
            await asyncio.sleep(_PACE)


def _read(numbers: Iterable[int]) -> dict[int, Told]:
    """What watchers see of each job; one that has been deleted has ended."""
    try:
        found: dict[int, Told] = {job.number: watched(job) for job in Job.objects.filter(pk__in=numbers)}
    finally:
        close_old_connections()
    return {n: found.get(n, {"state": "deleted", "ended": True, "reason": "it was deleted"}) for n in numbers}


_hub = Hub()


def stream(job: Job) -> StreamingHttpResponse:
    """The job's events as text/event-stream: `event: job` with what `shown.watched` says, and the last one when it has ended."""
    response = StreamingHttpResponse(_lines(job.number), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # a proxy must not wait for more
    return response


async def _lines(number: int) -> AsyncIterator[str]:
    async for told in _hub.watch(number):
        yield ": still here\n\n" if told is None else f"event: job\ndata: {json.dumps(told)}\n\n"
