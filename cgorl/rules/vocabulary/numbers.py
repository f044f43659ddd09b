"""Single numbers and bounds."""

from __future__ import annotations

from typing import Any

from cgorl.rules.context import Context, NoMatch


def number(at: Context, value: Any, wanted: float) -> None:
    """The constant holds one number, `wanted` to within float32's precision, and broadcasts without adding dims of size."""
    array = at.contents(value)
    if array is None or array.size != 1 or not _near(float(array.reshape(-1)[0]), wanted):
        raise NoMatch(f"'{at.label(value)}' is not the number {wanted}")


def near(at: Context, value: Any, wanted: float) -> None:
    """The attribute is `wanted` to within float32's precision."""
    if value is None or not _near(float(value), wanted):
        raise NoMatch(f"{value} is not {wanted}")


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 2e-7 * max(1.0, abs(b))


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
