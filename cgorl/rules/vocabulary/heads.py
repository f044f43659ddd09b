"""Projections to query, key and value in one product, and their heads."""

from __future__ import annotations

from typing import Any

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


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
