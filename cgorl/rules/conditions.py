"""The named conditions that a rule may set; each raises NoMatch with its reason in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch

_FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16})


def constant(at: Context, *values: Any) -> None:
    """Each value rests on initializers alone (or is absent)."""
    for v in values:
        if isinstance(v, Value) and not at.builder.is_constant(v):
            raise NoMatch(f"'{at.label(v)}' is not constant")


def floating(at: Context, *values: Any) -> None:
    """Each value is of a floating-point type (laws of real numbers do not hold for integers that wrap)."""
    for v in values:
        if at.type(v).dtype not in _FLOATS:
            raise NoMatch(f"'{at.label(v)}' is not floating-point")


def same_dtype(at: Context, *values: Any) -> None:
    """All values have one element type."""
    kinds = {at.type(v).dtype for v in values if v is not None}
    if len(kinds) > 1:
        raise NoMatch("operands have different element types")


def same_type(at: Context, a: Any, b: Any) -> None:
    """Both values have one type, every dim known or of one symbol, so that nothing is broadcast."""
    x, y = at.type(a), at.type(b)
    if x != y or x.shape is None or any(d is None for d in x.shape):
        raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) are not of one known type")


def rank(at: Context, value: Any, wanted: int) -> None:
    """The value has so many dims."""
    if at.rank(value) != wanted:
        raise NoMatch(f"'{at.label(value)}' has rank {at.rank(value)}, not {wanted}")


def rank_at_least(at: Context, value: Any, wanted: int) -> None:
    """The value has at least so many dims."""
    if at.rank(value) < wanted:
        raise NoMatch(f"'{at.label(value)}' has rank {at.rank(value)}, below {wanted}")


def channelwise(at: Context, scale: Any, value: Any) -> None:
    """Broadcast over `value`, `scale` differs along the channel axis (1) at most, and widens nothing."""
    _along(at, scale, value, 1)


def columnwise(at: Context, scale: Any, value: Any) -> None:
    """Broadcast over `value`, `scale` differs along the last axis at most, and widens nothing."""
    _along(at, scale, value, at.rank(value) - 1)


def _along(at: Context, scale: Any, value: Any, axis: int) -> None:
    shape, kind = at.shape(scale), at.type(value)
    total = at.rank(value)
    if len(shape) > total:
        raise NoMatch(f"'{at.label(scale)}' has more dims than '{at.label(value)}'")
    assert kind.shape is not None
    for k, size in enumerate(shape, total - len(shape)):
        if size != 1 and (k != axis or kind.shape[k] != size):
            raise NoMatch(f"'{at.label(scale)}' {list(shape)} does not broadcast along axis {axis} of '{at.label(value)}' ({kind}) alone")


def zeros(at: Context, numbers: Any) -> None:
    """All numbers are 0."""
    if any(numbers):
        raise NoMatch(f"{list(numbers)} is not all 0")


def ones(at: Context, numbers: Any) -> None:
    """All numbers are 1."""
    if any(n != 1 for n in numbers):
        raise NoMatch(f"{list(numbers)} is not all 1")


def spatial_only(at: Context, pads: Any) -> None:
    """A Pad's amounts leave batch and channels alone and cut nothing off."""
    half = len(pads) // 2
    if any(pads[:2]) or any(pads[half : half + 2]) or any(p < 0 for p in pads):
        raise NoMatch(f"pads {list(pads)} are not spatial and non-negative")


def identity(at: Context, perm: Any) -> None:
    """The permutation moves nothing."""
    if list(perm) != list(range(len(perm))):
        raise NoMatch(f"permutation {list(perm)} is not the identity")


def covers(at: Context, k1: Any, p1: Any, k2: Any, p2: Any, dilations: Any) -> None:
    """Window `k1` padded by `p1` holds window `k2` padded by `p2` at every place, tap on tap."""
    n = len(k1)
    for i, d in enumerate(dilations):
        lead, tail = p1[i] - p2[i], p1[n + i] - p2[n + i]
        if lead < 0 or tail < 0 or lead % d or tail % d or k1[i] != k2[i] + (lead + tail) // d:
            raise NoMatch(f"kernel {list(k1)} with pads {list(p1)} does not hold kernel {list(k2)} with pads {list(p2)}")


def holds_centre(at: Context, kernel: Any, pads: Any, strides: Any, dilations: Any) -> None:
    """One tap of the window reads the very place that the result stands at, and the size stays."""
    n = len(kernel)
    for i in range(n):
        if strides[i] != 1 or pads[i] % dilations[i] or pads[i] + pads[n + i] != (kernel[i] - 1) * dilations[i]:
            raise NoMatch(f"kernel {list(kernel)} with pads {list(pads)} and strides {list(strides)} has no tap on its own place")


def same_channels(at: Context, value: Any, weight: Any) -> None:
    """A convolution with `weight` gives as many channels as `value` has."""
    kind, out = at.type(value), at.shape(weight)[0]
    if kind.shape is None or len(kind.shape) < 2 or kind.shape[1] != out:
        raise NoMatch(f"'{at.label(value)}' does not have {out} channels")


CONDITIONS: Mapping[str, Callable[..., None]] = {
    f.__name__: f
    for f in (
        constant,
        floating,
        same_dtype,
        same_type,
        rank,
        rank_at_least,
        channelwise,
        columnwise,
        zeros,
        ones,
        spatial_only,
        identity,
        covers,
        holds_centre,
        same_channels,
    )
}
