"""Sizes: the types of values once the symbols of a graph's inputs have sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cgorl.ir.contents import contents, whole
from cgorl.ir.graph import Graph
from cgorl.ir.infer import UNKNOWN, InferError, infer
from cgorl.ir.node import Dim, Node, TensorType, Value
from cgorl.ir.tensor import Array, Tensor

Types = tuple[TensorType | None, ...]


class DimsError(ValueError):
    """A dim that must have a size has none; the message says how to give it."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of symbols by name, an unnamed dim counting as symbol `input:axis`; `other` is the size of all the rest."""

    dims: Mapping[str, int]
    other: int | None = None

    def check(self, graph: Graph) -> None:
        """Raises DimsError if a dim of a graph input has no size."""
        for symbol, name in symbols(graph).items():
            if symbol not in self.dims and self.other is None:
                raise DimsError(f"dim '{symbol}' of input '{name}' has no size; give one, e.g. dims.{symbol}=8 (unbound=8: one for all)")

    def types(self, at: Callable[[int], Node], i: int, opset: int) -> Types:
        """Types of the results of node `i` of a graph (or a view of one), as known as they get. Kept with the node."""
        node = at(i)
        if all(t is not None and t.static for t in node.types):
            return node.types
        key = f"sized {self.other} {sorted(self.dims.items())}"
        found: Types | None = node.memo.get(key)
        if found is None:
            found = node.memo[key] = self._types(at, node, opset)
        return found

    def _types(self, at: Callable[[int], Node], node: Node, opset: int) -> Types:
        if node.is_input:
            return (self._bound(node.types[0], node.names[0]),)
        here = tuple(self._bound(t, None) for t in node.types)
        if all(t is not None and t.static for t in here) or node.captures or node.domain != "":
            return here
        kinds = [None if v is None else self.types(at, v.node, opset)[v.port] or UNKNOWN for v in node.inputs]
        held = [self._held(at, v, kind, opset) for v, kind in zip(node.inputs, kinds, strict=True)]
        try:
            fresh = infer(node.op, node.domain, opset, node.attrs, kinds, held, len(node.types))
        except InferError:
            return here
        return tuple(b if a is None else a if b is None or not a.agrees(b) else a.meet(b) for a, b in zip(here, fresh, strict=True))

    def _held(self, at: Callable[[int], Node], v: Value | None, kind: TensorType | None, opset: int) -> Tensor | None:
        """The tensor that a value holds: an initializer, or integers that hang on the sizes alone."""
        if v is None:
            return None
        node = at(v.node)
        if node.is_constant:
            return node.tensor
        found = self._contents(at, v, opset) if whole(kind) else None
        return None if found is None else Tensor.of(np.array(found, order="C"))

    def _contents(self, at: Callable[[int], Node], v: Value, opset: int) -> Array | None:
        node = at(v.node)
        if node.is_constant:
            return node.tensor.array() if whole(node.types[0]) and node.tensor.small() else None
        if v.port or node.is_source or node.domain:
            return None
        key = f"held {self.other} {sorted(self.dims.items())}"
        if key not in node.memo:
            node.memo[key] = None  # so that nothing is asked for twice
            node.memo[key] = contents(node, lambda u: self.types(at, u.node, opset)[u.port], lambda u: self._contents(at, u, opset))
        found: Array | None = node.memo[key]
        return found

    def _bound(self, kind: TensorType | None, label: str | None) -> TensorType | None:
        if kind is None or kind.shape is None:
            return kind
        dims: list[Dim] = []
        for axis, d in enumerate(kind.shape):
            symbol = d if isinstance(d, str) else f"{label}:{axis}" if label is not None else None
            if isinstance(d, int) or symbol is None:
                dims.append(d)
            else:
                dims.append(self.dims.get(symbol, self.other if label is not None else d))
        return TensorType(kind.dtype, tuple(dims))


def symbols(graph: Graph) -> dict[str, str]:
    """Symbol -> an input that has it, for every dim of an input that is no number; unnamed ones as `input:axis`."""
    found: dict[str, str] = {}
    for i in graph.inputs:
        node = graph.nodes[i]
        kind = node.types[0]
        for axis, d in enumerate(kind.shape or () if kind is not None else ()):
            if not isinstance(d, int):
                found.setdefault(d if isinstance(d, str) else f"{node.names[0]}:{axis}", node.names[0])
    return found
