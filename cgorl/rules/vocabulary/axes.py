"""Axes, permutations and ranges."""

from __future__ import annotations

from typing import Any

from cgorl.rules.context import Context, NoMatch


def identity(at: Context, perm: Any) -> None:
    """The permutation moves nothing."""
    if list(perm) != list(range(len(perm))):
        raise NoMatch(f"permutation {list(perm)} is not the identity")


def moves(at: Context, perm: Any) -> None:
    """The permutation is not the identity."""
    if list(perm) == list(range(len(perm))):
        raise NoMatch(f"permutation {list(perm)} moves nothing")


def swaps_last_two(at: Context, perm: Any) -> None:
    """The permutation exchanges the last two axes and moves no other."""
    n = len(perm)
    if n < 2 or list(perm) != [*range(n - 2), n - 1, n - 2]:
        raise NoMatch(f"permutation {list(perm)} does not just exchange the last two axes")


def only_ones_move(at: Context, value: Any, perm: Any) -> None:
    """The permutation leaves the order of all axes but those of size 1."""
    kind = at.type(value)
    kept = [p for p in perm if kind.shape is None or kind.shape[p] != 1]
    if kept != sorted(kept):
        raise NoMatch(f"permutation {list(perm)} moves an axis that is not of size 1")


def not_axis(at: Context, axis: int, value: Any, wanted: int) -> None:
    """The axis is not the one that is `wanted` places before the end of `value`."""
    if axis == at.rank(value) - wanted:
        raise NoMatch(f"axis {axis} is the one that may not be")


def is_axis(at: Context, axis: int, value: Any, wanted: int) -> None:
    """The axis is the one that is `wanted` places before the end of `value`."""
    if axis != at.rank(value) - wanted:
        raise NoMatch(f"axis {axis} is not the one {wanted} before the end")


def not_axis_of(at: Context, axis: int, wanted: int, *values: Any) -> None:
    """The axis is not the one that is `wanted` places before the end of any of the values."""
    for v in values:
        not_axis(at, axis, v, wanted)


def last_only(at: Context, axes: Any, value: Any) -> None:
    """The only axis is the last one of `value`."""
    if tuple(axes) != (at.rank(value) - 1,):
        raise NoMatch(f"axes {list(axes)} are not just the last")


def one_axis(at: Context, axes: Any, axis: int) -> None:
    """The only one of `axes` is `axis`."""
    if tuple(axes) != (axis,):
        raise NoMatch(f"axes {list(axes)} are not just {axis}")


def single_axes(at: Context, axes: Any, value: Any) -> None:
    """The value is of size 1 along each of the axes, and there is one."""
    kind = at.type(value)
    if not axes or kind.shape is None or any(kind.shape[a] != 1 for a in axes):
        raise NoMatch(f"'{at.label(value)}' ({kind}) is not known to be of size 1 along axes {list(axes)}")


def one_range(at: Context, start: Any, middle: Any, end: Any) -> None:
    """From `start` over `middle` to `end`, none negative, none before the one before it."""
    if not all(0 <= a <= m <= e for a, m, e in zip(start, middle, end, strict=True)):
        raise NoMatch(f"{list(start)}, {list(middle)}, {list(end)} do not ascend from 0")


def is_length(at: Context, numbers: Any, axis: int, value: Any) -> None:
    """The only number is the size of `value` along `axis`."""
    kind = at.type(value)
    if kind.shape is None or tuple(numbers) != (kind.shape[axis],):
        raise NoMatch(f"{list(numbers)} is not the size of '{at.label(value)}' along axis {axis}")


def covering(at: Context, lengths: Any, axis: int, *values: Any) -> None:
    """The lengths are the values' sizes along `axis`, one by one."""
    found = [at.type(v).shape for v in values]
    sizes = [None if s is None else s[axis] for s in found]
    if list(lengths) != sizes:
        raise NoMatch(f"lengths {list(lengths)} are not the sizes {sizes}")


def not_negative(at: Context, numbers: Any) -> None:
    """No number is below 0."""
    if any(n < 0 for n in numbers):
        raise NoMatch(f"{list(numbers)} holds a negative number")
