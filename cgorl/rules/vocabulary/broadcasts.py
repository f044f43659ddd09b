"""How operands of different shape meet."""

from __future__ import annotations

from typing import Any

from cgorl.rules.context import Context, NoMatch
from cgorl.rules.vocabulary.types import rank


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


def narrower(at: Context, value: Any, other: Any) -> None:
    """`value` broadcast against `other` has the shape of `other`: it widens nothing."""
    a, b = at.shape(value), at.type(other)
    if b.shape is None or len(a) > len(b.shape):
        raise NoMatch(f"'{at.label(value)}' has more dims than '{at.label(other)}'")
    for size, there in zip(reversed(a), reversed(b.shape), strict=False):
        if size != 1 and size != there:
            raise NoMatch(f"'{at.label(value)}' {list(a)} may widen '{at.label(other)}' ({b})")


def same_but_channels(at: Context, a: Any, b: Any) -> None:
    """The values have one known type but for the size of axis 1, which both know."""
    _same_but(at, a, b, 1)


def alike_but_channels(at: Context, *values: Any) -> None:
    """All values have one known type but for the size of axis 1, which all know."""
    for v in values[1:]:
        _same_but(at, values[0], v, 1)


def alike_but_axis(at: Context, axis: int, *values: Any) -> None:
    """All values have one known type but for the size of `axis`, which all know."""
    for v in values[1:]:
        _same_but(at, values[0], v, axis)


def alike_but(at: Context, axis: int, a: Any, b: Any) -> None:
    """Both values have one known type but for the size of `axis`, which both know."""
    _same_but(at, a, b, axis)


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


def last_vector(at: Context, vector: Any, value: Any) -> None:
    """`vector` has one entry for each along the last axis of `value`."""
    kind = at.type(value)
    if kind.shape is None or at.type(vector).shape != kind.shape[-1:] or not isinstance(kind.shape[-1], int):
        raise NoMatch(f"'{at.label(vector)}' is no vector along the last axis of '{at.label(value)}'")


def vector_or_absent(at: Context, value: Any) -> None:
    """The optional operand is not there, or a vector."""
    if value is not None:
        rank(at, value, 1)


def same_channels(at: Context, value: Any, weight: Any) -> None:
    """A convolution with `weight` gives as many channels as `value` has."""
    kind, out = at.type(value), at.shape(weight)[0]
    if kind.shape is None or len(kind.shape) < 2 or kind.shape[1] != out:
        raise NoMatch(f"'{at.label(value)}' does not have {out} channels")
