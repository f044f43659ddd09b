"""Blocks: parts of a graph that repeat, so that a drawing may show each as one box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from cgorl.ir.graph import Graph

_NARROW = 3
_LEAST = 3
_THROUGH = 0.5


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that follow each other and that little leads into or out of; `title` says what and which of how many alike."""

    nodes: tuple[int, ...]
    title: str


def blocks(graph: Graph) -> tuple[Block, ...]:
    """The repeated blocks, from top to bottom; no two share a node, and none has a way out of it that leads back in.

    Nodes are put into an order that follows branches to their end; the order is cut where few values are alive (one, two or
    three, whichever finds most and not too large ones), and pieces with the same operators in the same order repeat. Pieces
    of an order have no way out and back, whatever the graph.
    """
    order = [i for i in by_branches(graph) if not graph.nodes[i].constant and not graph.nodes[i].is_source]
    alive = _alive(graph, order)
    best: list[tuple[int, ...]] = []
    most = 0.0
    for narrow in range(1, _NARROW + 1):
        cuts = [0, *(p for p in range(1, len(order)) if alive[p] <= narrow), len(order)]
        pieces = [tuple(order[a:b]) for a, b in pairwise(cuts) if b - a >= _LEAST]
        alike = Counter(_look(graph, p) for p in pieces)
        found = [p for p in pieces if alike[_look(graph, p)] > 1]
        worth = sum(map(len, found)) * (1 - 1 / max(1, len(found)))  # a third of the graph is not yet a block that one can take in
        if worth > most:
            best, most = found, worth
    kinds: dict[tuple[str, ...], int] = {}
    return tuple(Block(p, _title(graph, p, kinds.setdefault(_look(graph, p), len(kinds)))) for p in best)


def by_branches(graph: Graph) -> list[int]:
    """Node ids, each after all that it reads, one branch after another."""
    order: list[int] = []
    done: set[int] = set()
    users = graph.users
    ends = [v.node for v in graph.outputs] + [i for i in graph.nodes if not users[i]]
    for end in dict.fromkeys(ends):
        stack = [(end, False)]
        while stack:
            i, left = stack.pop()
            if left:
                order.append(i)
            elif i not in done:
                done.add(i)
                stack.append((i, True))
                stack.extend((v.node, False) for v in reversed(tuple(graph.nodes[i].reads())) if v.node not in done)
    return order


def _alive(graph: Graph, order: Sequence[int]) -> list[int]:
    """For each place of the order: how many nodes before it are read at or after it.

    One that lives through most of the graph, as an attention mask does, is as good as an input and does not count.
    """
    at = {i: k for k, i in enumerate(order)}
    last = {i: k for i, k in at.items()}
    for k, i in enumerate(order):
        for v in graph.nodes[i].reads():
            if v.node in last:
                last[v.node] = k
    change = [0] * (len(order) + 2)
    for i, k in at.items():
        if last[i] - k > _THROUGH * len(order):
            continue
        change[k + 1] += 1
        change[last[i] + 1] -= 1
    alive, total = [], 0
    for step in change[: len(order)]:
        total += step
        alive.append(total)
    return alive


def _look(graph: Graph, piece: Sequence[int]) -> tuple[str, ...]:
    return tuple(graph.nodes[i].label for i in piece)


def _title(graph: Graph, piece: Sequence[int], kind: int) -> str:
    """The scope that all their names share, or a letter for the kind."""
    scopes = [graph.nodes[i].name.split("/")[:-1] for i in piece]
    shared = "/".join(parts[0] for parts in takewhile(lambda p: len(set(p)) == 1, zip(*scopes, strict=False))).strip("/")
    kinds = chr(ord("A") + kind) if kind < 26 else str(kind)
    return f"{shared or f'block {kinds}'} ({len(piece)} nodes)"
