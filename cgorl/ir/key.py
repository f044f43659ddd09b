"""The structural key of a graph: equal for equal graphs whatever their ids, names and order, different for different ones."""

from __future__ import annotations

import hashlib

from cgorl.ir.graph import OUTPUT, Graph, topological
from cgorl.ir.node import Node
from cgorl.ir.ops import COMMUTATIVE


def structural_key(graph: Graph) -> str:
    """See `Graph.key`.

    Each node is hashed with its whole upstream (a Merkle hash, kept across edits for all but the downstream cone of an
    edit); the key adds the hashes of all nodes up, so that a shared node differs from two equal ones. Equal nodes count
    with all that reads them and where, their equal readers told apart in the same way first: this says who reads which.
    (Equal constants are not told apart: a copy of a weight is as good as the weight.)
    """
    found: str | None = graph.memo.get("key")
    if found is not None:
        return found
    hashes = _hashes(graph)
    count: dict[bytes, int] = {}
    for h in hashes.values():
        count[h] = count.get(h, 0) + 1
    twins = {i for i, h in hashes.items() if count[h] > 1 and not graph.nodes[i].is_constant}
    exact = dict(hashes)
    for i in reversed(topological({i: [v.node for v in graph.nodes[i].reads() if v.node in twins] for i in twins})):
        seen = [b"%d>%d" % (v.port, k) for k, v in enumerate(graph.outputs) if v.node == i]
        for j in {u.node for u in graph.users[i] if u.node != OUTPUT}:
            node = graph.nodes[j]
            places = enumerate((*node.inputs, *(v for _, v in node.captures)))
            seen += [b"%d:%d:" % (v.port, 0 if _commutes(node) else k) + exact[j] for k, v in places if v is not None and v.node == i]
        exact[i] = hashlib.blake2b(hashes[i] + b"|".join(sorted(seen)), digest_size=16).digest()
    total = sum(int.from_bytes(h, "little") for h in exact.values())
    final = hashlib.blake2b((total % (1 << 160)).to_bytes(20, "little"), digest_size=16)
    final.update(repr(sorted(graph.opsets.items())).encode() + graph.frame.digest)
    for v in graph.outputs:
        final.update(exact[v.node] + b"%d" % v.port)
    key = graph.memo["key"] = final.hexdigest()
    return key


def _commutes(node: Node) -> bool:
    return node.domain == "" and node.op in COMMUTATIVE


def _hashes(graph: Graph) -> dict[int, bytes]:
    known: dict[int, bytes] | None = graph.memo.get("hashes")
    if known is not None:
        return known
    base, touched = graph.memo.pop("pending", ({}, graph.nodes.keys()))
    stale = {i for i in touched if i in graph.nodes}
    stack = list(stale)
    while stack:
        for u in graph.users[stack.pop()]:
            if u.node not in stale and u.node != OUTPUT:
                stale.add(u.node)
                stack.append(u.node)
    hashes = {i: h for i, h in base.items() if i in graph.nodes and i not in stale}
    for i in topological({i: [v.node for v in graph.nodes[i].reads() if v.node in stale] for i in stale}):
        node = graph.nodes[i]
        parts = [b"-" if v is None else hashes[v.node] + b"%d" % v.port for v in node.inputs]
        if _commutes(node):
            parts.sort()
        parts += [hashes[v.node] + b"%d" % v.port for _, v in node.captures]
        kind = str(node.types[0]).encode() if node.is_input else b""
        hashes[i] = hashlib.blake2b(node.signature + b"|".join(parts) + kind, digest_size=16).digest()
    graph.memo["hashes"] = hashes
    return hashes
