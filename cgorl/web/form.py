"""The form on a model's page: what there is to choose, with good defaults, and what was chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from cgorl.web import choices
from cgorl.web.labels import GROUPS, label

_SIZE = "size:"
_LONG, _IMAGE = 128, 224
_ORDER = ("greedy", "backtracking", "beam", "lookahead", "agent", "guided", "annealing", "random_walk", "exhaustive")
"""Methods as they are listed: the usual ones first."""


def form(facts: Mapping[str, Any] | None, given: Mapping[str, str]) -> dict[str, Any]:
    """What the page needs: `menus` by group, `values` of the plain fields, and a field for each of the model's open `sizes`.

    `given` is what was sent before, where that was refused.
    """
    first = choices.defaults()
    menus = {g: _menu(g, there, given.get(g, "" if g == "search" else first[g])) for g, there in choices.menus().items()}
    values = {
        name: given.get(name, "" if first[name] is None else first[name]) for name in ("seconds", "expansions", "evaluations", "seed")
    }
    sizes = [
        {"field": _SIZE + s, "symbol": s, "of": _said(s, facts or {}), "value": given.get(_SIZE + s, usual(s, facts or {}))}
        for s in (facts or {}).get("symbols", [])
    ]
    most = {"seconds": settings.MOST_SEARCH_SECONDS}
    return {
        "menus": menus,
        "values": values,
        "sizes": sizes,
        "most": most,
        "changed": any(given.get(n) for n in ("expansions", "evaluations")),
    }


def options(posted: Mapping[str, str]) -> dict[str, Any]:
    """What the form sent, as options of a job (see choices.read)."""
    found: dict[str, Any] = {k: v for k, v in posted.items() if k in choices.KNOWN}
    if sizes := {k.removeprefix(_SIZE): v for k, v in posted.items() if k.startswith(_SIZE) and v}:
        found["dims"] = sizes
    return found


def usual(symbol: str, facts: Mapping[str, Any]) -> int:
    """A size that a dim is likely to have: 1 for a batch, 224 for a side of an image, 128 for a sequence."""
    name, colon, axis = symbol.rpartition(":")
    if colon and axis.isdigit():
        rank = next((len(i["shape"] or ()) for i in facts.get("inputs", []) if i["name"] == name), 0)
        return 1 if axis == "0" else _IMAGE if rank == 4 and axis in "23" else _LONG if rank in (2, 3) and axis == "1" else 1
    words = set(re.split(r"[^a-z]+", symbol.lower()))
    if words & {"batch", "n", "b"}:
        return 1
    if words & {"height", "width", "h", "w", "image"}:
        return _IMAGE
    if words & {"seq", "sequence", "length", "len", "tokens", "time", "t", "s", "l"} or re.search(r"seq|len", symbol.lower()):
        return _LONG
    return 1


def _said(symbol: str, facts: Mapping[str, Any]) -> str:
    """Where a dim is, for people."""
    name, colon, axis = symbol.rpartition(":")
    if colon and axis.isdigit():
        return f"axis {axis} of {name}"
    found = [i["name"] for i in facts.get("inputs", []) if symbol in (i["shape"] or ())]
    return f"of {', '.join(found[:3])}" if found else ""


def _menu(group: str, there: list[str], chosen: str) -> dict[str, Any]:
    ordered = sorted(there, key=lambda n: _ORDER.index(n) if n in _ORDER else 99) if group == "search" else there
    if group in ("rules", "cost"):
        ordered = sorted(there, key=lambda n: n != choices.defaults()[group])
    items = [{"name": n, "title": label(group, n).title, "about": label(group, n).about, "chosen": n == chosen} for n in ordered]
    return {"title": GROUPS[group].title, "about": GROUPS[group].about, "items": items, "chosen": chosen}
