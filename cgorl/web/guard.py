"""The guard in front of Django: bodies that are too large are refused before they are read, or as soon as they show to be."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from django.conf import settings

from cgorl.web.intake import too_large
from cgorl.web.refusals import RefusalError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_SLACK = 1 << 20
"""What a request has beside its files."""
_SMALL = 1 << 16
_DRAINED, _PATIENCE = 8 << 20, 3.0
"""So many bytes of a refused body are still taken in, for so many seconds, so that its sender hears the answer."""


class Guard:
    """Counts what bodies bring, and how many large ones come at once."""

    def __init__(self, app: App) -> None:
        self._app, self._uploads = app, 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await _lifespan(receive, send)
            return
        declared = _declared(scope)
        if declared is not None and declared <= _SMALL:
            await self._app(scope, receive, send)
            return
        try:
            if declared is not None and declared > settings.MOST_UPLOAD_BYTES + _SLACK:
                raise too_large()
            if self._uploads >= settings.MOST_UPLOADS_AT_ONCE:
                raise RefusalError(503, "too many uploads at once: try again in a moment", 10)
            # a body lies on disk twice for a moment: as it came, and as its files
            if shutil.disk_usage(settings.DATA).free < settings.SPARE_DISK_BYTES + 2 * (declared or 0):
                raise RefusalError(507, "the service has no room for this file: try again later", 600)
        except RefusalError as e:
            await _refuse(e, receive, send)
            return
        self._uploads += 1
        try:
            await self._counted(scope, receive, send)
        finally:
            self._uploads -= 1

    async def _counted(self, scope: Message, receive: Receive, send: Send) -> None:
        """Passes the request on; a body that goes past the limit without having said so ends in a refusal."""
        taken, begun = 0, False

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > settings.MOST_UPLOAD_BYTES + _SLACK:
                raise too_large()
            return message

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except RefusalError as e:
            if not begun:
                await _refuse(e, receive, send)


def _declared(scope: Message) -> int | None:
    """The length that the request says its body has: 0 without a body, None where it comes in chunks."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if length.isdigit():
        return int(length)
    return None if b"transfer-encoding" in headers else 0


async def _refuse(why: RefusalError, receive: Receive, send: Send) -> None:
    taken = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            while taken < _DRAINED:
                message = await receive()
                taken += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break
    body = json.dumps({"detail": str(why)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
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
