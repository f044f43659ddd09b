"""Weights put together and cut apart, as nodes on constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.vocabulary.scales import vector


def stacked_bias(at: Context, *both: Any) -> Value | None:
    """Biases [O1], [O2], ... one behind the other, zeros for absent ones; given as all weights, then all biases."""
    n = len(both) // 2
    return _concat_biases(at, [at.shape(w)[0] for w in both[:n]], both[:n], both[n:])


def stacked_rows(at: Context, transposed: int, *both: Any) -> Value | None:
    """Additive terms of Gemms, as vectors of their columns, one behind the other; given as `stacked_bias`'s."""
    n = len(both) // 2
    weights, terms = both[:n], both[n:]
    lengths = [at.shape(w)[0 if transposed else 1] for w in weights]
    rows_ = []
    for length, c in zip(lengths, terms, strict=True):
        if c is not None and (math.prod(at.shape(c)[:-1]) != 1 or math.prod(at.shape(c)) not in (1, length)):
            raise NoMatch(f"'{at.label(c)}' is not one term a column")
        rows_.append(None if c is None else vector(at, c, length))
    return _concat_biases(at, lengths, weights, rows_)


def _concat_biases(at: Context, lengths: list[int], weights: Any, biases: Any) -> Value | None:
    if all(b is None for b in biases):
        return None
    parts = []
    for length, w, b in zip(lengths, weights, biases, strict=True):
        kind = at.type(w).dtype
        parts.append(b if b is not None else at.builder.constant(np.zeros(length, tensor_dtype_to_np_dtype(kind)), kind))
    return at.builder.node("Concat", parts, {"axis": 0})


def parts(at: Context, weight: Value | None, axis: int, *numbers: Any) -> tuple[Value | None, ...]:
    """`weight` cut along `axis` into pieces of the given sizes; absent pieces of an absent weight."""
    cuts = numbers[0] if numbers and isinstance(numbers[0], tuple) else numbers
    found: list[Value | None] = []
    start = 0
    for n in cuts:
        found.append(None if weight is None else _slice(at, weight, axis, start, start + n))
        start += n
    return tuple(found)


def front(at: Context, weight: Value, axis: int, by: Value, like_axis: int) -> Value:
    """The first entries of `weight` along `axis`: as many as `by` is long along `like_axis`."""
    return _slice(at, weight, axis, 0, _length(at, by, like_axis))


def back(at: Context, weight: Value, axis: int, by: Value, like_axis: int) -> Value:
    """The entries of `weight` along `axis` behind those that `front` gives."""
    return _slice(at, weight, axis, _length(at, by, like_axis), at.shape(weight)[axis])


def _length(at: Context, by: Value, axis: int) -> int:
    kind = at.type(by)
    found = None if kind.shape is None else kind.shape[axis]
    if not isinstance(found, int):
        raise NoMatch(f"the size of '{at.label(by)}' along axis {axis} is not known")
    return found


def _slice(at: Context, weight: Value, axis: int, start: int, end: int) -> Value:
    return at.builder.node("Slice", [weight], {"starts": (start,), "ends": (end,), "axes": (axis,)})
