"""The named functions that compute parts of a rule's target: weights (as nodes on constants) and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def result(at: Context, node: int) -> Value:
    """The value that a matched node gives."""
    return Value(node)


def sqrt(at: Context, value: Value) -> Value:
    """The square root, element by element."""
    return at.builder.node("Sqrt", [value])


def outward(at: Context, vector: Value, weight: Value) -> Value:
    """`vector` [O] shaped [O,1,1,...] to scale `weight` [O, ...] by output channel."""
    return at.builder.node("Reshape", [vector], {"shape": (-1,) + (1,) * (at.rank(weight) - 1)})


def channels(at: Context, scale: Value, weight: Value) -> Value:
    """`scale`, which is one number or one a channel, as a vector [O] for `weight` [O, ...]."""
    return _vector(at, scale, at.shape(weight)[0])


def columns(at: Context, scale: Value, weight: Value, transposed: int) -> Value:
    """`scale`, which is one number or one a column, as a vector [N] for `weight` [K,N] ([N,K] if `transposed`)."""
    return _vector(at, scale, at.shape(weight)[0 if transposed else 1])


def _vector(at: Context, scale: Value, size: int) -> Value:
    flat = at.builder.node("Reshape", [scale], {"shape": (-1,)})
    if at.shape(flat) == (size,):
        return flat
    return at.builder.node("Expand", [flat], {"shape": (size,)})


def across(at: Context, vector: Value, transposed: int) -> Value:
    """`vector` [N] shaped to scale the columns of a weight [K,N], or the rows of [N,K] if `transposed`."""
    return at.builder.node("Reshape", [vector], {"shape": (-1, 1) if transposed else (1, -1)})


def matrix(at: Context, weight: Value) -> Value:
    """`weight` [O, ...] flattened to [O, rest]."""
    shape = at.shape(weight)
    return at.builder.node("Reshape", [weight], {"shape": (shape[0], int(np.prod(shape[1:])))})


def kernel_like(at: Context, flat: Value, weight: Value) -> Value:
    """`flat` [O, C*k] shaped as the kernel `weight` [?, C, k...]."""
    return at.builder.node("Reshape", [flat], {"shape": (at.shape(flat)[0], *at.shape(weight)[1:])})


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
    shape = at.shape(weight)
    kind = tensor_dtype_to_np_dtype(at.type(weight).dtype)
    kernel = np.zeros(shape, kind)
    place = tuple(p // d for p, d in zip(pads, dilations, strict=False))
    for o in range(shape[0]):
        kernel[(o, o % shape[1], *place)] = 1
    return at.builder.constant(kernel, at.type(weight).dtype)


def plus(at: Context, a: Any, b: Any) -> tuple[int, ...]:
    """Sums, number by number."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def times(at: Context, a: Any, b: Any) -> tuple[int, ...]:
    """Products, number by number."""
    return tuple(x * y for x, y in zip(a, b, strict=True))


def spatial(at: Context, pads: Any) -> tuple[int, ...]:
    """A Pad's amounts without those of batch and channels."""
    half = len(pads) // 2
    return tuple(pads[2:half]) + tuple(pads[half + 2 :])


def compose(at: Context, first: Any, then: Any) -> tuple[int, ...]:
    """The permutation that does `first`, `then` the other."""
    return tuple(first[k] for k in then)


def shape_of(at: Context, node: int) -> tuple[int, ...]:
    """Shape of a matched node's result as a Reshape target; one dim may be unknown. Raises NoMatch."""
    kind = at.type(Value(node))
    if kind.shape is None or sum(not isinstance(d, int) for d in kind.shape) > 1 or 0 in kind.shape:
        raise NoMatch(f"the shape of '{at.label(Value(node))}' ({kind}) is not known well enough")
    return tuple(d if isinstance(d, int) else -1 for d in kind.shape)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        result,
        sqrt,
        outward,
        channels,
        columns,
        across,
        matrix,
        kernel_like,
        enlarged,
        dirac,
        plus,
        times,
        spatial,
        compose,
        shape_of,
    )
}
