"""The named conditions that a rule may set; each raises NoMatch with its reason in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.taso_conditions import TASO_CONDITIONS

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


def different(at: Context, a: Any, b: Any) -> None:
    """The two attributes or values are not the same."""
    if a == b:
        raise NoMatch("both are the same")


def absent(at: Context, value: Any) -> None:
    """The optional operand is not there."""
    if value is not None:
        raise NoMatch(f"'{at.label(value)}' is there")


def zeros_or_absent(at: Context, numbers: Any, value: Any) -> None:
    """All numbers are 0, or the optional operand is not there."""
    if value is not None and any(numbers):
        raise NoMatch(f"{list(numbers)} is not all 0 and '{at.label(value)}' is there")


def number(at: Context, value: Any, wanted: float) -> None:
    """The constant holds one number, `wanted` to within float32's precision, and broadcasts without adding dims of size."""
    array = at.contents(value)
    if array is None or array.size != 1 or not _near(float(array.reshape(-1)[0]), wanted):
        raise NoMatch(f"'{at.label(value)}' is not the number {wanted}")


def near(at: Context, value: Any, wanted: float) -> None:
    """The attribute is `wanted` to within float32's precision."""
    if value is None or not _near(float(value), wanted):
        raise NoMatch(f"{value} is not {wanted}")


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 2e-7 * max(1.0, abs(b))


def not_above(at: Context, value: Any, limit: float) -> None:
    """The attribute is there and not above `limit`."""
    if value is None or value > limit:
        raise NoMatch(f"{value} is above {limit}")


def not_below(at: Context, value: Any, limit: float) -> None:
    """The attribute is absent (no bound), or not below `limit`."""
    if value is not None and value < limit:
        raise NoMatch(f"{value} is below {limit}")


def narrower(at: Context, value: Any, other: Any) -> None:
    """`value` broadcast against `other` has the shape of `other`: it widens nothing."""
    a, b = at.shape(value), at.type(other)
    if b.shape is None or len(a) > len(b.shape):
        raise NoMatch(f"'{at.label(value)}' has more dims than '{at.label(other)}'")
    for size, there in zip(reversed(a), reversed(b.shape), strict=False):
        if size != 1 and size != there:
            raise NoMatch(f"'{at.label(value)}' {list(a)} may widen '{at.label(other)}' ({b})")


def contains_window(at: Context, k1: Any, p1: Any, k2: Any, p2: Any) -> None:
    """Window `k1` padded by `p1` reaches as far as `k2` padded by `p2`, or further, on every side; and further on one."""
    n = len(k1)
    steps = [(p1[i] - p2[i], p1[n + i] - p2[n + i], k1[i] - k2[i]) for i in range(n)]
    if any(a < 0 or b < 0 or a + b != k for a, b, k in steps) or not any(k for _, _, k in steps):
        raise NoMatch(f"window {list(k1)} with pads {list(p1)} does not contain window {list(k2)} with pads {list(p2)}")


def below(at: Context, pads: Any, window: Any) -> None:
    """Every pad is smaller than the window."""
    n = len(window)
    if any(pads[i] >= window[i] or pads[n + i] >= window[i] for i in range(n)):
        raise NoMatch(f"pads {list(pads)} reach past window {list(window)}")


def counts_padding(at: Context, flag: int, pads: Any) -> None:
    """An average pool divides by its full window everywhere: it counts padding, or has none."""
    if not flag and any(pads):
        raise NoMatch("the average pool does not count its padding")


def keeps_constants(at: Context, flag: int, pads: Any, bias: Any) -> None:
    """An average pool leaves a constant as it is (it does not count padding, or has none), or there is no bias."""
    if flag and any(pads) and bias is not None:
        raise NoMatch("the average pool counts its padding, and there is a bias")


def lossless_cast(at: Context, value: Any, to: int) -> None:
    """Every number of the value's element type is one of `to`'s as well."""
    if to not in _CONTAINED.get(at.type(value).dtype, ()):
        raise NoMatch(f"a cast of {at.type(value)} to type {to} may lose something")


def covering(at: Context, lengths: Any, axis: int, *values: Any) -> None:
    """The lengths are the values' sizes along `axis`, one by one."""
    found = [at.type(v).shape for v in values]
    sizes = [None if s is None else s[axis] for s in found]
    if list(lengths) != sizes:
        raise NoMatch(f"lengths {list(lengths)} are not the sizes {sizes}")


def equal_shapes(at: Context, a: Any, b: Any) -> None:
    """Both values have one known shape."""
    if at.shape(a) != at.shape(b):
        raise NoMatch(f"'{at.label(a)}' and '{at.label(b)}' have different shapes")


def swaps_last_two(at: Context, perm: Any) -> None:
    """The permutation exchanges the last two axes and moves no other."""
    n = len(perm)
    if n < 2 or list(perm) != [*range(n - 2), n - 1, n - 2]:
        raise NoMatch(f"permutation {list(perm)} does not just exchange the last two axes")


def not_axis(at: Context, axis: int, value: Any, wanted: int) -> None:
    """The axis is not the one that is `wanted` places before the end of `value`."""
    if axis == at.rank(value) - wanted:
        raise NoMatch(f"axis {axis} is the one that may not be")


def is_axis(at: Context, axis: int, value: Any, wanted: int) -> None:
    """The axis is the one that is `wanted` places before the end of `value`."""
    if axis != at.rank(value) - wanted:
        raise NoMatch(f"axis {axis} is not the one {wanted} before the end")


def divides(at: Context, number: int, factor: int) -> None:
    """`factor` divides the number."""
    if number < factor or number % factor:
        raise NoMatch(f"{factor} does not divide {number}")


def block_diagonal(at: Context, weight: Any, group: int, factor: int) -> None:
    """A constant weight [O, C/group, ...] mixes nothing between the parts of each group cut into `factor`."""
    o, c, *_ = at.shape(weight)
    per = o // group
    if c % factor or per % factor or c < factor or o == 0:
        raise NoMatch(f"{group} groups of {c} channels cannot be cut by {factor}")
    held = at.builder.tensor(weight)
    if held is None or math.prod(held.shape) > 1 << 22:
        raise NoMatch(f"the contents of '{at.label(weight)}' are not known, or more than 4 million")
    fact = f"block_diagonal {group} {factor}"
    if fact not in held.memo:
        blocks = held.array().reshape(group, factor, per // factor, factor, c // factor, -1)
        held.memo[fact] = all(not blocks[:, a, :, b].any() for a in range(factor) for b in range(factor) if a != b)
    if not held.memo[fact]:
        raise NoMatch(f"'{at.label(weight)}' mixes channels between its parts")


def only_ones_move(at: Context, value: Any, perm: Any) -> None:
    """The permutation leaves the order of all axes but those of size 1."""
    kind = at.type(value)
    kept = [p for p in perm if kind.shape is None or kind.shape[p] != 1]
    if kept != sorted(kept):
        raise NoMatch(f"permutation {list(perm)} moves an axis that is not of size 1")


def moves(at: Context, perm: Any) -> None:
    """The permutation is not the identity."""
    if list(perm) == list(range(len(perm))):
        raise NoMatch(f"permutation {list(perm)} moves nothing")


def not_negative(at: Context, numbers: Any) -> None:
    """No number is below 0."""
    if any(n < 0 for n in numbers):
        raise NoMatch(f"{list(numbers)} holds a negative number")


def all_rank(at: Context, wanted: int, *values: Any) -> None:
    """Every value has so many dims."""
    for v in values:
        rank(at, v, wanted)


def all_rank_at_least(at: Context, wanted: int, *values: Any) -> None:
    """Every value has at least so many dims."""
    for v in values:
        rank_at_least(at, v, wanted)


def not_axis_of(at: Context, axis: int, wanted: int, *values: Any) -> None:
    """The axis is not the one that is `wanted` places before the end of any of the values."""
    for v in values:
        not_axis(at, axis, v, wanted)


def same_rank(at: Context, a: Any, b: Any) -> None:
    """Both values have as many dims."""
    if at.rank(a) != at.rank(b):
        raise NoMatch(f"'{at.label(a)}' and '{at.label(b)}' have different ranks")


def same_but_channels(at: Context, a: Any, b: Any) -> None:
    """The values have one known type but for the size of axis 1, which both know."""
    _same_but(at, a, b, 1)


def same_but_last(at: Context, a: Any, b: Any) -> None:
    """The values have one known type but for the size of the last axis, which both know."""
    _same_but(at, a, b, at.rank(a) - 1)


def _same_but(at: Context, a: Any, b: Any, axis: int) -> None:
    x, y = at.type(a), at.type(b)
    if x.dtype != y.dtype or x.shape is None or y.shape is None or len(x.shape) != len(y.shape) or len(x.shape) <= axis:
        raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) differ")
    for k, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)):
        if m is None or n is None or (k == axis and not (isinstance(m, int) and isinstance(n, int))) or (k != axis and m != n):
            raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) differ in more than axis {axis}")


def equal_lengths(at: Context, a: Any, b: Any, axis: int) -> None:
    """Both values are as long along `axis`."""
    if at.shape(a)[axis] != at.shape(b)[axis]:
        raise NoMatch(f"'{at.label(a)}' and '{at.label(b)}' differ along axis {axis}")


def vector_or_absent(at: Context, value: Any) -> None:
    """The optional operand is not there, or a vector."""
    if value is not None:
        rank(at, value, 1)


def one_axis(at: Context, axes: Any, axis: int) -> None:
    """The only one of `axes` is `axis`."""
    if tuple(axes) != (axis,):
        raise NoMatch(f"axes {list(axes)} are not just {axis}")


def one_range(at: Context, start: Any, middle: Any, end: Any) -> None:
    """From `start` over `middle` to `end`, none negative, none before the one before it."""
    if not all(0 <= a <= m <= e for a, m, e in zip(start, middle, end, strict=True)):
        raise NoMatch(f"{list(start)}, {list(middle)}, {list(end)} do not ascend from 0")


def is_length(at: Context, numbers: Any, axis: int, value: Any) -> None:
    """The only number is the size of `value` along `axis`."""
    kind = at.type(value)
    if kind.shape is None or tuple(numbers) != (kind.shape[axis],):
        raise NoMatch(f"{list(numbers)} is not the size of '{at.label(value)}' along axis {axis}")


def opset_from(at: Context, version: int) -> None:
    """The model's opset is `version` or newer."""
    if at.graph.opset < version:
        raise NoMatch(f"opset {at.graph.opset} is older than {version}")


def running(at: Context, value: Any) -> None:
    """The value is computed at run time: no constant."""
    if at.builder.is_constant(value):
        raise NoMatch(f"'{at.label(value)}' is constant")


def ordered(at: Context, low: Any, high: Any) -> None:
    """The lower bound is not above the upper; an absent one is no bound."""
    if low is not None and high is not None and low > high:
        raise NoMatch(f"bounds {low} and {high} are crossed")


def no_bound(at: Context, bound: Any) -> None:
    """There is no such bound."""
    if bound is not None:
        raise NoMatch(f"there is a bound, {bound}")


def last_only(at: Context, axes: Any, value: Any) -> None:
    """The only axis is the last one of `value`."""
    if tuple(axes) != (at.rank(value) - 1,):
        raise NoMatch(f"axes {list(axes)} are not just the last")


def last_vector(at: Context, vector: Any, value: Any) -> None:
    """`vector` has one entry for each along the last axis of `value`."""
    kind = at.type(value)
    if kind.shape is None or at.type(vector).shape != kind.shape[-1:] or not isinstance(kind.shape[-1], int):
        raise NoMatch(f"'{at.label(vector)}' is no vector along the last axis of '{at.label(value)}'")


_T = onnx.TensorProto
_CONTAINED: Mapping[int, frozenset[int]] = {
    _T.BOOL: frozenset({_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.INT64, _T.FLOAT16, _T.FLOAT, _T.DOUBLE}),
    _T.INT8: frozenset({_T.INT16, _T.INT32, _T.INT64, _T.FLOAT16, _T.FLOAT, _T.DOUBLE}),
    _T.UINT8: frozenset({_T.INT16, _T.UINT16, _T.INT32, _T.UINT32, _T.INT64, _T.FLOAT16, _T.FLOAT, _T.DOUBLE}),
    _T.INT16: frozenset({_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE}),
    _T.UINT16: frozenset({_T.INT32, _T.UINT32, _T.INT64, _T.FLOAT, _T.DOUBLE}),
    _T.INT32: frozenset({_T.INT64, _T.DOUBLE}),
    _T.UINT32: frozenset({_T.INT64, _T.UINT64, _T.DOUBLE}),
    _T.FLOAT16: frozenset({_T.FLOAT, _T.DOUBLE}),
    _T.BFLOAT16: frozenset({_T.FLOAT, _T.DOUBLE}),
    _T.FLOAT: frozenset({_T.DOUBLE}),
}


CONDITIONS: Mapping[str, Callable[..., None]] = {
    **TASO_CONDITIONS,
    **{
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
            different,
            absent,
            zeros_or_absent,
            number,
            near,
            not_above,
            not_below,
            narrower,
            contains_window,
            below,
            counts_padding,
            keeps_constants,
            lossless_cast,
            covering,
            equal_shapes,
            swaps_last_two,
            not_axis,
            is_axis,
            divides,
            block_diagonal,
            only_ones_move,
            moves,
            not_negative,
            all_rank,
            all_rank_at_least,
            not_axis_of,
            same_rank,
            same_but_channels,
            same_but_last,
            equal_lengths,
            vector_or_absent,
            one_axis,
            one_range,
            is_length,
            opset_from,
            running,
            ordered,
            no_bound,
            last_only,
            last_vector,
        )
    },
}
