"""What small integer values hold once the sizes of a graph's inputs are known: shapes, and what exporters compute of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.tensor import Array

LIMIT = 4096
"""Numbers in a value that is worth computing."""

_WHOLE = frozenset({onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL})


def contents(node: Node, kind: Callable[[Value], TensorType | None], held: Callable[[Value], Array | None]) -> Array | None:
    """What the first result of `node` holds, by types and contents of its operands; None where that is not known.

    Integers and booleans only: sizes, positions, masks of them.
    """
    operands = [v for v in node.inputs if v is not None]
    if node.domain or not operands or (node.op not in _COMPUTED and node.op not in ("Shape", "Size")):
        return None
    if node.op in ("Shape", "Size"):
        found = kind(operands[0])
        if found is None or found.shape is None or not found.static:
            return None
        dims = np.array(found.shape, np.int64)
        attrs: Mapping[str, Any] = node.attrs
        return np.asarray(np.prod(dims)) if node.op == "Size" else dims[slice(attrs.get("start", 0), attrs.get("end"))]
    given = [held(v) for v in operands]
    if any(a is None for a in given):
        return None
    try:
        made = np.asarray(_COMPUTED[node.op](node.attrs, *given))
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError):
        return None
    return made if made.size <= LIMIT and made.dtype.kind in "ib" else None


def whole(kind: TensorType | None) -> bool:
    """Whether a value of this type may be one of those that are computed."""
    return kind is None or kind.dtype in _WHOLE


def _axes(attrs: Mapping[str, Any], given: Sequence[Array]) -> tuple[int, ...]:
    return tuple(int(a) for a in (given[0] if given else attrs["axes"]))


def _unsqueeze(attrs: Mapping[str, Any], x: Array, *axes: Array) -> Array:
    return np.expand_dims(x, _axes(attrs, axes))


def _squeeze(attrs: Mapping[str, Any], x: Array, *axes: Array) -> Array:
    return np.squeeze(x, _axes(attrs, axes)) if axes or "axes" in attrs else np.squeeze(x)


def _slice(attrs: Mapping[str, Any], x: Array, *more: Array) -> Array:
    starts, ends = more[:2] if more else (np.array(attrs["starts"]), np.array(attrs["ends"]))
    axes = more[2] if len(more) > 2 else np.array(attrs.get("axes", range(len(starts))))
    steps = more[3] if len(more) > 3 else np.ones(len(starts), np.int64)
    cut = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step <= 0:
            raise ValueError("backwards")
        cut[int(axis)] = slice(int(start), int(end), int(step))
    return x[tuple(cut)]


def _reshape(attrs: Mapping[str, Any], x: Array, shape: Array) -> Array:
    return x.reshape([x.shape[k] if d == 0 and not attrs.get("allowzero") else int(d) for k, d in enumerate(shape)])


def _cast(attrs: Mapping[str, Any], x: Array) -> Array:
    return x.astype(helper.tensor_dtype_to_np_dtype(attrs["to"]))


def _filled(attrs: Mapping[str, Any], shape: Array) -> Array:
    value = attrs["value"].array().reshape(-1)[0] if "value" in attrs else np.float32(0)
    if math.prod(map(int, shape)) > LIMIT:
        raise ValueError("too many")
    return np.full(tuple(map(int, shape)), value)


def _divided(attrs: Mapping[str, Any], a: Array, b: Array) -> Array:
    made: Array = np.trunc(a / b).astype(a.dtype) if a.dtype.kind == "i" and np.all(b != 0) else a[()] // 0
    return made


_COMPUTED: Mapping[str, Callable[..., Any]] = {
    "Identity": lambda attrs, x: x,
    "Cast": _cast,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Slice": _slice,
    "Reshape": _reshape,
    "Concat": lambda attrs, *xs: np.concatenate(xs, attrs["axis"]),
    "Gather": lambda attrs, x, at: np.take(x, at, attrs.get("axis", 0)),
    "Add": lambda attrs, a, b: a + b,
    "Sub": lambda attrs, a, b: a - b,
    "Mul": lambda attrs, a, b: a * b,
    "Div": _divided,
    "Max": lambda attrs, *xs: np.max(np.broadcast_arrays(*xs), axis=0),
    "Min": lambda attrs, *xs: np.min(np.broadcast_arrays(*xs), axis=0),
    "Equal": lambda attrs, a, b: a == b,
    "Where": lambda attrs, c, a, b: np.where(c, a, b),
    "Range": lambda attrs, a, b, c: np.arange(a, b, c, dtype=a.dtype) if (b - a) / c <= LIMIT else None,
    "ConstantOfShape": _filled,
    "ReduceProd": lambda attrs, x, *axes: np.prod(x, keepdims=bool(attrs.get("keepdims", 1)), dtype=x.dtype) if x.ndim == 1 else None,
    "Expand": lambda attrs, x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(map(int, shape)))),
}
