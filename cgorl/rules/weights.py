"""The named functions that compute weights of a rule's target, as nodes on constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

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
    return _reshape(at, vector, (-1,) + (1,) * (at.rank(weight) - 1))


def inward(at: Context, vector: Value, weight: Value, group: int) -> Value:
    """`vector` [C] shaped to scale `weight` [O, C/group, ...] by the input channel that each entry reads."""
    shape = at.shape(weight)
    ones = (1,) * (len(shape) - 2)
    if group == 1:
        return _reshape(at, vector, (1, -1, *ones))
    spread = _expand(at, _reshape(at, vector, (group, 1, shape[1])), (group, shape[0] // group, shape[1]))
    return _reshape(at, spread, (shape[0], shape[1], *ones))


def outward_transposed(at: Context, vector: Value, weight: Value, group: int) -> Value:
    """`vector` [O] shaped to scale a ConvTranspose's `weight` [C, O/group, ...] by output channel."""
    shape = at.shape(weight)
    ones = (1,) * (len(shape) - 2)
    if group == 1:
        return _reshape(at, vector, (1, -1, *ones))
    spread = _expand(at, _reshape(at, vector, (group, 1, shape[1])), (group, shape[0] // group, shape[1]))
    return _reshape(at, spread, (shape[0], shape[1], *ones))


def channels(at: Context, scale: Value, weight: Value) -> Value:
    """`scale`, which is one number or one a channel, as a vector [O] for `weight` [O, ...]."""
    return _vector(at, scale, at.shape(weight)[0])


def channels_in(at: Context, scale: Value, weight: Value, group: int) -> Value:
    """`scale`, which is one number or one a channel, as a vector [C] for `weight` [O, C/group, ...]."""
    return _vector(at, scale, at.shape(weight)[1] * group)


def channels_transposed(at: Context, scale: Value, weight: Value, group: int) -> Value:
    """`scale`, which is one number or one a channel, as a vector [O] for a ConvTranspose's `weight` [C, O/group, ...]."""
    return _vector(at, scale, at.shape(weight)[1] * group)


def channels_of(at: Context, scale: Value, value: Value) -> Value:
    """`scale`, which is one number or one a channel, as a vector for the channels (axis 1) of `value`. Raises NoMatch."""
    kind = at.type(value)
    size = kind.shape[1] if kind.shape is not None and len(kind.shape) > 1 else None
    if not isinstance(size, int):
        raise NoMatch(f"the channels of '{at.label(value)}' are not known")
    return _vector(at, scale, size)


def columns(at: Context, scale: Value, weight: Value, transposed: int) -> Value:
    """`scale`, which is one number or one a column, as a vector [N] for `weight` [K,N] ([N,K] if `transposed`)."""
    return _vector(at, scale, at.shape(weight)[0 if transposed else 1])


def rows(at: Context, scale: Value, weight: Value, transposed: int) -> Value:
    """`scale`, which is one number or one a row, as a vector [K] for `weight` [K,N] ([N,K] if `transposed`)."""
    return _vector(at, scale, at.shape(weight)[1 if transposed else 0])


def _vector(at: Context, scale: Value, size: int) -> Value:
    flat = _reshape(at, scale, (-1,))
    return flat if at.shape(flat) == (size,) else _expand(at, flat, (size,))


def across(at: Context, vector: Value, transposed: int) -> Value:
    """`vector` [N] shaped to scale the columns of a weight [K,N], or the rows of [N,K] if `transposed`."""
    return _reshape(at, vector, (-1, 1) if transposed else (1, -1))


def down(at: Context, vector: Value, transposed: int) -> Value:
    """`vector` [K] shaped to scale the rows of a weight [K,N], or the columns of [N,K] if `transposed`."""
    return _reshape(at, vector, (1, -1) if transposed else (-1, 1))


def matrix(at: Context, weight: Value) -> Value:
    """`weight` [O, ...] flattened to [O, rest]."""
    shape = at.shape(weight)
    return _reshape(at, weight, (shape[0], math.prod(shape[1:])))


def kernel_like(at: Context, flat: Value, weight: Value) -> Value:
    """`flat` [O, C*k] shaped as the kernel `weight` [?, C, k...]."""
    return _reshape(at, flat, (at.shape(flat)[0], *at.shape(weight)[1:]))


def transposed(at: Context, weight: Value) -> Value:
    """A matrix turned over."""
    return at.builder.node("Transpose", [weight], {"perm": (1, 0)})


def stored(at: Context, weight: Value, flag: int) -> Value:
    """A Gemm's weight as [K,N], whichever way `flag` (transB) says that it is stored."""
    return transposed(at, weight) if flag else weight


def summed(at: Context, weight: Value) -> Value:
    """The sum [O] of each output channel's entries of `weight` [O, ...]."""
    return at.builder.node("ReduceSum", [matrix(at, weight)], {"axes": (1,), "keepdims": 0})


def through(at: Context, second: Value, first: Value) -> Value:
    """The kernel [O, I, k...] that does 1x1 kernel `first` [M, I, 1...], then `second` [O, M, k...]."""
    o, m, *k = at.shape(second)
    i = at.shape(first)[1]
    area = math.prod(k)
    taps = at.builder.node("Transpose", [_reshape(at, second, (o, m, area))], {"perm": (0, 2, 1)})
    product = at.builder.node("MatMul", [taps, matrix(at, first)])
    return _reshape(at, at.builder.node("Transpose", [product], {"perm": (0, 2, 1)}), (o, i, *k))


def carried(at: Context, second: Value, bias: Value | None) -> Value | None:
    """What the bias [M] of a layer before adds to each output of kernel `second` [O, M, k...]; absent if that is."""
    if bias is None:
        return None
    scale = _reshape(at, bias, (1, -1, *(1,) * (at.rank(second) - 2)))
    return summed(at, at.builder.node("Mul", [second, scale]))


def enlarged(at: Context, weight: Value, p1: Any, p2: Any, dilations: Any) -> Value:
    """`weight` padded with zeros so that under pads `p1` it does what it did under `p2`."""
    n = len(dilations)
    lead = [(p1[i] - p2[i]) // d for i, d in enumerate(dilations)]
    tail = [(p1[n + i] - p2[n + i]) // d for i, d in enumerate(dilations)]
    if not any(lead) and not any(tail):
        return weight
    return at.builder.node("Pad", [weight], {"pads": (0, 0, *lead, 0, 0, *tail), "mode": "constant"})


def dirac(at: Context, weight: Value, pads: Any, dilations: Any, group: int) -> Value:
    """A kernel of the shape of `weight` whose convolution gives its input: one tap a channel."""
    return _taps(at, weight, [p // d for p, d in zip(pads, dilations, strict=False)], [1] * len(dilations), 1.0)


def box(at: Context, weight: Value, pads: Any, dilations: Any, window: Any, window_pads: Any) -> Value:
    """A kernel of the shape of `weight` whose convolution gives the mean of its input over `window` padded by `window_pads`."""
    lead = [(p - q) // d for p, q, d in zip(pads, window_pads, dilations, strict=False)]
    return _taps(at, weight, lead, list(window), 1.0 / math.prod(window))


def _taps(at: Context, weight: Value, lead: list[int], size: list[int], number: float) -> Value:
    shape = at.shape(weight)
    kernel = np.zeros(shape, tensor_dtype_to_np_dtype(at.type(weight).dtype))
    place = tuple(slice(a, a + n) for a, n in zip(lead, size, strict=True))
    for o in range(shape[0]):
        kernel[o, o % shape[1]][place] = number
    return at.builder.constant(kernel, at.type(weight).dtype)


def depthwise_ones(at: Context, value: Value, window: Any) -> Value:
    """A depthwise kernel [C, 1, window...] that takes the mean over the window of each channel of `value`."""
    kind = at.type(value)
    size = kind.shape[1] if kind.shape is not None and len(kind.shape) > 2 else None
    if not isinstance(size, int):
        raise NoMatch(f"the channels of '{at.label(value)}' are not known")
    array = np.full((size, 1, *window), 1.0 / math.prod(window), tensor_dtype_to_np_dtype(kind.dtype))
    return at.builder.constant(array, kind.dtype)


def stacked_bias(at: Context, *both: Any) -> Value | None:
    """Biases [O1], [O2], ... one behind the other, zeros for absent ones; given as all weights, then all biases."""
    n = len(both) // 2
    return _concat_biases(at, [at.shape(w)[0] for w in both[:n]], both[:n], both[n:])


def _concat_biases(at: Context, lengths: list[int], weights: Any, biases: Any) -> Value | None:
    if all(b is None for b in biases):
        return None
    parts = []
    for length, w, b in zip(lengths, weights, biases, strict=True):
        kind = at.type(w).dtype
        parts.append(b if b is not None else at.builder.constant(np.zeros(length, tensor_dtype_to_np_dtype(kind)), kind))
    return at.builder.node("Concat", parts, {"axis": 0})


def stacked_rows(at: Context, transposed: int, *both: Any) -> Value | None:
    """Additive terms of Gemms, as vectors of their columns, one behind the other; given as `stacked_bias`'s."""
    n = len(both) // 2
    weights, terms = both[:n], both[n:]
    lengths = [at.shape(w)[0 if transposed else 1] for w in weights]
    rows_ = []
    for length, c in zip(lengths, terms, strict=True):
        if c is not None and math.prod(at.shape(c)) not in (1, length):
            raise NoMatch(f"'{at.label(c)}' is not one term a column")
        rows_.append(None if c is None else _vector(at, c, length))
    return _concat_biases(at, lengths, weights, rows_)


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


def merged_groups(at: Context, weight: Value, group: int, factor: int) -> Value:
    """`weight` [O, C/group, ...] for groups `factor` times as large, zero where two old groups would mix. Raises NoMatch."""
    o, c, *k = at.shape(weight)
    if factor < 2 or group % factor or group < factor:
        raise NoMatch(f"{group} groups cannot be merged by {factor}")
    new, per = group // factor, o // group
    spread = _reshape(at, weight, (new, factor, per, 1, c, *k))
    mask = np.eye(factor).reshape(1, factor, 1, factor, 1, *(1,) * len(k))
    dtype = at.type(weight).dtype
    held = at.builder.constant(mask.astype(tensor_dtype_to_np_dtype(dtype)), dtype)
    return _reshape(at, at.builder.node("Mul", [spread, held]), (o, c * factor, *k))


def split_groups(at: Context, weight: Value, group: int, factor: int) -> Value:
    """`weight` [O, C/group, ...] for groups `factor` times as many; what it mixes must be zero (see `block_diagonal`)."""
    o, c, *k = at.shape(weight)
    per = o // (group * factor)
    blocks = _reshape(at, weight, (group, factor, per, factor, c // factor, *k))
    mask = np.eye(factor).reshape(1, factor, 1, factor, 1, *(1,) * len(k))
    dtype = at.type(weight).dtype
    held = at.builder.constant(mask.astype(tensor_dtype_to_np_dtype(dtype)), dtype)
    kept = at.builder.node("ReduceSum", [at.builder.node("Mul", [blocks, held])], {"axes": (3,), "keepdims": 0})
    return _reshape(at, kept, (o, c // factor, *k))


def _reshape(at: Context, value: Value, shape: tuple[int, ...]) -> Value:
    return at.builder.node("Reshape", [value], {"shape": shape})


def _expand(at: Context, value: Value, shape: tuple[int, ...]) -> Value:
    return at.builder.node("Expand", [value], {"shape": shape})


WEIGHTS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        sqrt,
        like,
        filled,
        outward,
        inward,
        outward_transposed,
        channels,
        channels_in,
        channels_transposed,
        channels_of,
        columns,
        rows,
        across,
        down,
        matrix,
        kernel_like,
        transposed,
        stored,
        summed,
        through,
        carried,
        enlarged,
        dirac,
        box,
        depthwise_ones,
        stacked_bias,
        stacked_rows,
        parts,
        front,
        back,
        merged_groups,
        split_groups,
    )
}
