"""Numbers that are known although the model's inputs are not: shapes, and what exporters compute of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul, sub
from typing import Any

import onnx

from cgorl.ir.forms import Form
from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, TensorType, Value

Numbers = tuple[int | str | None, ...]
"""A vector of integers, some of them the size that a symbol stands for, some unknown; a scalar is a vector of one (`Known.scalar`)."""

_LIMIT = 1024
_FEW = 64
_WHOLE = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def _divided(a: int, b: int) -> int | None:
    """`a` / `b` as runtimes do it: towards zero."""
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: Mapping[str, Callable[[int, int], int | None]] = {"Add": add, "Sub": sub, "Mul": mul, "Div": _divided}
"""Computed here and not by a runtime, so that a reshape which hangs on a product of dims needs no round of its own."""


class Known:
    """Partly known integer vectors and scalars by value, filled node by node in topological order."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self.numbers: dict[Value, Numbers] = {}
        self.scalar: set[Value] = set()

    def learn(self, graph: Graph, i: int, node: Node, shape: Form) -> Any:
        """Looks at node `i`; returns its result as nested ints if all of it is known (a tuple, or an int for a scalar)."""
        found = self._of(graph, node, shape)
        if found is None or len(found[0]) > _LIMIT:
            return None
        numbers, scalar = found
        self.numbers[Value(i)] = numbers
        if scalar:
            self.scalar.add(Value(i))
        if not all(isinstance(n, int) for n in numbers):
            return None
        return numbers[0] if scalar else numbers

    def _get(self, graph: Graph, value: Value | None) -> tuple[Numbers, bool] | None:
        if value is None:
            return None
        if value in self.numbers:
            return self.numbers[value], value in self.scalar
        node = graph.node(value)
        if not node.is_constant:
            return _some(graph.type(value))
        if len(node.tensor.shape) > 1 or not node.tensor.small() or node.tensor.dtype not in _WHOLE:
            return None
        return tuple(int(n) for n in node.tensor.array().reshape(-1)), not node.tensor.shape

    def _of(self, graph: Graph, node: Node, shape: Form) -> tuple[Numbers, bool] | None:
        first = shape.inputs[0] if shape.inputs else None
        a: Mapping[str, Any] = shape.attrs
        if first is None or shape.missing:
            return None
        if node.op in ("Shape", "Size"):
            kind = graph.type(first)
            if kind is None or kind.shape is None:
                return None
            dims = kind.shape
            if node.op == "Shape":
                return dims[slice(a.get("start", 0), a.get("end"))], False
            total = 1
            for d in dims:
                if not isinstance(d, int):
                    return None
                total *= d
            return (total,), True
        if node.op == "Concat":
            parts = [self._get(graph, v) for v in shape.inputs]
            if any(p is None or p[1] for p in parts):
                return None
            return tuple(n for p in parts if p is not None for n in p[0]), False
        held = self._get(graph, first)
        if held is None:
            return None
        numbers, scalar = held
        if node.op == "Gather" and not scalar and len(shape.inputs) == 2:
            at = self._get(graph, shape.inputs[1])
            if at is None or any(not isinstance(k, int) or not -len(numbers) <= k < len(numbers) for k in at[0]):
                return None
            return tuple(numbers[k] for k in at[0] if isinstance(k, int)), at[1]
        if node.op == "Slice" and not scalar and len(a.get("starts", ())) == len(a.get("ends", ())) == 1:
            step = a.get("steps", (1,))[0]
            return (numbers[slice(a["starts"][0], a["ends"][0], step)], False) if step else None
        if node.op == "Unsqueeze" and scalar and len(a.get("axes", ())) == 1:
            return numbers, False
        if node.op == "Squeeze" and not scalar and len(numbers) == 1 and a.get("axes", (0,)) in ((0,), (-1,)):
            return numbers, True
        if (
            node.op in _ARITHMETIC
            and len(shape.inputs) == 2
            and (kind := node.types[0]) is not None
            and kind.dtype == onnx.TensorProto.INT64
        ):
            other = self._get(graph, shape.inputs[1])
            return None if other is None else _elementwise(_ARITHMETIC[node.op], held, other)
        if node.op == "Cast" and a.get("to") == onnx.TensorProto.INT64:
            return numbers, scalar
        if (
            node.op == "Cast"
            and a.get("to") == onnx.TensorProto.INT32
            and all(not isinstance(n, int) or -(2**31) <= n < 2**31 for n in numbers)
        ):
            return numbers, scalar
        return None


def _some(kind: TensorType | None) -> tuple[Numbers, bool] | None:
    """As many unknown numbers as a short vector or scalar of integers has."""
    if kind is None or kind.shape is None or kind.dtype not in _WHOLE or len(kind.shape) > 1:
        return None
    size = kind.shape[0] if kind.shape else 1
    return ((None,) * size, not kind.shape) if isinstance(size, int) and size <= _FEW else None


def _elementwise(
    compute: Callable[[int, int], int | None], a: tuple[Numbers, bool], b: tuple[Numbers, bool]
) -> tuple[Numbers, bool] | None:
    """The result with a vector of one, or a scalar, standing for as many as the other has; unknown where it passes 64 bits."""
    size = max(len(a[0]), len(b[0])) if min(len(a[0]), len(b[0])) else 0
    if any(len(n) not in (1, size) for n, _ in (a, b)):
        return None
    pairs = zip(*(n * size if len(n) == 1 else n for n, _ in (a, b)), strict=True)
    found = (
        compute(x, y) if isinstance(x, int) and isinstance(y, int) else 0 if compute is mul and (x == 0 or y == 0) else None
        for x, y in pairs
    )
    return tuple(n if n is None or -(2**63) <= n < 2**63 else None for n in found), a[1] and b[1]
