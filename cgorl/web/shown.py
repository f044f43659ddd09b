"""A job and a source as plain data: for templates, for the API and for those who watch."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from cgorl.web import download, queue
from cgorl.web.models import Job, Kind, Source, State

STAGES = {
    "start": "starting",
    "load": "reading the model",
    "simplify": "cleaning up",
    "price": "pricing the graph",
    "search": "searching",
    "versus": "searching",
    "prove": "proving each rewrite",
    "compare": "comparing with the original",
    "gate": "measuring",
    "save": "writing the result",
    "draw": "drawing",
}
"""What a stage is called on a page."""


def watched(job: Job) -> dict[str, Any]:
    """What changes while a job waits and runs.

    `state` (see models.State), `position` in the queue (1: next; 0: not waiting), `stage` in words, `text` and `share` of it (0 to
    1; None: not known), `points` of the curve (seconds, best cost in ms), `expansions` and `evaluations` of the search, `stopping`,
    `ended`, and `reason` where there is one.
    """
    progress = job.progress or {}
    result = job.result or {}
    return {
        "id": job.token,
        "state": job.state,
        "ended": job.has_ended,
        "stopping": job.stop and not job.has_ended,
        "position": queue.position(job),
        "stage": STAGES.get(progress.get("stage", ""), progress.get("stage", "")) if job.state == State.RUNNING else "",
        "text": progress.get("text", ""),
        "share": progress.get("share"),
        "expansions": progress.get("expansions", 0),
        "evaluations": progress.get("evaluations", 0),
        "points": result.get("points") or progress.get("points", []),
        "reason": job.reason,
    }


def shown(job: Job) -> dict[str, Any]:
    """A job whole: what `listed` says, and in `result` its `ledger`, one entry a rewrite."""
    found = listed(job)
    if found["result"] is not None:
        found["result"] = {**found["result"], "ledger": download.ledger(job)}
    return found


def listed(job: Job) -> dict[str, Any]:
    """A job as in a list: what `watched` says, `source`, `options`, times (ISO 8601, UTC) and, once it is done, `result` and `files`.

    `result` is what cgorl.report.brief says (`headline`, `status`, `proven`, `rows`, `operators`, `lines`), with `summary` (as in
    summary.json), `steps` (of the film) and `drawn` (whether there are pictures to fetch, see cgorl.web.drawn).
    """
    files = [
        {"name": name, "bytes": size, "url": reverse("file", args=[job.token, name])} for name, size in (job.result or {}).get("files", [])
    ]
    return {
        **watched(job),
        "url": reverse("job", args=[job.token]),
        "source": _source(job.source),
        "options": job.options,
        "created": job.created.isoformat(),
        "started": job.started.isoformat() if job.started else None,
        "finished": job.ended.isoformat() if job.ended else None,
        "expires": job.expires.isoformat(),
        "result": job.result if job.kind == Kind.OPTIMIZE else None,
        "files": files,
    }


def source(found: Source) -> dict[str, Any]:
    """A source with what is known of it: `state` and `reason` of the look at it, and its `facts` (see cgorl.web.process.look)."""
    look = found.jobs.filter(kind=Kind.LOOK).order_by("-pk").first()
    result = (look.result or {}) if look is not None else {}
    return {
        **_source(found),
        "state": look.state if look is not None else None,
        "ended": look is None or look.has_ended,
        "reason": look.reason if look is not None else "",
        "facts": result.get("facts"),
        "expires": found.expires.isoformat(),
    }


def _source(found: Source) -> dict[str, Any]:
    return {
        "id": found.token,
        "name": found.name,
        "bytes": found.bytes,
        "zoo": bool(found.zoo),
        "files": list(found.files),
        "url": reverse("source", args=[found.token]),
    }
