"""Builder: collects new nodes, their types inferred, into one Edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cgorl.ir.forms import emit
from cgorl.ir.graph import Edit, Graph, GraphError, fresh
from cgorl.ir.infer import UNKNOWN, InferError, decides, infer
from cgorl.ir.node import Attrs, Node, TensorType, Value, constant
from cgorl.ir.ops import foldable, schema
from cgorl.ir.stacked import STACKS, stacked
from cgorl.ir.tensor import Tensor


class Builder:
    """Adds nodes to an edit of `graph`; nothing is in the graph until `Graph.replace`.

    What comes of it rests on the types of the old values that are spoken of and on whether they are constant (see `face`),
    on the contents of those in `asked`, and, if it has looked `inside`, on what some constant was made of.
    """

    def __init__(self, graph: Graph) -> None:
        """Starts with nothing added."""
        self.graph = graph
        self.added: list[Node] = []
        self.asked: dict[Value, Tensor] = {}
        self.inside = False

    def type(self, value: Value) -> TensorType | None:
        """Type of an old or added value."""
        return self._made(value).types[value.port]

    def is_constant(self, value: Value) -> bool:
        """Whether an old or added value rests on initializers alone."""
        return self._made(value).constant

    def _made(self, value: Value) -> Node:
        return self.graph.nodes[value.node] if value.node >= 0 else self.added[-2 - value.node]

    def made(self, value: Value) -> Node:
        """The node that gives an old or added value, to be looked at only if it is one of `STACKS`."""
        node = self._made(value)
        if value.node >= 0 and node.op in STACKS:
            self.inside = True
        return node

    def tensor(self, value: Value) -> Tensor | None:
        """Contents of an old or added value if it is a Constant node."""
        node = self._made(value)
        if not node.is_constant:
            return None
        if value.node >= 0:
            self.asked[value] = node.tensor
        return node.tensor

    def results(self, value: Value) -> int:
        """How many results the node of an old or added value has."""
        return len(self._made(value).types)

    def constant(self, array: Any, dtype: int | None = None) -> Value:
        """A new constant."""
        return self.held(Tensor.of(array, dtype))

    def held(self, tensor: Tensor) -> Value:
        """A new constant with the contents of `tensor`."""
        self.added.append(constant(tensor))
        return Value(fresh(len(self.added) - 1))

    def node(self, op: str, inputs: Sequence[Value | None], attrs: Attrs | None = None, outputs: int = 1, name: str = "") -> Value:
        """First output of a new node in the default domain, or what `stacked` knows to be the same constant. `attrs` as in a Form.

        Raises GraphError if onnx finds no types.
        """
        if op in ("Concat", "Slice") and (known := stacked(self, op, inputs, attrs or {})) is not None:
            return known
        if schema(op, "", self.graph.opset) is None:
            raise GraphError(f"opset {self.graph.opset} has no operator {op}")
        first = self.type(inputs[0]) if inputs and inputs[0] is not None else None
        kept, places = emit(op, self.graph.opset, attrs or {}, first.dtype if first is not None else 1)
        operands = list(inputs)
        for place in sorted(places):
            operands += [None] * (place + 1 - len(operands))
            operands[place] = self.held(places[place])
        kinds = [None if v is None else self.type(v) or UNKNOWN for v in operands]
        contents = [
            None if v is None or kind is None or not decides(op, kind) else self.tensor(v) for v, kind in zip(operands, kinds, strict=True)
        ]
        try:
            types = infer(op, "", self.graph.opset, kept, kinds, contents, outputs)
        except InferError as e:
            raise GraphError(str(e)) from None
        fixed = foldable(op, "") and bool(operands) and all(v is None or self.is_constant(v) for v in operands)
        self.added.append(Node(op, "", tuple(operands), kept, types, fixed, name))
        return Value(fresh(len(self.added) - 1))

    def _needed(self, rewired: Mapping[Value, Value]) -> tuple[list[Node], Mapping[Value, Value]]:
        """The added nodes that the results rest on, numbered anew, and the results as they are then called."""
        needed: set[int] = set()
        stack = [v.node for v in rewired.values()]
        while stack:
            i = stack.pop()
            if i < 0 and i not in needed:
                needed.add(i)
                stack.extend(v.node for v in self.added[-2 - i].reads())
        if len(needed) == len(self.added):
            return self.added, rewired
        kept = [k for k in range(len(self.added)) if fresh(k) in needed]
        number = {fresh(k): fresh(n) for n, k in enumerate(kept)}

        def moved(v: Value) -> Value:
            return Value(number.get(v.node, v.node), v.port)

        nodes = [self.added[k] for k in kept]
        return (
            [n.with_inputs({v: moved(v) for v in n.reads()}, n.constant) for n in nodes],
            {old: moved(new) for old, new in rewired.items()},
        )

    def edit(self, rewired: Mapping[Value, Value]) -> Edit:
        """The edit; a new node that takes an old value's place takes its name and what was known of its type. Raises GraphError."""
        nodes, rewired = self._needed(rewired)
        done = self.graph.edit(nodes, rewired)
        added = list(done.added)
        for old, new in rewired.items():
            if new.node >= 0:
                continue
            node, was = added[-2 - new.node], self.graph.nodes[old.node]
            known, kind = node.types[new.port], was.types[old.port]
            met = kind if known is None or kind is None else kind.meet(known)
            types = tuple(met if p == new.port else t for p, t in enumerate(node.types))
            name, names = named(node.name, node.names or ("",) * len(node.types), new.port, was, old.port)
            added[-2 - new.node] = Node(node.op, node.domain, node.inputs, node.attrs, types, node.constant, name, names)
        return Edit(done.removed, tuple(added), done.rewired)


def named(name: str, names: tuple[str, ...], port: int, was: Node, old: int) -> tuple[str, tuple[str, ...]]:
    """The name of a node, and those of its results, where result `port` takes the place of result `old` of node `was`."""
    label = was.names[old] if old < len(was.names) else ""
    return name or was.name, tuple([label if p == port else n for p, n in enumerate(names)])


def face(node: Node) -> tuple[Any, ...]:
    """What a Builder sees of an old node without asking further."""
    return node.types, node.constant, node.is_constant, node.constant and node.op in STACKS
