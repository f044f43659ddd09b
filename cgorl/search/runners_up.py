"""Runners-up: the next best graphs of a search, for who has to choose by something else than prices."""

from __future__ import annotations

from collections.abc import Iterable

from cgorl.search.way import Way

MOST = 2
"""So many are kept: each takes a part of the time in which a gate measures."""

NEAR = 1.1
"""A graph that costs more than so many times the best is none: prices do not err by that much."""

_SAME = 1e-9


def runners_up(best: Way, ways: Iterable[Way]) -> tuple[Way, ...]:
    """The MOST cheapest of `ways` that come NEAR `best` and do not lie on the way to it, the cheapest first.

    Of those that cost the same and are of one size the first stands for all: where a network repeats a block, a rewrite left
    out in one place is no other graph than one left out in another, as far as prices tell.
    """
    passed, found = {id(way) for way in best.behind()}, [best]
    for way in sorted([w for w in ways if w.cost_ms <= NEAR * best.cost_ms], key=lambda w: (w.cost_ms, w.size)):
        if id(way) not in passed and not any(w.size == way.size and abs(w.cost_ms - way.cost_ms) <= _SAME * best.cost_ms for w in found):
            found.append(way)
    return tuple(found[1 : MOST + 1])
