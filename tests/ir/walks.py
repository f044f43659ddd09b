"""Graphs for tests: loaded from a model or a text, and changed at random by edits that keep what is computed."""

import dataclasses

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import parser

from cgorl.ir.build import Builder
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Edit, Graph, fresh
from cgorl.ir.node import Node, Value
from cgorl.ir.ops import COMMUTATIVE

SEEDS = st.integers(0, 2**32 - 1)


def load(model: onnx.ModelProto) -> Graph:
    """The graph of a copy of `model`."""
    return from_proto(onnx.ModelProto.FromString(model.SerializeToString()))


def text(body: str, opset: int = 17, head: str = "float[2] x") -> onnx.ModelProto:
    """A model from onnx's text form: `body` is what follows the inputs, Y at its start the usual output."""
    body = "(float[2] y) " + body[1:] if body.startswith("Y") else body
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "t" : 1]> g ({head}) => {body}')


def scratch(graph: Graph) -> Graph:
    """The same graph with nothing remembered."""
    nodes = {
        i: Node(n.op, n.domain, n.inputs, n.attrs, n.types, n.constant, n.name, n.names, n.captures, n.proto)
        for i, n in graph.nodes.items()
    }
    return dataclasses.replace(graph, nodes=nodes, memo={})


def identity_before_users(graph: Graph, v: Value) -> Edit | None:
    b = Builder(graph)
    return b.edit({v: b.node("Identity", [v])})


def two_identities(graph: Graph, v: Value) -> Edit | None:
    b = Builder(graph)
    b.node("Identity", [b.node("Identity", [v])])
    return b.edit({v: Value(fresh(1))})


def equal_node(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    if node.is_source or node.captures:
        return None
    twin = Node(node.op, node.domain, node.inputs, node.attrs, node.types, node.constant, node.name, (), (), node.proto)
    return graph.edit([twin], {v: Value(fresh(0), v.port)})


def copied_operand(graph: Graph, v: Value) -> Edit | None:
    """A copy of the first operand's node for this reader alone."""
    node = graph.node(v)
    if node.captures or not node.inputs or node.inputs[0] is None or graph.node(node.inputs[0]).is_input:
        return None
    first = graph.node(node.inputs[0])
    twin = dataclasses.replace(first, memo={})
    mine = dataclasses.replace(node, inputs=(Value(fresh(0), node.inputs[0].port), *node.inputs[1:]), memo={})
    return graph.edit([twin, mine], {Value(v.node, p): Value(fresh(1), p) for p in range(len(node.types))})


def swapped(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    if node.op not in COMMUTATIVE or len(node.inputs) != 2:
        return None
    b = Builder(graph)
    return b.edit({v: b.node(node.op, [node.inputs[1], node.inputs[0]])})


def past_identity(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    return graph.edit([], {v: node.inputs[0]}) if node.op == "Identity" and node.inputs[0] is not None else None


def merged(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    same = [
        i
        for i, n in graph.nodes.items()
        if i < v.node and n.signature == node.signature and n.inputs == node.inputs and n.types == node.types
    ]
    return graph.edit([], {v: Value(same[0], v.port)}) if same and not node.is_source and not node.captures else None


KINDS = (identity_before_users, two_identities, equal_node, copied_operand, swapped, past_identity, merged)


def walk(graph: Graph, rng: np.random.Generator, steps: int) -> list[tuple[Graph, Edit]]:
    """Random edits that keep what is computed: each with the graph after it."""
    done = []
    while len(done) < steps:
        values = [Value(i, u.port) for i, us in graph.users.items() for u in us]
        v = values[rng.integers(len(values))]
        kinds = [KINDS[k] for k in rng.permutation(len(KINDS))]
        edit = next(e for e in (k(graph, v) for k in kinds) if e is not None)
        graph = graph.replace(edit)
        done.append((graph, edit))
    return done
