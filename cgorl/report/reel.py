"""Reel: a film as bytes for a browser, first the whole and then step by step (assets/trace_view.js shows it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cgorl.cost.model import CostModel
from cgorl.report.film import Cut, Film
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import Scene, scene

_DOTS = 24


def whole(film: Film, cost: CostModel | None) -> bytes:
    """The first graph, and of each step what a list of them needs."""
    first = scene(film.graphs[0], cost)
    places, where = first.places(), []
    for at in film.origins():
        boxes = sorted({places[i] for i in at if i in places})
        where.append(boxes[:: max(1, len(boxes) // _DOTS)])
    rules = list(dict.fromkeys(r["rule"] for r in film.rows))
    rows = [[rules.index(r["rule"]), r["names"][0], measured(r)] for r in film.rows]
    return packed(first, rules=rules, rows=rows, where=where, costs=[float(np.float32(c)) for c in film.costs_ms])


def step(film: Film, k: int, cost: CostModel | None) -> list[bytes]:
    """The neighbourhood of step k before it and after it."""
    return [packed(drawn(cut, cost), cut.marks) for cut in film.around(k)]


def drawn(cut: Cut, cost: CostModel | None) -> Scene:
    """The drawing of a part of a graph."""
    return scene(cut.graph, cost, only=cut.nodes)


def measured(entry: Mapping[str, Any]) -> float | None:
    """The share of the time that a rewrite saved as measured, from its entry in the ledger."""
    share = (entry.get("measured") or {}).get("share")
    return None if share is None else float(share)
