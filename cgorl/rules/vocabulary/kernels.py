"""Kernels made of kernels, as nodes on constants."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.ir.tensor import Tensor
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.vocabulary.scales import like, matrix, reshape, summed


def through(at: Context, second: Value, first: Value) -> Value:
    """The kernel [O, I, k...] that does 1x1 kernel `first` [M, I, 1...], then `second` [O, M, k...]."""
    o, m, *k = at.shape(second)
    i = at.shape(first)[1]
    area = math.prod(k)
    taps = at.builder.node("Transpose", [reshape(at, second, (o, m, area))], {"perm": (0, 2, 1)})
    product = at.builder.node("MatMul", [taps, matrix(at, first)])
    return reshape(at, at.builder.node("Transpose", [product], {"perm": (0, 2, 1)}), (o, i, *k))


def carried(at: Context, second: Value, bias: Value | None) -> Value | None:
    """What the bias [M] of a layer before adds to each output of kernel `second` [O, M, k...]; absent if that is."""
    if bias is None:
        return None
    scale = reshape(at, bias, (1, -1, *(1,) * (at.rank(second) - 2)))
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
    return _taps(at, weight, [p // d for p, d in zip(pads, dilations, strict=False)], [1] * len(dilations))


def box(at: Context, weight: Value, pads: Any, dilations: Any, window: Any, window_pads: Any) -> Value:
    """A kernel of the shape of `weight` whose convolution gives the mean of its input over `window` padded by `window_pads`."""
    lead = [(p - q) // d for p, q, d in zip(pads, window_pads, dilations, strict=False)]
    return _mean(at, _taps(at, weight, lead, list(window)), window)


def _taps(at: Context, weight: Value, lead: list[int], size: list[int]) -> Value:
    return at.builder.held(_kernel(at.shape(weight), at.type(weight).dtype, tuple(lead), tuple(size)))


def _mean(at: Context, kernel: Value, window: Any) -> Value:
    """A kernel of ones that takes the mean; a division, so that the reciprocal is rounded once, when the model is saved."""
    return at.builder.node("Div", [kernel, like(at, math.prod(window), kernel)])


@lru_cache(maxsize=16)
def _kernel(shape: tuple[int, ...], dtype: int, lead: tuple[int, ...], size: tuple[int, ...]) -> Tensor:
    kernel = np.zeros(shape, tensor_dtype_to_np_dtype(dtype))
    place = tuple(slice(a, a + n) for a, n in zip(lead, size, strict=True))
    for o in range(shape[0]):
        kernel[o, o % shape[1]][place] = 1
    return Tensor.of(kernel, dtype)


def depthwise_ones(at: Context, value: Value, window: Any) -> Value:
    """A depthwise kernel [C, 1, window...] that takes the mean over the window of each channel of `value`."""
    kind = at.type(value)
    size = kind.shape[1] if kind.shape is not None and len(kind.shape) > 2 else None
    if not isinstance(size, int):
        raise NoMatch(f"the channels of '{at.label(value)}' are not known")
    ones = at.builder.constant(np.ones((size, 1, *window), tensor_dtype_to_np_dtype(kind.dtype)), kind.dtype)
    return _mean(at, ones, window)


@lru_cache(maxsize=64)
def _own_block(factor: int, dims: int, dtype: int) -> Tensor:
    """Ones where a part of the output channels meets the same part of the input channels: [1, factor, 1, factor, 1, 1...]."""
    mask = np.eye(factor).reshape(1, factor, 1, factor, 1, *(1,) * dims)
    return Tensor.of(mask.astype(tensor_dtype_to_np_dtype(dtype)), dtype)


def merged_groups(at: Context, weight: Value, group: int, factor: int) -> Value:
    """`weight` [O, C/group, ...] for groups `factor` times as large, zero where two old groups would mix. Raises NoMatch."""
    o, c, *k = at.shape(weight)
    if factor < 2 or group % factor or group < factor:
        raise NoMatch(f"{group} groups cannot be merged by {factor}")
    new, per = group // factor, o // group
    spread = reshape(at, weight, (new, factor, per, 1, c, *k))
    held = at.builder.held(_own_block(factor, len(k), at.type(weight).dtype))
    return reshape(at, at.builder.node("Mul", [spread, held]), (o, c * factor, *k))


def split_groups(at: Context, weight: Value, group: int, factor: int) -> Value:
    """`weight` [O, C/group, ...] for groups `factor` times as many; what it mixes must be zero (see `block_diagonal`)."""
    o, c, *k = at.shape(weight)
    per = o // (group * factor)
    blocks = reshape(at, weight, (group, factor, per, factor, c // factor, *k))
    held = at.builder.held(_own_block(factor, len(k), at.type(weight).dtype))
    kept = at.builder.node("ReduceSum", [at.builder.node("Mul", [blocks, held])], {"axes": (3,), "keepdims": 0})
    return reshape(at, kept, (o, c // factor, *k))


def ahead(at: Context, weight: Value, pads: Any) -> Value:
    """A 1x1 `weight` as a kernel whose last tap it is, so that it reads as far ahead as a Pad's amounts cut off in front."""
    lead = [-p for p in pads[2 : len(pads) // 2]]
    return at.builder.node("Pad", [weight], {"pads": (0, 0, *lead, 0, 0, *(0 for _ in lead)), "mode": "constant"})


def window_ahead(at: Context, pads: Any) -> tuple[int, ...]:
    """The window that reads as far ahead as a Pad's amounts cut off in front."""
    return tuple(1 - p for p in pads[2 : len(pads) // 2])


def tail(at: Context, pads: Any) -> tuple[int, ...]:
    """What a Pad lays behind, as the padding of a convolution."""
    half = len(pads) // 2
    return (*(0 for _ in range(half - 2)), *pads[half + 2 :])
