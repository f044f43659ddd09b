"""Roofline: analytic prices from flops, bytes and launches on a device described by data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

from cgorl.cost.flops import FREE, PICKING, READS, elements, flops
from cgorl.cost.model import After, CostError, Now, Price, View, border
from cgorl.ir.graph import OUTPUT, Edit, Graph
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.sizes import Sizes, Types
from cgorl.ir.tensor import element_bits

ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", "Elu", "Gelu"})
_SERIAL = count()
_HEADS = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm"})


@dataclass(frozen=True, slots=True)
class Device:
    """What a price list is made of.

    `peak_flops` per second, `bandwidth` in bytes per second, `launch_ms` per kernel. `saturation` is the number of output
    elements that fill the device (0: always full). `additive`: flops and bytes add up (TASO's list) instead of the larger
    counting. `free` operators take no time at all.
    """

    name: str
    peak_flops: float
    bandwidth: float
    launch_ms: float
    saturation: float = 0.0
    additive: bool = False
    free: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        """Raises CostError where a number is none or has the wrong sign."""
        for key, least in (("peak_flops", 1e-300), ("bandwidth", 1e-300), ("launch_ms", 0.0), ("saturation", 0.0)):
            value = getattr(self, key)
            if not isinstance(value, int | float) or not least <= value < float("inf"):
                raise CostError(f"device '{self.name}': {key} must be a number {'above' if least else 'of at least'} 0, not {value!r}")


@dataclass(frozen=True, eq=False)
class Roofline:
    """The cost of a graph as the sum over its kernels.

    A kernel is a node, or a convolution or matrix product with the activation that is its only user. Expressions on
    weights are free: they are computed once, when the model is saved.
    """

    device: Device
    dims: Mapping[str, int] = field(default_factory=dict)
    unbound: int | None = None
    _memo: dict[Any, float] = field(default_factory=dict, repr=False)
    _names: tuple[str, str] = field(default_factory=lambda: _fresh_names(), repr=False)

    @cached_property
    def _sizes(self) -> Sizes:
        return Sizes(self.dims, self.unbound)

    @property
    def digest(self) -> str:
        """16 hex digits that stand for device and sizes."""
        about = repr((self.device, sorted(self.dims.items()), self.unbound))
        return hashlib.blake2b(about.encode(), digest_size=8).hexdigest()

    def cost_ms(self, graph: Graph) -> float:
        """The estimate for the whole graph. Raises DimsError naming a symbol without a size."""
        self._sizes.check(graph)
        view = Now(graph)
        return sum(self.node_ms(view, i) for i in graph.order())

    def gain(self, graph: Graph, edit: Edit) -> float:
        """What the edit saves, in ms: the difference of totals, from the prices of the nodes around it."""
        return self.price(graph, edit).gain

    def price(self, graph: Graph, edit: Edit) -> Price:
        """The gain and what it rests on: of the nodes round the edit only convs, products and activations look at others."""
        now, then = Now(graph), After(graph, edit)
        nodes, users = graph.nodes, graph.users
        givers, readers = border(graph, edit)
        near = {i for i in givers if nodes[i].op in _HEADS}
        near.update(i for i in readers if nodes[i].op in ACTIVATIONS)
        near.update([u.node for i in (*near, *then.settled) for u in users[i] if u.node != OUTPUT and nodes[u.node].op in ACTIVATIONS])
        rests = near | {v.node for i in near if nodes[i].op in ACTIVATIONS for v in nodes[i].reads()}
        rests.update([old.node for old, new in edit.rewired.items() if nodes[old.node].op in _HEADS or then.at(new.node).op in _HEADS])
        if any(then.at(old.node).types[old.port] != then.at(new.node).types[new.port] for old, new in edit.rewired.items()):
            near |= readers | {u.node for i in readers for u in users[i] if u.node != OUTPUT}  # they read another size
        if any(then.at(new.node).constant for new in edit.rewired.values()):
            near |= readers | then.settled.keys()
            rests |= near
        near.difference_update(edit.removed)
        before = sum([self.node_ms(now, i) for i in (*edit.removed, *sorted(near))])
        after = sum([self.node_ms(then, i) for i in (*sorted(near), *range(-1 - len(edit.added), -1))])
        return Price(before - after, frozenset(rests))

    def unknown(self, graph: Graph) -> list[str]:
        """Values of running nodes whose size stays unknown; their unknown dims count as 1."""
        view = Now(graph)
        return [
            graph.label(Value(i, p))
            for i, node in graph.nodes.items()
            if not node.constant and not node.is_source
            for p, t in enumerate(self._sizes.types(view.at, i, graph.opset))
            if t is None or not t.static
        ]

    def node_ms(self, view: View, i: int) -> float:
        """The price of node `i`; 0 for constants, inputs, and an activation that its producer takes along. Kept with the node."""
        node = view.at(i)
        if node.constant or node.op in FREE or node.op in self.device.free or node.is_source:
            return 0.0
        if node.op in ACTIVATIONS and _taken_along(view, node):
            return 0.0
        activated = node.op in _HEADS and _has_activation(view, i)
        key = self._names[activated]
        found: float | None = node.memo.get(key)
        if found is None:
            reads = tuple(None if v is None else self._sizes.types(view.at, v.node, view.opset)[v.port] for v in node.inputs)
            results = self._sizes.types(view.at, i, view.opset)
            found = node.memo[key] = self._priced(node, reads, results, activated)
        return found

    def _priced(self, node: Node, reads: Types, results: Types, activated: bool) -> float:
        key = (node.signature, reads, results, activated)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._price(node, reads, results, activated)
        return found

    def _price(self, node: Node, reads: Types, results: Types, activated: bool) -> float:
        into, made = [_shape(t) for t in reads], [_shape(t) for t in results]
        out = sum(elements(s) for s in made)
        work = flops(node, into, made) + (out if activated else 0)
        n = READS.get(node.op, len(reads))
        moved = sum(self._bytes(t, s) for t, s in zip((*reads[:n], *results), (*into[:n], *made), strict=True))
        if node.op in PICKING:
            moved -= max(0.0, self._bytes(reads[0], into[0]) - self._bytes(results[0], made[0]))
        d = self.device
        full = min(1.0, out / d.saturation) if d.saturation and out else 1.0
        compute, move = work / (d.peak_flops * full), moved / d.bandwidth
        return 1000 * (compute + move if d.additive else max(compute, move)) + d.launch_ms

    @staticmethod
    def _bytes(kind: TensorType | None, shape: tuple[int, ...] | None) -> float:
        return 0.0 if kind is None else elements(shape) * element_bits(kind.dtype) / 8


def _shape(kind: TensorType | None) -> tuple[int, ...] | None:
    return None if kind is None or kind.shape is None else tuple(d if isinstance(d, int) else 1 for d in kind.shape)


def _fresh_names() -> tuple[str, str]:
    """Names, used by no other price list, under which nodes keep their price without and with an activation."""
    n = next(_SERIAL)
    return f"price {n}", f"activated price {n}"


def _taken_along(view: View, node: Node) -> bool:
    if not node.inputs or node.inputs[0] is None:
        return False
    producer = node.inputs[0].node
    return view.at(producer).op in _HEADS and not view.at(producer).constant and len(view.used(producer)) == 1


def _has_activation(view: View, i: int) -> bool:
    used = view.used(i)
    return len(used) == 1 and used[0].node != OUTPUT and view.at(used[0].node).op in ACTIVATIONS
