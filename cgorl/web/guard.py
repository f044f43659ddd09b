"""The guard in front of Django: an upload that would be refused is refused before it is read, or as soon as it is too large.

Django under ASGI takes a body in whole before it asks anybody. Here its length, the room on the disk, the sender's quotas and, where
there are accounts, who it is, are looked at first.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from cgorl.web.admission import admit
from cgorl.web.answers import API
from cgorl.web.intake import too_large
from cgorl.web.refusals import RefusalError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_UPLOADS = ("/", "/api/v1/jobs", "/api/v1/models")
"""Where files may be sent to."""
_SMALL = 1 << 20
"""A body of so many bytes is let through, and no larger one where no files are sent to; what an upload has beside its files is less."""
_DRAINED, _PATIENCE = 8 << 20, 3.0
"""So many bytes of a refused body are still taken in, for so many seconds, so that its sender hears the answer."""
_SILENCE, _LEAST = 60.0, 256 << 10
"""Seconds without a piece of a body, or with so few bytes, after which its sender is given up: others wait for the place."""


class Guard:
    """Counts what bodies bring, and how many large ones come at once."""

    def __init__(self, app: App) -> None:
        self._app, self._uploads = app, 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            declared = _declared(scope)
            if declared is not None and declared <= _SMALL:
                await self._app(scope, receive, send)
            else:
                await self._large(scope, receive, send, declared)

    async def _large(self, scope: Message, receive: Receive, send: Send, declared: int | None) -> None:
        upload = scope["method"] == "POST" and scope["path"] in _UPLOADS
        most = settings.MOST_UPLOAD_BYTES + _SMALL if upload else _SMALL
        try:
            if declared is not None and declared > most:
                raise _too_large(upload)
            if self._uploads >= settings.MOST_UPLOADS_AT_ONCE:
                raise RefusalError(503, "too many uploads at once: try again in a moment", 10)
            # a body lies on disk twice for a moment: as it came, and as its files
            if shutil.disk_usage(settings.DATA).free < settings.SPARE_DISK_BYTES + 2 * (declared or 0):
                raise RefusalError(507, "the service has no room for this file: try again later", 600)
            self._uploads += 1
        except RefusalError as e:
            await _refuse(e, scope, receive, send)
            return
        try:
            if upload:
                await sync_to_async(admit)(scope)
            await self._app(scope, _counted(receive, most, _too_large(upload)), send)
        except RefusalError as e:
            await _refuse(e, scope, receive, send)
        finally:
            self._uploads -= 1


def _counted(receive: Receive, most: int, why: RefusalError) -> Receive:
    """Hands on a body, as long as it is not larger than that. Raises `why`: Django has not begun to answer by then."""
    taken, whole = 0, False
    since, before = time.monotonic(), 0

    async def counted() -> Message:
        nonlocal taken, whole, since, before
        if whole:
            return await receive()  # word that the connection is gone, which may take as long as it likes
        try:
            message = await asyncio.wait_for(receive(), _SILENCE)
        except TimeoutError:
            raise RefusalError(408, "the upload stood still for too long") from None
        taken += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if taken > most:
            raise why
        if not whole and time.monotonic() - since > _SILENCE:
            if taken - before < _LEAST:
                raise RefusalError(408, "the upload came too slowly")
            since, before = time.monotonic(), taken
        return message

    return counted


def _too_large(upload: bool) -> RefusalError:
    return too_large() if upload else RefusalError(413, f"a request without files may have {_SMALL >> 20} MB at most")


def _declared(scope: Message) -> int | None:
    """The length that the request says its body has: 0 without a body, None where it comes in chunks."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if length.isdigit():
        return int(length)
    return None if b"transfer-encoding" in headers else 0


async def _refuse(why: RefusalError, scope: Message, receive: Receive, send: Send) -> None:
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while taken < _DRAINED:
                message = await receive()
                taken += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break
    api = scope["path"].startswith(API)
    body = (json.dumps({"detail": str(why)}) if api else f"{why}\n").encode()
    kind = b"application/json" if api else b"text/plain; charset=utf-8"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    if why.after:
        headers.append((b"retry-after", str(why.after).encode()))
    await send({"type": "http.response.start", "status": why.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Answers a server that asks whether the application is ready: Django does not."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
