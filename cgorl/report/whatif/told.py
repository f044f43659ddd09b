"""Told: a film and its branches as JSON data, only what a list and a curve of them need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgorl.report.film import Film
from cgorl.report.rules.places import node_name
from cgorl.report.whatif.branches import TRACE, Branches

_DOTS = 24


def reel(film: Film, places: Mapping[int, int], since: int = 0) -> dict[str, Any]:
    """The steps of a film from one on: `rules` by name, and for each step a row (rule, where, measured share), boxes, cost after it.

    `places` are the numbers of the boxes of the first graph, by node.
    """
    rules = list(dict.fromkeys(r["rule"] for r in film.rows[since:]))
    rows = [[rules.index(r["rule"]), r["names"][0], share(r)] for r in film.rows[since:]]
    where = []
    for at in film.origins()[since:]:
        boxes = sorted({places[i] for i in at if i in places})
        where.append(boxes[:: max(1, len(boxes) // _DOTS)])
    return {"rules": rules, "rows": rows, "where": where, "costs": [short(s.after_ms) for s in film.steps[since:]]}


def share(entry: Mapping[str, Any]) -> float | None:
    """The measured share of a row of a ledger; None where it was not measured."""
    found = entry.get("measured") or {}
    value = found.get("share")
    return None if value is None else float(value)


def short(ms: float) -> float:
    """A cost to as many digits as a curve shows."""
    return float(np.float32(ms))


def listed(branches: Branches) -> list[dict[str, Any]]:
    """The trace and its branches, by number: what each parted with and where, how far it went, what it costs, and why it ended."""
    found = []
    for number, b in branches.all.items():
        costs = branches.costs_ms(number)
        about: dict[str, Any] = {"number": number, "parent": b.parent, "at": b.at, "by": b.by, "ended": b.ended}
        if number != TRACE:
            step = b.film.steps[b.at]
            about |= {"rule": step.match.rule.name, "where": node_name(b.film.graphs[b.at], step.match.nodes[0])}
        found.append({**about, "rewrites": len(b.film.steps), "cost_ms": costs[-1], "best_ms": min(costs)})
    return found
