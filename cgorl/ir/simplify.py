"""The deterministic clean-up before search: only what is always right and never slower.

Constants are computed, shapes that are known become constants, nodes that do nothing go, equal nodes become one, an If
with a constant condition becomes its branch, and what nobody reads is dropped. Time grows linearly with the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from immutables import Map

from cgorl.ir.fold import fold_native
from cgorl.ir.forms import Form, form
from cgorl.ir.graph import Graph, link
from cgorl.ir.infer import UNKNOWN, InferError, infer
from cgorl.ir.inline import Inliner
from cgorl.ir.known import Known
from cgorl.ir.node import Dim, Node, TensorType, Value, constant
from cgorl.ir.noop import same_as
from cgorl.ir.ops import COMMUTATIVE, foldable, pure, schema
from cgorl.ir.ranks import needed_ranks, only_branch
from cgorl.ir.targets import Target, expanded, reshaped, spelled, widens_nothing
from cgorl.ir.tensor import Tensor

_SHARED_BYTES = 1 << 16
_SWAPPABLE = COMMUTATIVE - {"Max", "Min"}
"""Operators that give the same bits in either order (a runtime's Max of 0 and -0 is the first or the second)."""


@dataclass(frozen=True, slots=True)
class Simplified:
    """The clean graph and how many nodes each kind of step took away."""

    graph: Graph
    steps: Mapping[str, int] = field(default_factory=dict)


def simplify(graph: Graph) -> Simplified:
    """The graph without what is superfluous; the same results, bit for bit where the runtime's own arithmetic decides.

    Once more changes nothing: rounds go on until one finds nothing to do, and each that does leaves fewer nodes or unknown dims.
    """
    steps: Counter[str] = Counter()
    if graph.frame.model.training_info:
        return Simplified(graph, {})  # its bindings speak of values by name
    changed = True
    while changed:
        graph, changed = _Round(graph, steps).run()
    return Simplified(graph, dict(sorted(steps.items())))


class _Round:
    """One pass over the nodes in topological order, building the next graph."""

    def __init__(self, graph: Graph, steps: Counter[str]) -> None:
        self.old, self.steps = graph, steps
        self.nodes: dict[int, Node] = {}
        self.swap: dict[Value, Value] = {}
        self.seen: dict[object, int] = {}
        self.known = Known()
        self.inliner = Inliner(graph)
        self.next_id = graph.next_id
        self.refined = False
        self.shown = set(graph.outputs)
        self.symbols = {d for i in graph.inputs if (t := graph.nodes[i].types[0]) and t.shape for d in t.shape if isinstance(d, str)}
        self.ranks = needed_ranks(graph) if any(n.op == "If" and n.domain == "" for n in graph.nodes.values()) else {}
        # while the pass runs, the new nodes are looked at through a graph that shares their dict; who uses them is as before
        self.now = Graph(self.nodes, graph.users, graph.inputs, graph.outputs, graph.opsets, graph.frame, graph.next_id)

    def run(self) -> tuple[Graph, bool]:
        """The next graph and whether it differs."""
        folded = fold_native(self.old)
        for i in self.old.order():
            node = self.old.nodes[i]
            if node.is_source:
                self._source(i, node)
            elif not self._folded(i, node, folded):
                self._visit(i, node)
        outputs = tuple(self.swap.get(v, v) for v in self.old.outputs)
        live = self._live(outputs)
        dead = [i for i in self.nodes if i not in live]
        if lost := sum(1 for i in dead if not self.nodes[i].is_source):
            self.steps["dead"] += lost
        nodes = {i: n for i, n in self.nodes.items() if i in live}
        made = Graph(Map(nodes), Map(link(nodes, outputs)), self.old.inputs, outputs, self.old.opsets, self.old.frame, self.next_id)
        return made, bool(self.swap or dead or self.refined)

    def _source(self, i: int, node: Node) -> None:
        if node.is_constant and node.tensor.nbytes <= _SHARED_BYTES:
            first = self.seen.setdefault(("constant", node.tensor.digest), i)
            if first != i and Value(i) not in self.shown:
                self.swap[Value(i)] = Value(first)
                return
        self.nodes[i] = node

    def _folded(self, i: int, node: Node, folded: Mapping[Value, Tensor]) -> bool:
        """Whether nothing of node `i` is left to do once its folded results stand as constants."""
        ready = [v for p in range(len(node.types)) if (v := Value(i, p)) in folded]
        for v in ready:
            self._replace(v, self._constant(folded[v], node.names[v.port] if node.names else ""), "folded")
        return bool(ready) and all(v in folded or not self.old.uses(v) for v in (Value(i, p) for p in range(len(node.types))))

    def _visit(self, i: int, node: Node) -> None:
        node = self.nodes[i] = self._settled(node)
        if node.op == "Range" and node.domain == "":
            node = self.nodes[i] = self._scalars(node)
        if node.domain != "" or schema(node.op, "", self.old.opset) is None:
            return
        node.memo.pop("form", None)  # what is known of the operands may have grown
        shape = form(self.now, i)
        if node.op in ("Reshape", "Expand"):
            node, shape = self._aimed(i, node, shape)
            if node.op == "Expand" and self._widens_nothing(node, shape):
                self._drop(i, {0: node.inputs[0]}, "expand")  # type: ignore[dict-item]
                return
        source = same_as(self.now, i, shape)
        if source is not None and self._agree(source, Value(i)):
            self._drop(i, {0: source}, node.op.lower())
            return
        numbers, kind = self.known.learn(self.now, i, node, shape), node.types[0]
        if numbers is not None and kind is not None:
            array = np.array(numbers, onnx.helper.tensor_dtype_to_np_dtype(kind.dtype))
            self._drop(i, {0: self._constant(Tensor.of(array, kind.dtype), node.names[0] if node.names else "")}, "shapes")
            return
        if node.op == "If":
            before = len(self.nodes)
            branch = self.inliner.inline(node, self.nodes, self.next_id, only_branch(self.now, i, self.ranks))
            if branch is not None:
                self.next_id += len(self.nodes) - before
                self._drop(i, branch, "branches")
        elif pure(node.op, node.domain):
            self._share(i, node)

    def _target(self, node: Node, shape: Form) -> Target | None:
        """What is known of the shape that a Reshape or Expand is given."""
        said = shape.attrs.get("shape")
        if isinstance(said, tuple):
            return [int(n) for n in said]
        given = node.inputs[1] if shape.missing == "shape" and len(node.inputs) > 1 else None
        return self.known.numbers.get(given) if given is not None and given not in self.known.scalar else None

    def _dims(self, node: Node) -> tuple[Dim, ...] | None:
        kind = self.now.type(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
        return None if kind is None else kind.shape

    def _widens_nothing(self, node: Node, shape: Form) -> bool:
        target, dims = self._target(node, shape), self._dims(node)
        return target is not None and dims is not None and widens_nothing(target, dims)

    def _aimed(self, i: int, node: Node, shape: Form) -> tuple[Node, Form]:
        """A Reshape or Expand with the dims that follow from a target known in part, which is a constant if it can be."""
        target, dims, was = self._target(node, shape), self._dims(node), node.types[0]
        if target is None or dims is None or was is None:
            return node, shape
        zero = bool(shape.attrs.get("allowzero"))
        kind = TensorType(was.dtype, reshaped(target, dims, zero) if node.op == "Reshape" else expanded(target, dims))
        met = self._met(was, kind) if was.agrees(kind) else was
        if met != was:
            node = self.nodes[i] = replace(node, types=(met,), memo={})
            self.refined = True
        if node.op == "Reshape" and shape.missing == "shape" and (fixed := spelled(target, dims, zero)) is not None:
            given = self._constant(Tensor.of(np.array(fixed, np.int64)), "")
            node = self.nodes[i] = replace(node, inputs=(node.inputs[0], given), memo={})
            self.steps["shapes"] += 1
            self.refined = True
        return node, form(self.now, i)

    def _share(self, i: int, node: Node) -> None:
        operands: tuple[Value | None, ...] = node.inputs
        if node.op in _SWAPPABLE and len(operands) == 2:
            operands = tuple(sorted(operands, key=lambda v: v or (-1, 0)))
        ports = range(len(node.types))
        first = self.seen.setdefault((node.signature, operands, tuple(node.gives(p) for p in ports)), i)
        if first != i and all(self._agree(Value(first, p), Value(i, p)) for p in ports):
            self._drop(i, {p: Value(first, p) for p in ports}, "shared")

    def _settled(self, node: Node) -> Node:
        """The node with operands as they are now, and types as they follow from them where that says more."""
        swap = {v: self.swap[v] for v in node.reads() if v in self.swap}
        fixed = node.constant
        if not fixed and node.inputs and foldable(node.op, node.domain):
            fixed = all(self.nodes[self.swap.get(v, v).node].constant for v in node.reads())
        if swap or fixed != node.constant:
            node = node.with_inputs(swap, fixed)
        if node.domain == "" and not node.captures and any(t is None or not t.static for t in node.types):
            node = self._typed(node)
        return node

    def _scalars(self, node: Node) -> Node:
        """A Range reading scalars for constants with a dim of one, which onnxruntime takes at run time but does not load."""
        swap = {}
        for v in node.reads():
            held = self.nodes[v.node]
            if held.is_constant and held.tensor.shape == (1,):
                swap[v] = self._constant(Tensor.of(held.tensor.array().reshape(()), held.tensor.dtype), "")
                self.refined = True
        return node.with_inputs(swap, node.constant) if swap else node

    def _met(self, was: TensorType | None, now: TensorType | None) -> TensorType | None:
        """What is known by either, a symbol of the inputs before another; `was` where they contradict each other."""
        if was is None or now is None or not was.agrees(now):
            return was or now
        met = was.meet(now)
        if met.shape is None or now.shape is None:
            return met
        return TensorType(
            met.dtype,
            tuple(
                b if isinstance(a, str) and b in self.symbols and a not in self.symbols else a
                for a, b in zip(met.shape, now.shape, strict=True)
            ),
        )

    def _typed(self, node: Node) -> Node:
        kinds = [None if v is None else self.nodes[v.node].types[v.port] or UNKNOWN for v in node.inputs]
        contents = [None if v is None or not (n := self.nodes[v.node]).is_constant else n.tensor for v in node.inputs]
        try:
            found = infer(node.op, "", self.old.opset, node.attrs, kinds, contents, len(node.types))
        except InferError:
            return node
        types = tuple(self._met(was, now) for was, now in zip(node.types, found, strict=True))
        if types == node.types:
            return node
        self.refined = True
        return replace(node, types=types, memo={})

    def _agree(self, source: Value, old: Value) -> bool:
        a, b = self.now.type(source), self.now.type(old)
        return a is None or b is None or a.agrees(b)

    def _drop(self, i: int, instead: Mapping[int, Value], step: str) -> None:
        """Takes node `i` out; its uses move to `instead`, by port, which from now on is known to have its types too."""
        self.steps[step] += 1
        node = self.nodes.pop(i)
        for p, kind in enumerate(node.types):
            if p in instead:
                new = instead[p]
                self._replace(Value(i, p), new)
                held = self.nodes[new.node]
                if held.is_source or (met := self._met(held.types[new.port], kind)) == held.types[new.port]:
                    continue
                types = tuple(met if q == new.port else t for q, t in enumerate(held.types))
                self.nodes[new.node] = replace(held, types=types, memo={})
                self.refined = True

    def _replace(self, old: Value, new: Value, step: str = "") -> None:
        self.swap[old] = new
        if step:
            self.steps[step] += 1

    def _constant(self, tensor: Tensor, name: str) -> Value:
        if tensor.nbytes <= _SHARED_BYTES:
            first = self.seen.setdefault(("constant", tensor.digest), self.next_id)
            if first != self.next_id:
                return Value(first)
        self.nodes[self.next_id] = constant(tensor, name)
        self.next_id += 1
        return Value(self.next_id - 1)

    def _live(self, outputs: tuple[Value, ...]) -> set[int]:
        live = set(self.old.inputs)
        stack = [v.node for v in outputs]
        while stack:
            i = stack.pop()
            if i not in live:
                live.add(i)
                stack.extend(v.node for v in self.nodes[i].reads())
        return live
