"""Scales and shifts in the shape that a weight needs them, as nodes on constants."""

from __future__ import annotations

import math

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def sqrt(at: Context, value: Value) -> Value:
    """The square root, element by element."""
    return at.builder.node("Sqrt", [value])


def like(at: Context, numbers: float, value: Value) -> Value:
    """A constant of one number, of the element type of `value`."""
    dtype = at.type(value).dtype
    return at.builder.constant(np.array(numbers, tensor_dtype_to_np_dtype(dtype)), dtype)


def filled(at: Context, number: float, vector: Value) -> Value:
    """A constant of the type of `vector`, every entry `number`."""
    dtype = at.type(vector).dtype
    return at.builder.constant(np.full(at.shape(vector), number, tensor_dtype_to_np_dtype(dtype)), dtype)


def outward(at: Context, vector: Value, weight: Value) -> Value:
    """`vector` [O] shaped [O,1,1,...] to scale `weight` [O, ...] by output channel."""
    return reshape(at, vector, (-1,) + (1,) * (at.rank(weight) - 1))


def inward(at: Context, vector: Value, weight: Value, group: int) -> Value:
    """`vector` [C] shaped to scale `weight` [O, C/group, ...] by the input channel that each entry reads."""
    shape = at.shape(weight)
    ones = (1,) * (len(shape) - 2)
    if group == 1:
        return reshape(at, vector, (1, -1, *ones))
    spread = expand(at, reshape(at, vector, (group, 1, shape[1])), (group, shape[0] // group, shape[1]))
    return reshape(at, spread, (shape[0], shape[1], *ones))


def outward_transposed(at: Context, vector: Value, weight: Value, group: int) -> Value:
    """`vector` [O] shaped to scale a ConvTranspose's `weight` [C, O/group, ...] by output channel: its axes are a conv's swapped."""
    return inward(at, vector, weight, group)


def channels(at: Context, scale: Value, weight: Value) -> Value:
    """`scale`, which is one number or one a channel, as a vector [O] for `weight` [O, ...]."""
    return vector(at, scale, at.shape(weight)[0])


def channels_in(at: Context, scale: Value, weight: Value, group: int) -> Value:
    """`scale`, which is one number or one a channel, as a vector [C] for `weight` [O, C/group, ...]."""
    return vector(at, scale, at.shape(weight)[1] * group)


def channels_transposed(at: Context, scale: Value, weight: Value, group: int) -> Value:
    """`scale`, which is one number or one a channel, as a vector [O] for a ConvTranspose's `weight` [C, O/group, ...]."""
    return vector(at, scale, at.shape(weight)[1] * group)


def channels_of(at: Context, scale: Value, value: Value) -> Value:
    """`scale`, which is one number or one a channel, as a vector for the channels (axis 1) of `value`. Raises NoMatch."""
    kind = at.type(value)
    size = kind.shape[1] if kind.shape is not None and len(kind.shape) > 1 else None
    if not isinstance(size, int):
        raise NoMatch(f"the channels of '{at.label(value)}' are not known")
    return vector(at, scale, size)


def columns(at: Context, scale: Value, weight: Value, transposed: int) -> Value:
    """`scale`, which is one number or one a column, as a vector [N] for `weight` [K,N] ([N,K] if `transposed`)."""
    return vector(at, scale, at.shape(weight)[0 if transposed else 1])


def rows(at: Context, scale: Value, weight: Value, transposed: int) -> Value:
    """`scale`, which is one number or one a row, as a vector [K] for `weight` [K,N] ([N,K] if `transposed`)."""
    return vector(at, scale, at.shape(weight)[1 if transposed else 0])


def vector(at: Context, scale: Value, size: int) -> Value:
    """`scale`, of one entry or of `size`, as a vector of that size."""
    flat = reshape(at, scale, (-1,))
    return flat if at.shape(flat) == (size,) else expand(at, flat, (size,))


def across(at: Context, vector: Value, transposed: int) -> Value:
    """`vector` [N] shaped to scale the columns of a weight [K,N], or the rows of [N,K] if `transposed`."""
    return reshape(at, vector, (-1, 1) if transposed else (1, -1))


def down(at: Context, vector: Value, transposed: int) -> Value:
    """`vector` [K] shaped to scale the rows of a weight [K,N], or the columns of [N,K] if `transposed`."""
    return reshape(at, vector, (1, -1) if transposed else (-1, 1))


def matrix(at: Context, weight: Value) -> Value:
    """`weight` [O, ...] flattened to [O, rest]."""
    shape = at.shape(weight)
    return reshape(at, weight, (shape[0], math.prod(shape[1:])))


def kernel_like(at: Context, flat: Value, weight: Value) -> Value:
    """`flat` [O, C*k] shaped as the kernel `weight` [?, C, k...]."""
    return reshape(at, flat, (at.shape(flat)[0], *at.shape(weight)[1:]))


def transposed(at: Context, weight: Value) -> Value:
    """A matrix turned over."""
    return at.builder.node("Transpose", [weight], {"perm": (1, 0)})


def stored(at: Context, weight: Value, flag: int) -> Value:
    """A Gemm's weight as [K,N], whichever way `flag` (transB) says that it is stored."""
    return transposed(at, weight) if flag else weight


def summed(at: Context, weight: Value) -> Value:
    """The sum [O] of each output channel's entries of `weight` [O, ...]."""
    return at.builder.node("ReduceSum", [matrix(at, weight)], {"axes": (1,), "keepdims": 0})


def reshape(at: Context, value: Value, shape: tuple[int, ...]) -> Value:
    """`value` in another shape."""
    return at.builder.node("Reshape", [value], {"shape": shape})


def expand(at: Context, value: Value, shape: tuple[int, ...]) -> Value:
    """`value` broadcast to a shape."""
    return at.builder.node("Expand", [value], {"shape": shape})
