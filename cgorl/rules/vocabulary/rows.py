"""Sums over rows as products with ones, in two stages: within groups of rows, then over the groups."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def rows_only(at: Context, axes: Any, value: Any) -> None:
    """The only axis is the one before the last of `value`."""
    if tuple(axes) != (at.rank(value) - 2,):
        raise NoMatch(f"axes {list(axes)} are not just the one before the last")


def ones_for(at: Context, count: int, value: Value) -> Value:
    """A row of `count` ones, [1,count], of the element type of `value`."""
    dtype = at.type(value).dtype
    return at.builder.constant(np.ones((1, count), tensor_dtype_to_np_dtype(dtype)), dtype)


def groups_of_rows(at: Context, axes: Any, value: Value) -> int:
    """Into how many groups the rows of `value` [..., K, N] fall: about as many as there are rows in one. Raises NoMatch."""
    shape = at.type(value).shape
    size = shape[axes[0]] if shape is not None else None
    if not isinstance(size, int) or size < 1:
        raise NoMatch(f"the size of '{at.label(value)}' along axis {axes[0]} is not known, or 0")
    return max(a for a in range(1, math.isqrt(size) + 1) if size % a == 0)


def rows_of_group(at: Context, axes: Any, value: Value) -> int:
    """How many rows a group has."""
    shape = at.type(value).shape
    groups = groups_of_rows(at, axes, value)
    assert shape is not None and isinstance(shape[axes[0]], int)
    return int(shape[axes[0]]) // groups


def grouped_rows(at: Context, axes: Any, value: Value) -> tuple[int, ...]:
    """A Reshape target for `value` [..., K, N] with its rows in groups: [..., groups, rows, N]."""
    return (*_before(at, value), groups_of_rows(at, axes, value), rows_of_group(at, axes, value), _columns(at, value))


def summed_groups(at: Context, axes: Any, value: Value) -> tuple[int, ...]:
    """A Reshape target for the sums of groups [..., groups, 1, N]: [..., groups, N]."""
    return (*_before(at, value), groups_of_rows(at, axes, value), _columns(at, value))


def _before(at: Context, value: Value) -> tuple[int, ...]:
    return (0,) * (at.rank(value) - 2)


def _columns(at: Context, value: Value) -> int:
    shape = at.type(value).shape
    assert shape is not None
    if shape[-1] == 0 or (not isinstance(shape[-1], int) and len(shape) > 2 and any(not isinstance(d, int) or d == 0 for d in shape[:-2])):
        raise NoMatch(f"the last dim of '{at.label(value)}' is not known")
    return shape[-1] if isinstance(shape[-1], int) else -1
