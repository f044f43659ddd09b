"""Roofline: analytic prices from flops, bytes and launches on a device described by data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cgorl.cost.flops import FREE, PICKING, elements, flops
from cgorl.cost.model import After, CostError, Now, View, neighbourhood
from cgorl.ir.graph import OUTPUT, Edit, Graph
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.sizes import Sizes, Types
from cgorl.ir.tensor import element_bits

ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", "Elu", "Gelu"})
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


@dataclass(frozen=True, slots=True, eq=False)
class Roofline:
    """The cost of a graph as the sum over its kernels.

    A kernel is a node, or a convolution or matrix product with the activation that is its only user. Expressions on
    weights are free: they are computed once, when the model is saved.
    """

    device: Device
    dims: Mapping[str, int] = field(default_factory=dict)
    unbound: int | None = None
    _memo: dict[Any, float] = field(default_factory=dict, repr=False)

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self.dims, self.unbound)

    def cost_ms(self, graph: Graph) -> float:
        """The estimate for the whole graph. Raises DimsError naming a symbol without a size."""
        self._sizes.check(graph)
        view = Now(graph)
        return sum(self.node_ms(view, i) for i in graph.order())

    def gain(self, graph: Graph, edit: Edit) -> float:
        """What the edit saves, in ms: the difference of totals, from the prices of the nodes around it."""
        now, then = Now(graph), After(graph, edit)
        before, after = neighbourhood(graph, edit, then.settled)
        return sum(self.node_ms(now, i) for i in sorted(before)) - sum(self.node_ms(then, i) for i in sorted(after))

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
        """The price of node `i`; 0 for constants, inputs, and an activation that its producer takes along."""
        node = view.at(i)
        if node.constant or node.is_source or node.op in FREE or node.op in self.device.free:
            return 0.0
        if _taken_along(view, node):
            return 0.0
        reads = tuple(None if v is None else self._sizes.types(view.at, v.node, view.opset)[v.port] for v in node.inputs)
        results = self._sizes.types(view.at, i, view.opset)
        key = (node.signature, reads, results, node.op in _HEADS and _has_activation(view, i))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._price(node, reads, results, key[-1])
        return found

    def _price(self, node: Node, reads: Types, results: Types, activated: bool) -> float:
        into, made = [_shape(t) for t in reads], [_shape(t) for t in results]
        out = sum(elements(s) for s in made)
        work = flops(node, into, made) + (out if activated else 0)
        moved = sum(self._bytes(t, s) for t, s in zip((*reads, *results), (*into, *made), strict=True))
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


def _taken_along(view: View, node: Node) -> bool:
    if node.op not in ACTIVATIONS or not node.inputs or node.inputs[0] is None:
        return False
    producer = node.inputs[0].node
    return view.at(producer).op in _HEADS and not view.at(producer).constant and len(view.used(producer)) == 1


def _has_activation(view: View, i: int) -> bool:
    used = view.used(i)
    return len(used) == 1 and used[0].node != OUTPUT and view.at(used[0].node).op in ACTIVATIONS
