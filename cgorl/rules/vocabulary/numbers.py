"""Single numbers and bounds."""

from __future__ import annotations

from typing import Any

import onnx

from cgorl.rules.context import Context, NoMatch


def number(at: Context, value: Any, wanted: float) -> None:
    """The constant holds one number, `wanted` as nearly as its element type can say it."""
    array = at.contents(value)
    if array is None or array.size != 1 or abs(float(array.reshape(-1)[0]) - wanted) > _GRAIN.get(at.type(value).dtype, 0.0) * abs(wanted):
        raise NoMatch(f"'{at.label(value)}' is not the number {wanted}")


_GRAIN: dict[int, float] = {
    onnx.TensorProto.DOUBLE: 4e-16,
    onnx.TensorProto.FLOAT: 2e-7,
    onnx.TensorProto.FLOAT16: 1e-3,
    onnx.TensorProto.BFLOAT16: 8e-3,
}
"""Relative distance of neighbouring numbers of a type."""


def near(at: Context, value: Any, wanted: float) -> None:
    """The attribute is `wanted` to within float32's precision."""
    if value is None or abs(float(value) - wanted) > 2e-7 * abs(wanted):
        raise NoMatch(f"{value} is not {wanted}")


def not_above(at: Context, value: Any, limit: float) -> None:
    """The attribute is there and not above `limit`."""
    if value is None or value > limit:
        raise NoMatch(f"{value} is above {limit}")


def not_below(at: Context, value: Any, limit: float) -> None:
    """The attribute is absent (no bound), or not below `limit`."""
    if value is not None and value < limit:
        raise NoMatch(f"{value} is below {limit}")


def ordered(at: Context, low: Any, high: Any) -> None:
    """The lower bound is not above the upper; an absent one is no bound."""
    if low is not None and high is not None and low > high:
        raise NoMatch(f"bounds {low} and {high} are crossed")


def no_bound(at: Context, bound: Any) -> None:
    """There is no such bound."""
    if bound is not None:
        raise NoMatch(f"there is a bound, {bound}")
