"""The guard: what is refused before it is read, and what is told to have been too large on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from cgorl.web.guard import Guard
from cgorl.web.models import Job, Kind, Source, State

_ROOM = 1 << 20


class Sent:
    """A request, and what was answered."""

    def __init__(self, path: str, pieces: Iterable[bytes], length: int | None, method: str = "POST") -> None:
        size = [(b"transfer-encoding", b"chunked")] if length is None else [(b"content-length", str(length).encode())]
        self.scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": [*size, (b"host", b"localhost")]}
        self.scope |= {"client": ("127.0.0.1", 1)}
        self._pieces = list(pieces)
        self.read, self.pause = 0, 0.0
        self.said: list[Any] = []

    async def receive(self) -> dict[str, Any]:
        if not self._pieces:
            return {"type": "http.disconnect"}
        await asyncio.sleep(self.pause)
        piece = self._pieces.pop(0)
        self.read += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def send(self, message: dict[str, Any]) -> None:
        self.said.append(message)

    @property
    def status(self) -> int:
        return int(self.said[0]["status"])

    @property
    def why(self) -> str:
        text = self.said[1]["body"].decode()
        return str(json.loads(text)["detail"]) if self.scope["path"].startswith("/api/") else str(text)


async def swallow(scope: Any, receive: Any, send: Any) -> None:
    """An application that takes all."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def ask(sent: Sent, guard: Guard | None = None) -> Sent:
    asyncio.run((guard or Guard(swallow))(sent.scope, sent.receive, sent.send))
    return sent


def pieces(count: int) -> list[bytes]:
    return [bytes(_ROOM)] * count


@pytest.fixture(autouse=True)
def _small(settings_of: Any) -> None:
    settings_of(MOST_UPLOAD_BYTES=4 << 20, SPARE_DISK_BYTES=0)


def test_what_fits_goes_through() -> None:
    assert ask(Sent("/api/v1/jobs", pieces(4), 4 << 20)).status == 201
    assert ask(Sent("/api/v1/jobs", pieces(4), None)).status == 201
    assert ask(Sent("/api/v1/jobs/x/cancel", [b"a=1"], 3)).status == 201


def test_what_says_that_it_is_too_large_is_not_read() -> None:
    sent = ask(Sent("/api/v1/jobs", pieces(100), 100 << 20))
    assert sent.status == 413 and "4 MB" in sent.why and sent.read <= 9 << 20


def test_what_shows_to_be_too_large_is_read_no_further() -> None:
    sent = ask(Sent("/api/v1/models", pieces(100), None))
    assert sent.status == 413 and sent.read <= 16 << 20


def test_who_drips_is_given_up_and_who_is_only_slow_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 40))
    monkeypatch.setattr("cgorl.web.guard.time", SimpleNamespace(monotonic=lambda: next(clock)))
    for size, status in ((10, 408), (_ROOM, 201)):
        assert ask(Sent("/api/v1/jobs", [bytes(size)] * 4, None)).status == status


def test_who_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgorl.web.guard._SILENCE", 0.01)
    monkeypatch.setattr("cgorl.web.guard._PATIENCE", 0.01)
    sent = Sent("/api/v1/jobs", pieces(2), None)
    sent.pause = 30.0
    assert ask(sent).status == 408 and "stood still" in sent.why


def test_large_bodies_are_for_uploads_alone() -> None:
    sent = ask(Sent("/jobs/x/cancel", pieces(3), 3 << 20))
    assert sent.status == 413 and "without files" in sent.why
    assert ask(Sent("/api/v1/jobs/x", pieces(3), 3 << 20, "DELETE")).status == 413


def test_no_room(settings_of: Any) -> None:
    settings_of(SPARE_DISK_BYTES=1 << 60)
    assert ask(Sent("/api/v1/jobs", pieces(2), 2 << 20)).status == 507


def test_quotas_hold_before_the_body(settings_of: Any) -> None:
    settings_of(MOST_WAITING=1)
    Job.objects.create(kind=Kind.OPTIMIZE, state=State.QUEUED, source=Source.objects.create(name="m"))
    sent = ask(Sent("/api/v1/jobs", pieces(4), 4 << 20))
    assert sent.status == 429 and "queue is full" in sent.why and dict(sent.said[0]["headers"])[b"retry-after"] == b"60"


def test_strangers_send_nothing_where_there_are_accounts(settings_of: Any) -> None:
    settings_of(ACCOUNTS=True)
    assert ask(Sent("/api/v1/jobs", pieces(4), 4 << 20)).status == 401


def test_so_many_at_once(settings_of: Any) -> None:
    settings_of(MOST_UPLOADS_AT_ONCE=1)
    held = asyncio.Event()

    async def hold(scope: Any, receive: Any, send: Any) -> None:
        held.set()
        await asyncio.sleep(0.2)
        await swallow(scope, receive, send)

    async def both() -> tuple[Sent, Sent]:
        guard, first, second = Guard(hold), Sent("/api/v1/jobs", pieces(2), 2 << 20), Sent("/api/v1/jobs", pieces(2), 2 << 20)
        going = asyncio.create_task(guard(first.scope, first.receive, first.send))
        await held.wait()
        await guard(second.scope, second.receive, second.send)
        await going
        return first, second

    first, second = asyncio.run(both())
    assert (first.status, second.status) == (201, 503)
