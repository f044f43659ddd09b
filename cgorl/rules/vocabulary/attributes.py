"""Attributes of a rule's target, computed from those of its source."""

from __future__ import annotations

import math
from typing import Any

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def result(at: Context, node: int) -> Value:
    """The value that a matched node gives."""
    return Value(node)


def plus(at: Context, a: Any, b: Any) -> tuple[int, ...]:
    """Sums, number by number."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def minus(at: Context, a: Any, b: Any) -> tuple[int, ...]:
    """Differences, number by number."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def times(at: Context, a: Any, b: Any) -> tuple[int, ...]:
    """Products, number by number."""
    return tuple(x * y for x, y in zip(a, b, strict=True))


def rest_of_window(at: Context, large: Any, small: Any) -> tuple[int, ...]:
    """The window that does the rest of `large` after `small`: large - small + 1."""
    return tuple(x - y + 1 for x, y in zip(large, small, strict=True))


def window_of_two(at: Context, first: Any, then: Any) -> tuple[int, ...]:
    """The window of two one after another: first + then - 1."""
    return tuple(x + y - 1 for x, y in zip(first, then, strict=True))


def quotient(at: Context, a: int, b: int) -> int:
    """`a / b`. Raises NoMatch if it is not whole, or not below `a`."""
    if b < 2 or a % b:
        raise NoMatch(f"{a} cannot be divided by {b}")
    return a // b


def spatial(at: Context, pads: Any) -> tuple[int, ...]:
    """A Pad's amounts without those of batch and channels."""
    half = len(pads) // 2
    return tuple(pads[2:half]) + tuple(pads[half + 2 :])


def compose(at: Context, first: Any, then: Any) -> tuple[int, ...]:
    """The permutation that does `first`, `then` the other."""
    return tuple(first[k] for k in then)


def inverse(at: Context, perm: Any) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    return tuple(sorted(range(len(perm)), key=lambda k: perm[k]))


def moved(at: Context, axes: Any, perm: Any) -> Any:
    """The axis or axes before a transposition by `perm` that stand at `axes` after it."""
    return perm[axes] if isinstance(axes, int) else tuple(sorted(perm[a] for a in axes))


def shape_of(at: Context, node: int | Value) -> tuple[int, ...]:
    """Shape of a matched node's result (or a value) as a Reshape target; one dim may be unknown. Raises NoMatch."""
    value = node if isinstance(node, Value) else Value(node)
    kind = at.type(value)
    if kind.shape is None or sum(not isinstance(d, int) for d in kind.shape) > 1 or 0 in kind.shape:
        raise NoMatch(f"the shape of '{at.label(value)}' ({kind}) is not known well enough")
    return tuple(d if isinstance(d, int) else -1 for d in kind.shape)


def last(at: Context, value: Value) -> int:
    """The last axis of a value."""
    return at.rank(value) - 1


def sizes(at: Context, axis: int, *values: Value) -> tuple[int, ...]:
    """Sizes of the values along `axis`. Raises NoMatch where one is not known."""
    found = []
    for v in values:
        kind = at.type(v)
        d = kind.shape[axis] if kind.shape is not None and -len(kind.shape) <= axis < len(kind.shape) else None
        if not isinstance(d, int):
            raise NoMatch(f"the size of '{at.label(v)}' along axis {axis} is not known")
        found.append(d)
    return tuple(found)


def size(at: Context, axis: int, value: Value) -> int:
    """Size of a value along `axis`."""
    return sizes(at, axis, value)[0]


def other_side(at: Context, transposed: int) -> int:
    """The axis of a Gemm's weight along which its columns lie: 1, or 0 where it is stored transposed."""
    return 0 if transposed else 1


def flipped(at: Context, bit: int) -> int:
    """The other of 0 and 1."""
    return 1 - bit


def _number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def larger(at: Context, a: Any, b: Any) -> float | None:
    """The larger of two bounds, of which an absent one is no bound from below."""
    found = max(_number(a, -math.inf), _number(b, -math.inf))
    return None if found == -math.inf else found


def low_of(at: Context, bound: Any, low: Any, high: Any) -> float | None:
    """The lower bound of a clip to [low, high] of what is at least `bound`."""
    found = min(max(_number(bound, -math.inf), _number(low, -math.inf)), _number(high, math.inf))
    return None if found == -math.inf else found


def high_of(at: Context, bound: Any, low: Any, high: Any) -> float | None:
    """The upper bound of a clip to [low, high] of what is at most `bound`."""
    found = min(max(_number(bound, math.inf), _number(low, -math.inf)), _number(high, math.inf))
    return None if found == math.inf else found


def product(at: Context, a: int, b: int) -> int:
    """The product of two numbers."""
    return a * b


def grid(at: Context, value: Value) -> tuple[int, ...]:
    """A Reshape target that joins the places of [N, C, places...] to one axis. Raises NoMatch."""
    shape = at.type(value).shape
    if shape is None or len(shape) < 3:
        raise NoMatch(f"'{at.label(value)}' has no known places")
    batch, channels, *places = shape
    if not isinstance(channels, int):
        raise NoMatch(f"the channels of '{at.label(value)}' are not known")
    known = [d for d in places if isinstance(d, int)]
    if all(isinstance(d, int) for d in (batch, *places)):
        return (int(batch), channels, math.prod(known))  # type: ignore[arg-type]
    return (batch if isinstance(batch, int) else 0, channels, math.prod(known) if len(known) == len(places) else -1)


def inner_end(at: Context, start: Any, end: Any, length: Any) -> tuple[int, ...]:
    """Where a slice up to `length` of the slice from `start` to `end` ends."""
    return tuple(min(e, a + n) for a, e, n in zip(start, end, length, strict=True))


def number_in(at: Context, value: Value) -> float:
    """The one number that a constant holds. Raises NoMatch."""
    array = at.contents(value)
    if array is None or array.size != 1:
        raise NoMatch(f"'{at.label(value)}' is not one known number")
    return float(array.reshape(-1)[0])


def groups(at: Context, value: Value, weight: Value) -> int:
    """In how many groups a convolution of `value` by `weight` [O, C/groups, ...] works. Raises NoMatch if in no whole number."""
    channels, (out, inner) = size(at, 1, value), at.shape(weight)[:2]
    if inner == 0 or channels % inner or channels == 0 or out % (channels // inner):
        raise NoMatch(f"{channels} channels and a weight of {[out, inner]} make no whole number of groups")
    return channels // inner


def one_before(at: Context, numbers: Any) -> tuple[int, ...]:
    """A window's numbers with a 1 in front, for an axis of size 1."""
    return (1, *numbers)


def zeros_before(at: Context, pads: Any) -> tuple[int, ...]:
    """A window's pads with none for an axis in front."""
    half = len(pads) // 2
    return (0, *pads[:half], 0, *pads[half:])
