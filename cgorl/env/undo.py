"""Whether a rewrite undoes the one before it: told from the two edits, without building a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cgorl.cost.model import Price
from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, Value
from cgorl.ir.ops import COMMUTATIVE
from cgorl.rules.rule import Match

_LEAST_MS = 1e-9


class Gains(Protocol):
    """A graph and what each of its matches saves."""

    graph: Graph
    prices: dict[Match, Price]

    def gain(self, match: Match) -> float:
        """What `match` saves, in ms."""
        ...


def offered(at: Gains, last: Match, before: Gains) -> tuple[Match, ...]:
    """The matches of `at` but the one that leads straight back to `before`, from where `last` has led to `at`."""
    new = before.graph.next_id  # to undo is to take away what is new, the root with it
    return tuple([m for m in at.prices if m.root < new or not undoes(m, last, before, at)])


def undoes(match: Match, last: Match, before: Gains, at: Gains) -> bool:
    """Whether `match` leads from `at` back to `before`, from where `last` has led to `at`.

    So it is if it takes away just what was added, and puts the same operators on the same values in the places where they
    were. Expressions on weights are not compared: those that a round trip leaves are longer, and worth the same.
    """
    if abs(at.gain(match) + before.gain(last)) > _LEAST_MS:
        return False
    base = before.graph.next_id
    new = {base + k for k, n in enumerate(last.edit.added) if not n.constant}
    if new != {i for i in match.edit.removed if not at.graph.nodes[i].constant}:
        return False
    old = {i: before.graph.nodes[i] for i in last.edit.removed if not before.graph.nodes[i].constant}
    put = {-2 - k: n for k, n in enumerate(match.edit.added) if not n.constant}
    if len(put) != len(old):
        return False
    was = _forms(old, list(last.edit.rewired), lambda i: i in before.graph.nodes and before.graph.nodes[i].constant)
    back = _forms(put, list(match.edit.rewired.values()), lambda i: at.graph.nodes[i].constant if i >= 0 else i not in put)
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
