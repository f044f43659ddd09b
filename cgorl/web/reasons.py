"""How a job ended, in words for its user: no traceback, no path of the server."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from cgorl.background import STOPPED
from cgorl.web.models import Job, Kind, State

log = logging.getLogger(__name__)

_LONGEST = 600
FAULT = "an error inside the service; its administrator finds it in the log as job {number}"
TIME = "stopped by its time limit"
MEMORY = "it needed more memory than the {mb:,} MB that a job may take"


class Ended(NamedTuple):
    """The state in which a job ends, why, and what came of it."""

    state: State
    reason: str = ""
    result: Mapping[str, Any] | None = None


def ended(job: Job, last: Mapping[str, Any], points: list[tuple[float, float]], folder: Path, over: str, asked: bool) -> Ended:
    """How the job ended, by the last message of its process; `over` is what it took too much of, `asked` whether it was told to stop."""
    if last.get("kind") == "end":
        return Ended(State.DONE, "", _result(job, last, points))
    text = str(last.get("text", ""))
    if over:
        return Ended(State.REFUSED if job.kind == Kind.LOOK else State.FAILED, over)
    if text == STOPPED and asked:
        return Ended(State.CANCELLED, "cancelled before there was a proven result")
    if last.get("refused"):
        return Ended(State.REFUSED, plain(text, folder))
    if "not enough memory" in text or "bad_alloc" in text:
        return Ended(State.FAILED, MEMORY.format(mb=settings.JOB_MEMORY_BYTES >> 20))
    if "SIGXCPU" in text:
        return Ended(State.FAILED, f"{TIME}: it took more computing time than a job may take")
    log.error("job %d: %s", job.number, plain(text, folder))
    return Ended(State.FAILED, FAULT.format(number=job.number))


def plain(text: str, folder: Path) -> str:
    """The text without paths of the server, and not too long."""
    for path in (str(folder), str(settings.DATA)):
        text = text.replace(path + "/", "").replace(path, "")
    text = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+", "", text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _result(job: Job, last: Mapping[str, Any], points: list[tuple[float, float]]) -> dict[str, Any]:
    found = {k: v for k, v in last.items() if k != "kind"}
    if job.kind == Kind.OPTIMIZE:
        summary = found["summary"]
        end = [max(summary["seconds"]["search"], points[-1][0] if points else 0.0), summary["search"]["found_ms"]]
        found["points"] = [[0.0, summary["cost_ms"]["initial"]], *map(list, points), end]
    return found
