"""The structural key of a graph: equal for equal graphs whatever their ids, names and order, different for different ones."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from cgorl.ir.graph import OUTPUT, Graph, topological
from cgorl.ir.node import Node
from cgorl.ir.ops import COMMUTATIVE


class _Hashes(NamedTuple):
    """What the key of a graph is made of, and that of an edited graph in turn."""

    of: Mapping[int, int]
    """Each node but weights hashed with its whole upstream, 64 bits."""
    total: int
    """The sum of those hashes."""


def structural_key(graph: Graph) -> str:
    """See `Graph.key`.

    Each node is hashed with its whole upstream (a Merkle hash, kept across edits for all but the downstream cone of an
    edit); the key adds the hashes of all nodes but weights up, so that a shared node differs from two equal ones. Equal
    nodes count with all that reads them and where, their equal readers told apart in the same way first: this says who
    reads which. (Equal constants are not told apart: a copy of a weight is as good as the weight.)

    Operators, attributes and contents enter by a cryptographic digest. They are combined by Python's hash of a tuple of
    integers (xxHash; the same in every process), since a rewrite early in a network hashes most of it anew.
    """
    found: str | None = graph.memo.get("key")
    if found is not None:
        return found
    hashes, total = _hashes(graph)
    exact: Mapping[int, int] = {}
    if len(set(hashes.values())) < len(hashes):
        exact = _told_apart(graph, hashes)
        total += sum(h - hashes[i] for i, h in exact.items())
    ends = [(exact.get(v.node) or hashes.get(v.node) or _signature(graph.nodes[v.node]), v.port) for v in graph.outputs]
    about = repr((total, ends, sorted(graph.opsets.items())))
    key = graph.memo["key"] = hashlib.blake2b(about.encode() + graph.frame.digest, digest_size=16).hexdigest()
    return key


def _told_apart(graph: Graph, hashes: Mapping[int, int]) -> dict[int, int]:
    """Hashes of the nodes that have equals, with what reads them."""
    count = Counter(hashes.values())
    twins = {i for i, h in hashes.items() if count[h] > 1 and not graph.nodes[i].constant}
    exact: dict[int, int] = {}
    for i in reversed(topological({i: [v.node for v in graph.nodes[i].reads() if v.node in twins] for i in twins})):
        seen = [(v.port, -1, k) for k, v in enumerate(graph.outputs) if v.node == i]
        for j in {u.node for u in graph.users[i] if u.node != OUTPUT}:
            node = graph.nodes[j]
            places = enumerate((*node.inputs, *(v for _, v in node.captures)))
            reader = exact.get(j) or hashes[j]
            seen += [(v.port, 0 if _commutes(node) else k, reader) for k, v in places if v is not None and v.node == i]
        exact[i] = hash((hashes[i], *sorted(seen)))
    return exact


def _commutes(node: Node) -> bool:
    return node.op in COMMUTATIVE and node.domain == ""


def _hashes(graph: Graph) -> _Hashes:
    known: _Hashes | None = graph.memo.get("hashes")
    if known is not None:
        return known
    nodes = graph.nodes
    base, touched, gone = graph.memo.pop("pending", (_Hashes({}, 0), nodes.keys(), ()))
    hashes, total = dict(base.of), base.total
    for i in gone:
        total -= hashes.pop(i, 0)
    for i in _downstream(graph, touched):
        node = nodes[i]
        if node.is_constant:
            continue
        parts = [-1 if v is None else (hashes.get(v.node) or _signature(nodes[v.node])) + v.port for v in node.inputs]
        if _commutes(node):
            parts.sort()
        for _, v in node.captures:
            parts.append((hashes.get(v.node) or _signature(nodes[v.node])) + v.port)
        found = hash((_signature(node), *parts))
        total += found - hashes.get(i, 0)
        hashes[i] = found
    done = graph.memo["hashes"] = _Hashes(hashes, total)
    return done


def _signature(node: Node) -> int:
    """64 bits for all about the node but its operands; kept with the node."""
    found: int | None = node.memo.get("hash")
    if found is None:
        kind = str(node.types[0]).encode() if node.is_input else b""
        found = node.memo["hash"] = int.from_bytes(hashlib.blake2b(node.signature + kind, digest_size=8).digest(), "little")
    return found


def _downstream(graph: Graph, touched: Collection[int]) -> list[int]:
    """The nodes of `touched` and all that rests on them, producers before users."""
    users, order, seen = graph.users, list[int](), set[int]()
    stack = [i for i in touched if i in graph.nodes]
    while stack:
        i = stack.pop()
        if i < 0:
            order.append(~i)  # all that rests on it has been listed
        elif i not in seen:
            seen.add(i)
            stack.append(~i)
            stack += [u.node for u in users[i] if u.node != OUTPUT and u.node not in seen]
    order.reverse()
    return order
