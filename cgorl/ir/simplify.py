"""The deterministic clean-up before search: only what is always right and never slower.

Constants are computed, shapes that are known become constants, nodes that do nothing go, equal nodes become one, an If
with a constant condition becomes its branch, and what nobody reads is dropped. Time grows linearly with the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from cgorl.ir.fold import fold_native
from cgorl.ir.forms import form
from cgorl.ir.from_proto import add_nodes
from cgorl.ir.graph import Graph, link
from cgorl.ir.infer import InferError, infer
from cgorl.ir.known import Known
from cgorl.ir.node import Node, Opaque, TensorType, Value, constant
from cgorl.ir.noop import same_as
from cgorl.ir.ops import COMMUTATIVE, foldable, pure, schema
from cgorl.ir.tensor import Tensor

_ROUNDS = 20
_SHARED_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Simplified:
    """The clean graph and how many nodes each kind of step took away."""

    graph: Graph
    steps: Mapping[str, int] = field(default_factory=dict)


def simplify(graph: Graph) -> Simplified:
    """The graph without what is superfluous; the same results, bit for bit where the runtime's own arithmetic decides."""
    steps: Counter[str] = Counter()
    if graph.frame.model.training_info:
        return Simplified(graph, {})  # its bindings speak of values by name
    for _ in range(_ROUNDS):
        graph, changed = _Round(graph, steps).run()
        if not changed:
            break
    return Simplified(graph, dict(sorted(steps.items())))


class _Round:
    """One pass over the nodes in topological order, building the next graph."""

    def __init__(self, graph: Graph, steps: Counter[str]) -> None:
        self.old, self.steps = graph, steps
        self.nodes: dict[int, Node] = {}
        self.swap: dict[Value, Value] = {}
        self.seen: dict[object, int] = {}
        self.known = Known()
        self.next_id = graph.next_id
        self.changed = False
        self.refined = False
        # while the pass runs, the new nodes are looked at through a graph that shares their dict
        self.now = Graph(self.nodes, {}, graph.inputs, graph.outputs, graph.opsets, graph.frame, graph.next_id)

    def run(self) -> tuple[Graph, bool]:
        folded = fold_native(self.old)
        for i in self.old.order():
            node = self.old.nodes[i]
            if node.is_source or node.op == "SparseConstant":
                self._source(i, node)
                continue
            ready = [Value(i, p) in folded for p in range(len(node.types))]
            for p, is_ready in enumerate(ready):
                if is_ready:
                    self._replace(Value(i, p), self._constant(folded[Value(i, p)], node.names[p] if p < len(node.names) else ""), "folded")
            if not (any(ready) and all(r or not self.old.uses(Value(i, p)) for p, r in enumerate(ready))):
                self._visit(i, node)
        outputs = tuple(self.swap.get(v, v) for v in self.old.outputs)
        live = self._live(outputs)
        gone = len(self.nodes) - len(live)
        if gone:
            self.steps["dead"] += sum(1 for i, n in self.nodes.items() if i not in live and not n.is_source)
        nodes = {i: n for i, n in self.nodes.items() if i in live}
        made = Graph(nodes, link(nodes, outputs), self.old.inputs, outputs, self.old.opsets, self.old.frame, self.next_id)
        return made, self.changed or self.refined

    def _source(self, i: int, node: Node) -> None:
        if node.is_constant and node.tensor.nbytes <= _SHARED_BYTES:
            first = self.seen.setdefault(("constant", node.tensor.digest), i)
            if first != i:
                self.swap[Value(i)] = Value(first)
                return
        self.nodes[i] = node

    def _visit(self, i: int, node: Node) -> None:
        node = self.nodes[i] = self._settled(node)
        known = schema(node.op, node.domain, self.old.opset) is not None and node.domain == ""
        if not known:
            return
        shape = form(self.now, i)
        source = same_as(self.now, node, shape)
        if source is not None and self._fits(source, node.types[0]):
            del self.nodes[i]
            self._replace(Value(i), source, node.op.lower())
            return
        numbers = self.known.learn(self.now, i, node, shape)
        if numbers is not None:
            kind = node.types[0]
            dtype = kind.dtype if kind is not None else onnx.TensorProto.INT64
            array = np.array(numbers, onnx.helper.tensor_dtype_to_np_dtype(dtype))
            del self.nodes[i]
            self._replace(Value(i), self._constant(Tensor.of(array, dtype), node.names[0]), "shapes")
            return
        if node.op == "If" and self._inline(i, node):
            return
        if pure(node.op, node.domain) and not node.captures:
            operands: tuple[Value | None, ...] = node.inputs
            if node.op in COMMUTATIVE and len(operands) == 2:
                operands = tuple(sorted(operands, key=lambda v: v or (-1, 0)))
            first = self.seen.setdefault((node.signature, operands, tuple(map(bool, node.names))), i)
            if first != i:
                del self.nodes[i]
                for p in range(len(node.types)):
                    self._replace(Value(i, p), Value(first, p), "")
                self.steps["shared"] += 1

    def _settled(self, node: Node) -> Node:
        """The node with operands as they are now, and types as they follow from them where that says more."""
        swap = {v: self.swap[v] for v in node.reads() if v in self.swap}
        fixed = node.constant
        if not fixed and foldable(node.op, node.domain) and node.inputs and (node.proto is None or node.domain == ""):
            fixed = all(self.nodes[self.swap.get(v, v).node].constant for v in node.reads())
        if swap:
            node = node.with_inputs(swap, fixed)
        if any(t is None or not t.static for t in node.types) and not node.captures:
            node = self._typed(node, fixed)
        return node

    def _typed(self, node: Node, fixed: bool) -> Node:
        version = self.old.opsets.get(node.domain, 1)
        if schema(node.op, node.domain, version) is None:
            return node
        kinds = [None if v is None else self.nodes[v.node].types[v.port] for v in node.inputs]
        contents = [self._contents(v) for v in node.inputs]
        try:
            found = infer(node.op, node.domain, version, node.attrs, kinds, contents, len(node.types))
        except InferError:
            return node
        types: list[TensorType | None] = []
        for was, now in zip(node.types, found, strict=True):
            met = now if was is None else was if now is None or not was.agrees(now) else was.meet(now)
            types.append(met)
        if tuple(types) == node.types:
            return node
        self.refined = True
        return Node(node.op, node.domain, node.inputs, node.attrs, tuple(types), fixed, node.name, node.names, node.captures, node.proto)

    def _contents(self, v: Value | None) -> Tensor | None:
        return self.nodes[v.node].tensor if v is not None and self.nodes[v.node].is_constant else None

    def _fits(self, source: Value, kind: TensorType | None) -> bool:
        held = self.nodes[source.node].types[source.port]
        return kind is None or held is None or held.agrees(kind)

    def _replace(self, old: Value, new: Value, step: str) -> None:
        self.swap[old] = new
        self.changed = True
        if step:
            self.steps[step] += 1

    def _constant(self, tensor: Tensor, name: str) -> Value:
        if tensor.nbytes <= _SHARED_BYTES:
            first = self.seen.get(("constant", tensor.digest))
            if first is not None:
                return Value(first)
            self.seen["constant", tensor.digest] = self.next_id
        self.nodes[self.next_id] = constant(tensor, name)
        self.next_id += 1
        return Value(self.next_id - 1)

    def _inline(self, i: int, node: Node) -> bool:
        """Puts the branch that a constant condition chooses in the place of an If."""
        held = self._contents(node.inputs[0])
        if held is None or node.proto is None:
            return False
        chosen = node.attrs["then_branch" if held.array().reshape(-1)[0] else "else_branch"]
        assert isinstance(chosen, Opaque)
        body = chosen.proto.g
        if body.sparse_initializer:
            return False
        scope = dict(node.captures)
        del self.nodes[i]
        for t in body.initializer:
            scope[t.name] = self._constant(Tensor(t), t.name)
        start = self.next_id
        model = self.old.frame.model
        add_nodes(self.nodes, scope, list(body.node), {}, model, self.old.opsets, None, start)
        self.next_id = max(start - 1, *self.nodes) + 1
        for p, out in enumerate(body.output):
            self._replace(Value(i, p), scope[out.name], "")
        self.steps["branches"] += 1
        return True

    def _live(self, outputs: tuple[Value, ...]) -> set[int]:
        live = set(self.old.inputs)
        stack = [v.node for v in outputs]
        while stack:
            i = stack.pop()
            if i not in live:
                live.add(i)
                stack.extend(v.node for v in self.nodes[i].reads())
        return live
