"""Two jobs beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgorl.report.screen import decimals
from cgorl.web.labels import chosen
from cgorl.web.verdict import verdict

Job = Mapping[str, Any]


def compared(a: Job, b: Job) -> dict[str, Any]:
    """Of two jobs (see shown.shown): `jobs` with a letter and a verdict each, `rows` of figures, `choices` that differ, `operators`."""
    both: list[dict[str, Any]] = [{"letter": letter, "job": job, "verdict": verdict(job)} for letter, job in zip("AB", (a, b), strict=True)]
    return {
        "jobs": both,
        "same": a["source"]["name"] == b["source"]["name"],
        "rows": _rows(a, b),
        "choices": _choices(a, b),
        "operators": _operators(a, b),
        "curves": [
            {"label": f"{x['letter']}: {x['job']['source']['name']}", "points": x["job"]["points"]} for x in both if x["job"]["points"]
        ],
    }


def _rows(a: Job, b: Job) -> list[dict[str, Any]]:
    pair = (a, b)
    rows = [
        _row("estimated before", pair, lambda s: s["cost_ms"]["initial"], "ms", None),
        _row("estimated after", pair, lambda s: s["cost_ms"]["final"], "ms", None),
        _row("estimated change", pair, lambda s: _percent(s["cost_ms"]["initial"], s["cost_ms"]["final"]), "%", 1),
        _row("measured, times as fast", pair, lambda s: s["gate"]["after"]["times_as_fast"], "", 3, larger=True),
        _row("operators after", pair, lambda s: s["nodes"]["after"], "", 0),
        _row("weights after", pair, lambda s: s["weight_bytes"]["after"] / 1e6, "MB", 2),
        _row("rewrites", pair, lambda s: s["rewrites"], "", 0, None),
        _row("graphs looked at", pair, lambda s: s["search"]["expansions"], "", 0, None),
        _row("rewrites priced", pair, lambda s: s["search"]["evaluations"], "", 0, None),
        _row("search took", pair, lambda s: s["seconds"].get("search", 0.0), "s", 2, None),
        _row("the whole job took", pair, lambda s: sum(s["seconds"].values()), "s", 1, None),
    ]
    return [r for r in rows if any(c["text"] != "–" for c in r["cells"])]


def _row(name: str, pair: tuple[Job, Job], read: Any, unit: str, digits: int | None, larger: bool | None = False) -> dict[str, Any]:
    """`larger` is whether more is better; None: neither."""
    values = [_value(job, read) for job in pair]
    known = [v for v in values if v is not None]
    places = digits if digits is not None else max((decimals(v) for v in known), default=3)
    texts = ["–" if v is None else f"{v:,.{places}f}".replace("-", "−") + (f" {unit}" if unit else "") for v in values]
    best = None if larger is None or len(known) < 2 or texts[0] == texts[1] else (max if larger else min)(known)
    return {"name": name, "cells": [{"text": t, "best": v is not None and v == best} for t, v in zip(texts, values, strict=True)]}


def _value(job: Job, read: Any) -> float | None:
    if not job["result"]:
        return None
    try:
        return float(read(job["result"]["summary"]))
    except TypeError:  # what was not measured is None
        return None


def _percent(before: float, after: float) -> float:
    return 100 * (after / before - 1) if before else 0.0


def _choices(a: Job, b: Job) -> list[tuple[str, str, str]]:
    x, y = dict(chosen(a["options"])), dict(chosen(b["options"]))
    return [(k, x.get(k, "–"), y.get(k, "–")) for k in dict.fromkeys([*x, *y]) if x.get(k) != y.get(k)]


def _operators(a: Job, b: Job) -> list[tuple[str, int, int]]:
    """Operators whose number differs between the two results."""
    x, y = ({c[0]: c[2] for c in (job["result"] or {}).get("counts", [])} for job in (a, b))
    if not x or not y:
        return []
    rows = [(op, x.get(op, 0), y.get(op, 0)) for op in dict.fromkeys([*x, *y]) if x.get(op, 0) != y.get(op, 0)]
    return sorted(rows, key=lambda r: -max(r[1], r[2]))
