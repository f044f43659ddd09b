"""Files out, piece by piece and never whole in memory."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.http import Http404, HttpResponse, StreamingHttpResponse

from cgorl.web import folders
from cgorl.web.models import Job
from cgorl.web.names import DRAWN

_PIECE, _MOST_REWRITES = 1 << 20, 2000
_TYPES = {".json": "application/json", ".html": "text/html; charset=utf-8", ".png": "image/png", ".txt": "text/plain; charset=utf-8"}


def result(job: Job, name: str) -> StreamingHttpResponse:
    """A file of the job's result. Raises Http404 for a name that is not among those."""
    found = job.result or {}
    if name not in [n for n, _ in found.get("files", [])]:
        raise Http404
    return _sent(folders.of_job(job) / found["folder"] / name, _TYPES.get(Path(name).suffix, "application/octet-stream"), name)


def ledger(job: Job) -> list[dict[str, Any]]:
    """The entries of the job's ledger, so many that a page can show them; none where the job has none."""
    try:
        text = (folders.of_job(job) / (job.result or {})["folder"] / "ledger.json").read_text(encoding="utf-8", errors="replace")
        found: list[dict[str, Any]] = json.loads(text)["rewrites"][:_MOST_REWRITES]
    except (OSError, LookupError, ValueError):
        return []
    return found


def picture(job: Job, name: str) -> HttpResponse:
    """A picture of the result (see cgorl.web.drawn): bytes for assets/packed.js. Raises Http404."""
    if not re.fullmatch(r"(before|after)(-folded)?|film|\d{1,6}-(before|after)", name):
        raise Http404
    return _sent(folders.of_job(job) / DRAWN / name, "application/octet-stream", None)


def _sent(path: Path, kind: str, name: str | None) -> StreamingHttpResponse:
    try:
        size = path.stat().st_size
    except OSError:
        raise Http404 from None
    response = StreamingHttpResponse(_pieces(path), content_type=kind)
    response["Content-Length"] = str(size)
    if name is not None:
        response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
        response["Content-Security-Policy"] = "sandbox"  # should a browser show it after all
    return response


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as f:
        while piece := await asyncio.to_thread(f.read, _PIECE):
            yield piece
