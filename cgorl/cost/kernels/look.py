"""Look: a view of a graph that remembers which nodes were looked at, with the small questions that the kernel rule asks."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx

from cgorl.cost.model import View
from cgorl.ir.graph import OUTPUT, Use
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.sizes import Sizes, Types
from cgorl.ir.tensor import Tensor

FLOAT = onnx.TensorProto.FLOAT


class Look:
    """A View that keeps the ids of the nodes it was asked for in `seen`."""

    def __init__(self, view: View, sizes: Sizes) -> None:
        """Looks at `view`, with symbols of these sizes."""
        self.view, self.sizes = view, sizes
        self.seen: set[int] = set()

    def at(self, i: int) -> Node:
        """Node `i`."""
        self.seen.add(i)
        return self.view.at(i)

    def used(self, i: int) -> tuple[Use, ...]:
        """Who reads node `i`."""
        self.seen.add(i)
        return self.view.used(i)

    def types(self, i: int) -> Types:
        """Types of the results of node `i`, as known as they get."""
        self.seen.add(i)
        return self.sizes.types(self.view.at, i, self.view.opset)

    def type(self, value: Value | None) -> TensorType | None:
        """Type of a value."""
        return None if value is None else self.types(value.node)[value.port]

    def shape(self, value: Value | None) -> tuple[int, ...] | None:
        """Shape of a value, if all of it is known."""
        kind = self.type(value)
        return kind.shape if kind is not None and kind.static else None  # type: ignore[return-value]

    def declared(self, value: Value) -> bool:
        """Whether the file itself knows the shape of `value`, so that the runtime can know it too."""
        kind = self.at(value.node).types[value.port]
        return kind is not None and kind.static

    def named(self, value: Value) -> bool:
        """Whether the file itself has a number or a symbol for each dim of `value`."""
        kind = self.at(value.node).types[value.port]
        return kind is not None and kind.shape is not None and None not in kind.shape

    def constant(self, value: Value | None) -> bool:
        """Whether a value rests on weights alone."""
        return value is not None and self.at(value.node).constant

    def contents(self, value: Value | None) -> Tensor | None:
        """The tensor behind a value that is an initializer."""
        if value is None:
            return None
        node = self.at(value.node)
        return node.tensor if node.is_constant else None

    def number(self, value: Value | None) -> float | None:
        """The number that a constant of one element holds."""
        held = self.contents(value)
        return float(held.array().reshape(-1)[0]) if held is not None and math.prod(held.shape) == 1 else None

    def sole(self, value: Value) -> int | None:
        """The only reader of a node's results, if it reads `value`, reads it once, and is a node."""
        used = self.used(value.node)
        if len(used) != 1 or used[0].node == OUTPUT or used[0].port != value.port:
            return None
        return used[0].node

    def readers(self, value: Value) -> Iterator[int]:
        """Who reads `value`, OUTPUT among them."""
        return (u.node for u in self.used(value.node) if u.port == value.port)

    def blockable(self, value: Value | None) -> bool:
        """Whether a value is of four known dims and float32."""
        kind = self.type(value)
        return kind is not None and kind.dtype == FLOAT and kind.rank == 4 and isinstance(kind.shape[1], int)  # type: ignore[index]
