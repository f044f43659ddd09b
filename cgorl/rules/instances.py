"""Instance: a random concrete graph in which the source of a rule occurs, with what to feed it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import onnx
from immutables import Map

from cgorl.ir.graph import Frame, Graph, link
from cgorl.ir.infer import InferError, infer
from cgorl.ir.node import Dim, Node, TensorType, Value, graph_input
from cgorl.ir.ops import schema
from cgorl.ir.tensor import Array
from cgorl.rules.exact import EXACT
from cgorl.rules.pattern import Apply, Each, operator, walk
from cgorl.rules.rule import Rule
from cgorl.rules.sampling.attributes import Unfit
from cgorl.rules.sampling.contents import Contents, fill
from cgorl.rules.sampling.operators import SAMPLERS
from cgorl.rules.sampling.sketch import MARKS, Sketch

_T = onnx.TensorProto
_OPSETS = (7, 9, 11, 13, 17, 18, 20, onnx.defs.onnx_opset_version())
_CRAMPED = 0.12


@dataclass(frozen=True, slots=True)
class Instance:
    """A graph, the node drawn for the rule's first root, and what its inputs may hold.

    `shapes[i]` is the shape of input node `i`, symbols included, and `drawn` the sizes that those had when it was drawn;
    `busy` are interior nodes that were given a second user.
    """

    graph: Graph
    root: int
    shapes: Mapping[int, tuple[int | str, ...]]
    drawn: Mapping[str, int]
    contents: Mapping[int, Contents]
    span: int
    busy: frozenset[int]

    def sizes(self, rng: random.Random) -> list[dict[str, int]]:
        """Ways to bind the symbols: as drawn, all 1, each alone 1, others, sometimes 0."""
        names = list(self.drawn)
        if not names:
            return [{}]
        ways = [dict(self.drawn), dict.fromkeys(names, 1), {k: rng.choice((2, 3, 4)) for k in names}]
        ways += [{**self.drawn, k: 1} for k in names[:2] if len(names) > 1]
        return [*ways, dict.fromkeys(names, 0)] if rng.random() < 0.3 else ways

    def feeds(self, sizes: Mapping[str, int], rng: random.Random) -> dict[int, Array]:
        """An array for each input node, floating-point ones in float64."""
        found = {}
        for i, shape in self.shapes.items():
            kind = self.graph.nodes[i].types[0]
            assert kind is not None
            bound = tuple(d if isinstance(d, int) else sizes[d] for d in shape)
            array = fill(rng, kind.dtype, bound, self.contents[i], self.span)
            found[i] = array.astype(np.float64) if array.dtype.kind == "f" else array
        return found


def draw(rule: Rule, rng: random.Random) -> Instance:
    """A random instance; its graph need not match, but mostly does. Raises Unfit."""
    ops = _operators(rule)
    opsets = _opsets(ops)
    if not opsets:
        raise Unfit("no opset has all operators of the source")
    opset = rng.choice(opsets[-3:] if rng.random() < 0.5 else opsets)
    exact = all(op in EXACT for op in ops)
    sketch = Sketch(rule, rng, SAMPLERS, opset, _element(ops, opset, rng), rng.choice((2, 5, 100, 1000)) if exact else 0)
    roots: list[Value] = []
    for term in rule.source:
        roots += sketch.several(term, lambda _: None) if isinstance(term, Each) else sketch.node(operator(term))[:1]
    return _finished(sketch, [v.node for v in roots])


def _operators(rule: Rule) -> tuple[str, ...]:
    found = (t.op for root in rule.source for t in walk(root) if isinstance(t, Apply) and t.is_operator)
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def _opsets(ops: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(v for v in _OPSETS if all(schema(op, "", v) is not None for op in ops))


def _element(ops: tuple[str, ...], opset: int, rng: random.Random) -> int:
    """The element type of the data: float32 mostly; also other floats, and integers where every operator takes them."""
    if rng.random() < 0.15:
        found = rng.choice((_T.INT64, _T.INT32, _T.UINT8, _T.BOOL))
        if all(_takes(op, opset, found) for op in ops):
            return int(found)
    return int(rng.choice((_T.FLOAT, _T.FLOAT, _T.DOUBLE, _T.FLOAT16)))


@lru_cache(maxsize=4096)
def _takes(op: str, opset: int, dtype: int) -> bool:
    spec = schema(op, "", opset)
    name = str(onnx.TensorProto.DataType.Name(dtype)).lower()
    first = spec.inputs[0].type_str if spec is not None and spec.inputs else ""
    return spec is not None and any(c.type_param_str == first and f"tensor({name})" in c.allowed_type_strs for c in spec.type_constraints)


def _finished(sketch: Sketch, roots: list[int]) -> Instance:
    """The graph of a sketch: roots used or outputs, some interior nodes with a second user, some dims symbols."""
    rng, builder = sketch.rng, sketch.builder
    free = {sketch.env[label] for label in sketch.rule.shared if label in sketch.env}
    busy: set[int] = set()
    outputs: list[Value] = []
    for i, _ in sketch.inner:
        if i not in roots and rng.random() < (0.3 if i in free else _CRAMPED / max(1, len(sketch.inner) - len(roots))):
            outputs.append(Value(i))
            busy |= set() if i in free else {i}
    for i in roots:
        for port in range(builder.results(Value(i))):
            v = Value(i, port)
            kind = builder.type(v)
            if kind is not None and kind.dtype in (_T.FLOAT, _T.DOUBLE) and rng.random() < 0.3:
                v = builder.node("Abs", [v])
            outputs.append(v)
    nodes, shapes, drawn = _named(sketch)

    def real(v: Value) -> Value:
        return Value(-2 - v.node, v.port)

    table = {k: n.with_inputs({v: real(v) for v in n.reads()}, n.constant) for k, n in enumerate(nodes)}
    for k, n in table.items():
        if not n.names:
            table[k] = Node(n.op, n.domain, n.inputs, n.attrs, n.types, n.constant, n.name, tuple(f"t{k}_{p}" for p in range(len(n.types))))
    outs = tuple(real(v) for v in outputs)
    model = onnx.ModelProto(ir_version=10)
    model.graph.name = sketch.rule.name
    inputs = tuple(k for k, n in table.items() if n.is_input)
    graph = Graph(Map(table), link(table, outs), inputs, outs, {"": sketch.opset}, Frame(model, {}), len(table))
    contents = {-2 - i: c for i, c in sketch.contents.items()}
    return Instance(graph, -2 - roots[0], shapes, drawn, contents, sketch.span, frozenset(-2 - i for i in busy))


def _named(sketch: Sketch) -> tuple[list[Node], dict[int, tuple[int | str, ...]], dict[str, int]]:
    """The nodes with some dims of inputs declared as symbols, or not at all; types inferred anew from that."""
    rng, added = sketch.rng, list(sketch.builder.added)
    shapes: dict[int, tuple[int | str, ...]] = {}
    drawn: dict[str, int] = {}
    for k, node in enumerate(added):
        kind = node.types[0]
        if not node.is_input or kind is None or kind.shape is None:
            continue
        own, told = rng.random() < 0.15, rng.random() < 0.9
        dims: list[int | str] = []
        for d in kind.shape:
            assert isinstance(d, int)
            symbol = MARKS.get(d) if sketch.symbolic else None
            dims.append(d if symbol is None else f"{symbol}{k}" if own else symbol)
            if symbol is not None:
                drawn[str(dims[-1])] = d
        shapes[k] = tuple(dims)
        declared: tuple[Dim, ...] = tuple(d if isinstance(d, int) or told else None for d in dims)
        added[k] = graph_input(int(str(node.attrs["position"])), TensorType(kind.dtype, declared), node.names[0])
    if drawn:
        for k, node in enumerate(added):
            if not node.is_source:
                added[k] = _retyped(node, added, sketch.opset)
    return added, shapes, drawn


def _retyped(node: Node, added: list[Node], opset: int) -> Node:
    kinds = [None if v is None else added[-2 - v.node].types[v.port] for v in node.inputs]
    tensors = [added[-2 - v.node].tensor if v is not None and added[-2 - v.node].is_constant else None for v in node.inputs]
    try:
        types = infer(node.op, node.domain, opset, node.attrs, kinds, tensors, len(node.types))
    except InferError as e:
        raise Unfit(str(e)) from None
    return Node(node.op, node.domain, node.inputs, node.attrs, types, node.constant, node.name, node.names)
