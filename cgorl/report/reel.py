"""Reel: a film as bytes for a browser, first the whole and then step by step (assets/trace_view.js shows it)."""

from __future__ import annotations

from cgorl.cost.model import CostModel
from cgorl.report.film import Film
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import scene
from cgorl.report.whatif.told import reel, short


def whole(film: Film, cost: CostModel | None) -> bytes:
    """The first graph, and of each step what a list of them needs."""
    first = scene(film.graphs[0], cost)
    return packed(first, **reel(film, first.places()), first=short(film.costs_ms[0]) if film.steps else None)


def step(film: Film, k: int, cost: CostModel | None) -> list[bytes]:
    """The neighbourhood of step k before it and after it."""
    return [packed(scene(cut.graph, cost, only=cut.nodes), cut.marks) for cut in film.around(k)]
