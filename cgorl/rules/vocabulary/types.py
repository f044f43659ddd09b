"""What values are: constants, element types, ranks, shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch

_FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16})
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


def constant(at: Context, *values: Any) -> None:
    """Each value rests on initializers alone (or is absent)."""
    for v in values:
        if isinstance(v, Value) and not at.builder.is_constant(v):
            raise NoMatch(f"'{at.label(v)}' is not constant")


def running(at: Context, value: Any) -> None:
    """The value is computed at run time: no constant."""
    if at.builder.is_constant(value):
        raise NoMatch(f"'{at.label(value)}' is constant")


def floating(at: Context, *values: Any) -> None:
    """Each value is of a floating-point type (laws of real numbers do not hold for integers that wrap)."""
    for v in values:
        if at.type(v).dtype not in _FLOATS:
            raise NoMatch(f"'{at.label(v)}' is not floating-point")


def at_most_single(at: Context, value: Any) -> None:
    """The value is of float32 or a narrower floating-point type."""
    floating(at, value)
    if at.type(value).dtype == onnx.TensorProto.DOUBLE:
        raise NoMatch(f"'{at.label(value)}' is double, for which the target's constants are too coarse or a runtime lacks its operator")


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


def equal_shapes(at: Context, a: Any, b: Any) -> None:
    """Both values have one known shape."""
    if at.shape(a) != at.shape(b):
        raise NoMatch(f"'{at.label(a)}' and '{at.label(b)}' have different shapes")


def rank(at: Context, value: Any, wanted: int) -> None:
    """The value has so many dims."""
    if at.rank(value) != wanted:
        raise NoMatch(f"'{at.label(value)}' has rank {at.rank(value)}, not {wanted}")


def rank_at_least(at: Context, value: Any, wanted: int) -> None:
    """The value has at least so many dims."""
    if at.rank(value) < wanted:
        raise NoMatch(f"'{at.label(value)}' has rank {at.rank(value)}, below {wanted}")


def all_rank(at: Context, wanted: int, *values: Any) -> None:
    """Every value has so many dims."""
    for v in values:
        rank(at, v, wanted)


def all_rank_at_least(at: Context, wanted: int, *values: Any) -> None:
    """Every value has at least so many dims."""
    for v in values:
        rank_at_least(at, v, wanted)


def same_rank(at: Context, a: Any, b: Any) -> None:
    """Both values have as many dims."""
    if at.rank(a) != at.rank(b):
        raise NoMatch(f"'{at.label(a)}' and '{at.label(b)}' have different ranks")


def different(at: Context, a: Any, b: Any) -> None:
    """The two attributes or values are not the same."""
    if a == b:
        raise NoMatch("both are the same")


def opset_from(at: Context, version: int) -> None:
    """The model's opset is `version` or newer."""
    if at.opset < version:
        raise NoMatch(f"opset {at.opset} is older than {version}")


def lossless_cast(at: Context, value: Any, to: int) -> None:
    """Every number of the value's element type is one of `to`'s as well."""
    if to not in _CONTAINED.get(at.type(value).dtype, ()):
        raise NoMatch(f"a cast of {at.type(value)} to type {to} may lose something")
