"""Whether a rewrite undoes the one before it: told from the two edits, without building a graph."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from cgorl.env.prices import Prices
from cgorl.ir.node import Node, Value
from cgorl.ir.ops import COMMUTATIVE
from cgorl.rules.rule import Match

_LEAST_MS = 1e-9


def straight_back(at: Prices, last: Match, before: Prices) -> tuple[Match, ...]:
    """The matches of `at` that lead straight back to the graph of `before`, from where `last` has led here."""
    listing = at.found.listing
    new = bisect_left(listing.roots, before.found.graph.next_id)  # to undo is to take away what is new, the root with it
    return tuple([m for m in listing.matches[new:] if m in at and undoes(m, last, before, at)])


def undoes(match: Match, last: Match, before: Prices, at: Prices) -> bool:
    """Whether `match` leads from `at` back to `before`, from where `last` has led to `at`.

    So it is if it takes away just what was added, and puts the same operators on the same values in the places where they
    were. Expressions on weights are not compared: those that a round trip leaves are longer, and worth the same.
    """
    if abs(at[match].gain + before[last].gain) > _LEAST_MS:
        return False
    then, now = before.found.graph, at.found.graph
    base = then.next_id
    new = {base + k for k, n in enumerate(last.edit.added) if not n.constant}
    if new != {i for i in match.edit.removed if not now.nodes[i].constant}:
        return False
    old = {i: then.nodes[i] for i in last.edit.removed if not then.nodes[i].constant}
    put = {-2 - k: n for k, n in enumerate(match.edit.added) if not n.constant}
    if len(put) != len(old):
        return False
    was = _forms(old, list(last.edit.rewired), lambda i: i in then.nodes and then.nodes[i].constant)
    back = _forms(put, list(match.edit.rewired.values()), lambda i: now.nodes[i].constant if i >= 0 else i not in put)
    return was == back


def _forms(inside: Mapping[int, Node], values: list[Value], constant: Callable[[int], bool]) -> list[str]:
    """The values as expressions of nodes `inside` on values from outside, sorted."""
    known: dict[int, Any] = {}

    def form(v: Value | None) -> str:
        if v is None:
            return "-"
        if v.node not in inside:
            return "w" if constant(v.node) else f"{v.node}:{v.port}"
        if v.node not in known:
            node = inside[v.node]
            parts = [form(x) for x in node.inputs] + [form(x) for _, x in node.captures]
            if node.op in COMMUTATIVE and node.domain == "":
                parts.sort()
            known[v.node] = f"{node.signature.hex()}({','.join(parts)})"
        return f"{known[v.node]}:{v.port}"

    return sorted(form(v) for v in values)
