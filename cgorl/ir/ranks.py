"""Ranks that values must have for a graph to run at all, asked backwards from operators that take one rank only.

An exporter that does not know a rank writes an If on it. Where what follows can take the result of one branch only, any run
that gets through took that branch; the others end in an error either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, Opaque, Value

Ranks = frozenset[int]

_FIXED: Mapping[str, Mapping[int, int]] = {
    "LSTM": {0: 3, 5: 3, 6: 3},
    "GRU": {0: 3, 5: 3},
    "RNN": {0: 3, 5: 3},
    "Gemm": {0: 2, 1: 2},
}
"""Operator -> operand -> the one rank that it may have."""

_ALIKE = frozenset({"Identity", "Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Log", "Sqrt", "Erf", "Cast", "LeakyRelu", "Softplus"})
"""Operators whose result has the rank of their first operand."""


def only_branch(graph: Graph, i: int, needed: Mapping[Value, Ranks]) -> bool | None:
    """The branch that If node `i` must take for its results to be of ranks that they can have; None if either may be."""
    found = [branch for branch in (True, False) if _possible(graph, graph.nodes[i], branch, needed, i)]
    return found[0] if len(found) == 1 else None


def needed_ranks(graph: Graph) -> dict[Value, Ranks]:
    """For values whose rank the nodes behind them fix: the ranks with which all those nodes can run."""
    found: dict[Value, Ranks] = {}
    for i in reversed(graph.order()):
        node = graph.nodes[i]
        for v, ranks in _asked(graph, i, node, found):
            found[v] = found[v] & ranks if v in found else ranks
    return found


def _asked(graph: Graph, i: int, node: Node, needed: Mapping[Value, Ranks]) -> Iterator[tuple[Value, Ranks]]:
    """What node `i` asks of the ranks of what it reads."""
    if node.domain != "" or node.is_source:
        return
    for k, rank in _FIXED.get(node.op, {}).items():
        if k < len(node.inputs) and (v := node.inputs[k]) is not None:
            yield v, frozenset({rank})
    first = node.inputs[0] if node.inputs else None
    if node.op == "If":
        yield from _captured(graph, i, node, needed)
    elif first is not None and node.op == "Conv" and (kind := graph.type(node.inputs[1])) is not None and kind.rank is not None:  # type: ignore[arg-type]
        yield first, frozenset({kind.rank})
    elif first is not None and Value(i) in needed and (step := _step(node.op, _axes(graph, node))) is not None:
        yield first, frozenset(r - step for r in needed[Value(i)])


def _captured(graph: Graph, i: int, node: Node, needed: Mapping[Value, Ranks]) -> Iterator[tuple[Value, Ranks]]:
    """What the branches of an If ask of the values that they read: what one of them or the other does."""
    asked: list[dict[str, Ranks]] = []
    for branch in (True, False):
        body = _body(node, branch)
        if body is None:
            return
        inner = {out.name: needed[Value(i, p)] for p, out in enumerate(body.output) if Value(i, p) in needed}
        for n in reversed(body.node):
            if n.output and n.input and n.output[0] in inner and (step := _step(n.op_type, _axes_within(graph, node, body, n))) is not None:
                ranks = frozenset(r - step for r in inner[n.output[0]])
                inner[n.input[0]] = inner.get(n.input[0], ranks) & ranks
        asked.append(inner)
    for name, v in node.captures:
        if all(name in inner for inner in asked):
            yield v, asked[0][name] | asked[1][name]


def _possible(graph: Graph, node: Node, branch: bool, needed: Mapping[Value, Ranks], i: int) -> bool:
    """Whether each result of a branch may have a rank that is needed of it."""
    body = _body(node, branch)
    if body is None:
        return True
    ranks = {name: kind.rank for name, v in node.captures if (kind := graph.type(v)) is not None and kind.rank is not None}
    for n in body.node:
        step = _step(n.op_type, _axes_within(graph, node, body, n))
        if step is not None and n.input[0] in ranks:
            ranks[n.output[0]] = ranks[n.input[0]] + step
    return all(
        out.name not in ranks or Value(i, p) not in needed or ranks[out.name] in needed[Value(i, p)] for p, out in enumerate(body.output)
    )


def _step(op: str, axes: int | None) -> int | None:
    """By how much the rank of the result differs from that of the first operand; None if that is not known."""
    if op in _ALIKE:
        return 0
    if op in ("Squeeze", "Unsqueeze") and axes is not None:
        return axes if op == "Unsqueeze" else -axes
    return None


def _axes(graph: Graph, node: Node) -> int | None:
    """How many axes a Squeeze or Unsqueeze names."""
    if isinstance(said := node.attrs.get("axes"), tuple):
        return len(said)
    held = graph.node(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    return held.tensor.shape[0] if held is not None and held.is_constant and len(held.tensor.shape) == 1 else None


def _axes_within(graph: Graph, node: Node, body: onnx.GraphProto, inner: onnx.NodeProto) -> int | None:
    """The same for a node of a body."""
    said = next((a for a in inner.attribute if a.name == "axes"), None)
    if said is not None:
        return len(said.ints)
    if len(inner.input) < 2:
        return None
    name = inner.input[1]
    for t in body.initializer:
        if t.name == name:
            return int(t.dims[0]) if len(t.dims) == 1 else None
    for n in body.node:
        if n.op_type == "Constant" and name in n.output:
            value = next((a.t for a in n.attribute if a.name == "value"), None)
            return int(value.dims[0]) if value is not None and len(value.dims) == 1 else None
    outer = dict(node.captures).get(name)
    held = graph.node(outer) if outer is not None else None
    return held.tensor.shape[0] if held is not None and held.is_constant and len(held.tensor.shape) == 1 else None


def _body(node: Node, branch: bool) -> onnx.GraphProto | None:
    held = node.attrs.get("then_branch" if branch else "else_branch")
    return held.proto.g if isinstance(held, Opaque) else None
