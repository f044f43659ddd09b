"""Channels added to weights and maps so that they fill the blocks in which a runtime keeps them."""

from __future__ import annotations

from typing import Any

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def lacking(at: Context, number: int, block: int) -> int:
    """How much `number` lacks to a multiple of `block`. Raises NoMatch if nothing."""
    if number % block == 0:
        raise NoMatch(f"{number} is a multiple of {block}")
    return -number % block


def raised(at: Context, number: int, by: int) -> int:
    """The sum of two numbers."""
    return number + by


def widened(at: Context, weight: Value | None, axis: int, by: int) -> Value | None:
    """A constant with `by` zeros more at the end of `axis`; absent if it is."""
    if weight is None:
        return None
    rank = at.rank(weight)
    pads = [0] * (2 * rank)
    pads[rank + axis] = by
    return at.builder.node("Pad", [weight], {"pads": tuple(pads), "mode": "constant"})


def channels_behind(at: Context, value: Value, by: int) -> tuple[int, ...]:
    """The amounts of a Pad that lays `by` channels (axis 1) behind those of `value`."""
    rank = at.rank(value)
    return tuple(by if k == rank + 1 else 0 for k in range(2 * rank))


def behind(at: Context, pads: Any) -> int:
    """How many channels (axis 1) a Pad lays behind its operand's."""
    return int(pads[len(pads) // 2 + 1])


def channels_only(at: Context, pads: Any) -> None:
    """A Pad's amounts add channels (axis 1) behind, and nothing else."""
    half = len(pads) // 2
    if half < 3 or pads[half + 1] < 1 or any(p for k, p in enumerate(pads) if k != half + 1):
        raise NoMatch(f"pads {list(pads)} do not just add channels behind")


def depthwise(at: Context, weight: Any, group: int) -> None:
    """A convolution by `weight` [O, C/group, ...] takes each channel by itself to one of its own."""
    shape = at.shape(weight)
    if group < 2 or shape[:2] != (group, 1):
        raise NoMatch(f"a weight {list(shape)} in {group} groups is not depthwise")
