"""Checked parameters of zoo graphs: each function returns the clean value or raises a `ZooError` of one sentence."""

from collections.abc import Iterable, Sequence
from numbers import Integral, Real


class ZooError(ValueError):
    """Says in one sentence which name, parameter or value the zoo cannot use, and what it would accept."""


def whole(name: str, value: object, minimum: int = 1) -> int:
    """Returns the value as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ZooError(f"{name} must be a whole number of at least {minimum}, not {value!r}.")
    return int(value)


def dimension(name: str, value: object) -> int | str:
    """Returns the value as a dim: an int of at least 1, or a symbol (any identifier) for a dynamic one."""
    if isinstance(value, str):
        if not value.isidentifier():
            raise ZooError(f"{name} must be a whole number of at least 1 or a symbol such as '{name}', not {value!r}.")
        return value
    return whole(name, value)


def multiplier(name: str, value: object) -> float:
    """Returns the value as a float above 0 and at most 4 (weights grow with its square; a protobuf ends at 2 GB)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 4:
        raise ZooError(f"{name} must be a number above 0 and at most 4, not {value!r}.")
    return float(value)


def choice(name: str, value: object, options: Sequence[str]) -> str:
    """Returns the value, which must be one of the options."""
    if not isinstance(value, str) or value not in options:
        raise ZooError(f"{name} must be {' or '.join(map(repr, options))}, not {value!r}.")
    return value


def stages(name: str, value: object, count: int) -> tuple[int, ...]:
    """Returns the number of blocks in each of `count` stages, each at least 1."""
    sizes = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if len(sizes) != count:
        raise ZooError(f"{name} must be {count} whole numbers, the blocks of each stage, not {value!r}.")
    return tuple(whole(f"{name}[{i}]", size) for i, size in enumerate(sizes))


def scaled(channels: int, width: float) -> int:
    """Returns a channel count under a width multiplier, rounded, at least 1."""
    return max(1, round(channels * width))
