"""Inlining: the branch of an If whose condition is known, as nodes of the graph around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx

from cgorl.ir.from_proto import add_nodes
from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, Opaque, Value, constant
from cgorl.ir.ops import bodies, captures, rename_values
from cgorl.ir.tensor import Tensor


class Inliner:
    """Puts branches in the place of If nodes of one graph; no name it gives repeats one of the graph or of a body in it."""

    def __init__(self, graph: Graph) -> None:
        """Looks at no name before the first `inline`."""
        self._graph = graph
        self._count: Counter[str] | None = None

    def inline(self, node: Node, nodes: dict[int, Node], next_id: int, only: bool | None = None) -> dict[int, Value] | None:
        """Adds the branch that the constant condition of `node` chooses, or the `only` one that it can, to `nodes`; ids from `next_id` on.

        Returns the value that takes the place of each output, by port; None where the branch has to stay: the condition is
        not known, it has sparse weights, or it names a value of its own as one that it reads from outside.
        """
        chosen = _chosen(node, nodes, only)
        if chosen is None or chosen.sparse_initializer:
            return None
        own = Counter(n for p in bodies(node.proto) for n in _defined(p)) if node.proto is not None else Counter[str]()
        outside = captures(chosen)
        if not own.keys().isdisjoint(outside):
            return None
        body = onnx.GraphProto()
        body.CopyFrom(chosen)
        rename_values(body, {n: n for n in outside} | self._names(node, chosen, own))
        scope = dict(node.captures)
        base = self._graph.frame.base
        for t in body.initializer:
            nodes[next_id] = constant(Tensor(t, base=base), t.name)
            scope[t.name] = Value(next_id)
            next_id += 1
        add_nodes(nodes, scope, list(body.node), {}, self._graph.frame.model, self._graph.opsets, base, next_id)
        return {p: scope[out.name] for p, out in enumerate(body.output)}

    def _names(self, node: Node, body: onnx.GraphProto, own: Mapping[str, int]) -> dict[str, str]:
        """New names for what `body` defines: a result takes the name of the If's, the rest keep theirs unless it is taken."""
        if self._count is None:
            self._count = Counter(self._graph.frame.reserved)
            for n in self._graph.nodes.values():
                self._count.update(n.names)
                if n.proto is not None:
                    self._count.update(name for b in bodies(n.proto) for name in _defined(b))
        made = {name: name for name in _defined(body)}
        computed = {name for n in body.node for name in n.output}
        results = {out.name: name for out, name in zip(body.output, node.names, strict=False) if name and out.name in computed}
        for name in made:
            new, k = results.get(name, name), 0
            while name not in results and self._count[new] > (own[name] if k == 0 else 0):
                k += 1
                new = f"{name}_{k}"
            self._count[new] += 1
            made[name] = new
        return made


def _chosen(node: Node, nodes: Mapping[int, Node], only: bool | None) -> onnx.GraphProto | None:
    source = node.inputs[0] if node.inputs else None
    if only is not None and node.proto is not None:
        branch = node.attrs.get("then_branch" if only else "else_branch")
        return branch.proto.g if isinstance(branch, Opaque) else None
    if source is None or not nodes[source.node].is_constant or node.proto is None:
        return None
    held = nodes[source.node].tensor.array().reshape(-1)
    branch = node.attrs.get("then_branch" if held.size == 1 and held[0] else "else_branch")
    return branch.proto.g if held.size == 1 and isinstance(branch, Opaque) else None


def _defined(body: onnx.GraphProto) -> Iterator[str]:
    """Names that `body`, or a body inside it, gives to values."""
    for part in (body.input, body.initializer):
        for item in part:
            yield item.name
    for sparse in body.sparse_initializer:
        yield sparse.values.name
    for node in body.node:
        yield from (n for n in node.output if n)
        for inner in bodies(node):
            yield from _defined(inner)
