"""Rows of a table chosen by number, and numbers that are marked in a row of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def indices(at: Context, value: Any) -> None:
    """The value is of int32 or int64, the types that a Gather counts in."""
    if at.type(value).dtype not in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        raise NoMatch(f"'{at.label(value)}' is neither int32 nor int64")


def counting(at: Context, value: Any) -> None:
    """The constant holds 0, 1, 2, ... along its last axis, and its other dims are 1."""
    array = at.contents(value)
    if array is None or not array.ndim or array.size != array.shape[-1] or not np.array_equal(array.reshape(-1), np.arange(array.size)):
        raise NoMatch(f"'{at.label(value)}' does not count from 0 along its last axis")


def single_last(at: Context, value: Any) -> None:
    """The last dim of the value is 1."""
    shape = at.type(value).shape
    if not shape or shape[-1] != 1:
        raise NoMatch(f"the last dim of '{at.label(value)}' is not known to be 1")


def no_longer(at: Context, value: Any, other: Any) -> None:
    """`value` has at most as many dims as `other`."""
    if at.rank(value) > at.rank(other):
        raise NoMatch(f"'{at.label(value)}' has more dims than '{at.label(other)}'")


def last_axis(at: Context, value: Value) -> tuple[int, ...]:
    """The last axis of a value, as the only one of a list."""
    return (at.rank(value) - 1,)


def framed(at: Context, table: Value) -> Value:
    """The rows of `table` [K,N] between a row of zeros in front and one behind: [K+2,N]."""
    kind = at.type(table)
    zeros = at.builder.constant(np.zeros((1, at.shape(table)[1]), tensor_dtype_to_np_dtype(kind.dtype)), kind.dtype)
    return at.builder.node("Concat", [zeros, table, zeros], {"axis": 0})
