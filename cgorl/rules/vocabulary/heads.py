"""Projections to query, key and value in one product, and their heads."""

from __future__ import annotations

from typing import Any

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.vocabulary.attributes import shape_of


def heads_of(at: Context, shape: Any, parts: Any, weight: Any) -> None:
    """`shape` [batch, places, P, heads, depth] cuts the columns of `weight` [C, P heads depth] into as many parts as there are."""
    columns = at.shape(weight)[1]
    if len(shape) != 5 or shape[2] != len(parts) or min(shape[2:]) < 1 or shape[2] * shape[3] * shape[4] != columns:
        raise NoMatch(f"shape {list(shape)} does not cut {columns} columns into {len(parts)} parts and heads")


def equal_parts(at: Context, weight: Value, parts: Any) -> tuple[int, ...]:
    """The sizes of as many equal parts of the columns of `weight` [C, N]."""
    return (at.shape(weight)[1] // len(parts),) * len(parts)


def without_third(at: Context, shape: Any) -> tuple[int, ...]:
    """A Reshape's target without its third number."""
    return (*shape[:2], *shape[3:])


def number_alone(at: Context, value: Any) -> None:
    """The constant is one number of at most one dim."""
    shape = at.shape(value)
    if shape not in ((), (1,)):
        raise NoMatch(f"'{at.label(value)}' {list(shape)} is not one number")


def single_first(at: Context, value: Any) -> None:
    """The first dim of the value is 1, and it has four."""
    kind = at.type(value)
    if kind.shape is None or len(kind.shape) != 4 or kind.shape[0] != 1:
        raise NoMatch(f"'{at.label(value)}' ({kind}) is not of four dims with a first of 1")


def shape_behind(at: Context, node: int) -> tuple[int, ...]:
    """Shape of a matched node's result without its first dim, as a Reshape target; one dim may be unknown. Raises NoMatch."""
    return shape_of(at, node)[1:]
