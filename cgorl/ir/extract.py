"""A part of a graph as a model of its own: to fold constants, to prove rewrites, to time kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx

from cgorl.ir.graph import Graph, topological
from cgorl.ir.infer import to_proto
from cgorl.ir.node import TensorType, Value
from cgorl.ir.ops import bodies, make_node, rename_values
from cgorl.ir.to_proto import read_in, sparse_proto


@dataclass(frozen=True, slots=True)
class Part:
    """A model that computes some values of a graph; `inputs` and `outputs` are those values, named by `name`."""

    model: onnx.ModelProto
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]


def name(value: Value) -> str:
    """The name that `value` has in every Part."""
    return f"v{value.node}_{value.port}"


def cone(graph: Graph, outputs: Iterable[Value], inside: frozenset[int] | None = None) -> list[int]:
    """Ids, producers first, of the nodes that `outputs` need: all constants they rest on and, of the others, those `inside`."""
    found: dict[int, list[int]] = {}
    stack = [v.node for v in outputs]
    while stack:
        i = stack.pop()
        node = graph.nodes[i]
        if i in found or not (node.constant or inside is None or i in inside) or node.is_input:
            continue
        found[i] = [v.node for v in node.reads()]
        stack.extend(found[i])
    return list(topological({i: [j for j in reads if j in found] for i, reads in found.items()}))


def part(graph: Graph, outputs: Sequence[Value], inside: Iterable[int] | None = None, types: dict[Value, TensorType] | None = None) -> Part:
    """The model that computes `outputs` from the values at the border of the nodes `inside` (None: from the graph inputs).

    Constants come along with their contents. `types` overrides the types of border values (to bind dynamic dims).
    """
    ids = cone(graph, outputs, None if inside is None else frozenset(inside))
    inner = set(ids)
    model = onnx.ModelProto(ir_version=max(graph.frame.model.ir_version, 8), functions=graph.frame.model.functions)
    for domain, version in graph.opsets.items():
        model.opset_import.add(domain=domain, version=version)
    g = model.graph
    g.name = "part"
    border: dict[Value, None] = {}
    for i in ids:
        node = graph.nodes[i]
        if node.holds_tensor:
            node.tensor.to_proto(name(Value(i)), g.initializer.add())
            continue
        if node.op == "SparseConstant":
            g.sparse_initializer.append(sparse_proto(node, name(Value(i))))
            continue
        border.update(dict.fromkeys(v for v in node.reads() if v.node not in inner))
        inputs = ["" if v is None else name(v) for v in node.inputs]
        if node.proto is None:
            made = make_node(
                node.op,
                node.domain,
                graph.opsets.get(node.domain, 1),
                inputs,
                [name(Value(i, p)) for p in range(len(node.types))],
                node.attrs,
            )
        else:
            made = onnx.NodeProto()
            made.CopyFrom(node.proto)
            made.input[:] = inputs
            made.output[:] = [name(Value(i, p)) if node.gives(p) else "" for p in range(len(node.types))]
            swap = {n: name(v) for n, v in node.captures}
            for body in bodies(made):
                rename_values(body, _Inner(swap, i))
        g.node.append(made)
    border.update(dict.fromkeys(v for v in outputs if v.node not in inner))
    for v in border:
        kind = (types or {}).get(v) or graph.type(v)
        g.input.add(name=name(v), type=to_proto(kind) if kind is not None else None)
    for v in outputs:
        kind = (types or {}).get(v) or graph.type(v)
        g.output.add(name=name(v), type=to_proto(kind) if kind is not None else None)
    read_in(model, graph.frame.base)
    return Part(model, tuple(border), tuple(outputs))


class _Inner(dict[str, str]):
    """Captured names as the part calls them; names of the body's own under a prefix, so that none clashes."""

    def __init__(self, swap: dict[str, str], node: int) -> None:
        super().__init__(swap)
        self._prefix = f"b{node}_"

    def __missing__(self, key: str) -> str:
        return self._prefix + key
