"""Shapes that a Reshape or Expand is given while the model runs, as far as they are known beforehand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from cgorl.ir.node import Dim

Target = Sequence[int | str | None]
"""The numbers of a target; a symbol stands for the dim of that name, None for what is not known."""


def reshaped(target: Target, dims: Sequence[Dim], allowzero: bool) -> tuple[Dim, ...]:
    """The dims that a Reshape of `dims` to `target` gives, as far as they are certain.

    A symbol that may be 0 is a dim only where the operand has the same one: elsewhere a 0 means the operand's dim.
    """
    found: list[Dim] = []
    for k, t in enumerate(target):
        there = dims[k] if k < len(dims) else None
        if t == 0 and not allowzero:
            found.append(there)
        elif isinstance(t, str) and not allowzero and t != there:
            found.append(None)
        else:
            found.append(None if t == -1 else t)
    open_ = [k for k, t in enumerate(target) if t == -1]
    if len(open_) == 1 and all(d is not None for k, d in enumerate(found) if k != open_[0]):
        found[open_[0]] = _left(dims, [d for k, d in enumerate(found) if k != open_[0]])
    return tuple(found)


def _left(dims: Sequence[Dim], others: Sequence[Dim]) -> Dim:
    """What is left of the product of `dims` once divided by that of `others`: a number or one symbol, or None."""
    if None in dims:
        return None
    have, taken = (Counter(d for d in s if isinstance(d, str)) for s in (dims, others))
    whole, part = (math.prod(d for d in s if isinstance(d, int)) for s in (dims, others))
    if part == 0 or whole % part or taken - have:
        return None
    rest = list((have - taken).elements())
    if not rest:
        return whole // part
    return rest[0] if len(rest) == 1 and whole == part else None


def spelled(target: Target, dims: Sequence[Dim], allowzero: bool) -> tuple[int, ...] | None:
    """A constant target that does what `target` does; None if there is none.

    A 0 copies a dim of the operand; one -1 stands for what is left, if nothing beside it may be 0.
    """
    if allowzero:
        return None
    found = [0 if isinstance(t, str) and k < len(dims) and dims[k] == t else t for k, t in enumerate(target)]
    unknown = [k for k, t in enumerate(found) if not isinstance(t, int)]
    if len(unknown) > 1 or (unknown and any(t < 1 for t in found if isinstance(t, int))):
        return None
    return tuple(t if isinstance(t, int) else -1 for t in found)


def expanded(target: Target, dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """The dims that an Expand of `dims` to `target` gives, as far as they are certain."""
    rank = max(len(target), len(dims))
    have, want = (1,) * (rank - len(dims)) + tuple(dims), (1,) * (rank - len(target)) + tuple(target)
    return tuple(_wider(d, t) for d, t in zip(have, want, strict=True))


def _wider(dim: Dim, target: int | str | None) -> Dim:
    if target == 1 or dim == target:
        return dim
    if isinstance(dim, int) and dim != 1:
        return dim
    return target if dim == 1 or isinstance(target, int) else None


def widens_nothing(target: Target, dims: Sequence[Dim]) -> bool:
    """Whether an Expand of `dims` to `target` gives its operand."""
    return len(target) <= len(dims) and all(
        t == 1 or (t is not None and t == d) for t, d in zip(reversed(target), reversed(dims), strict=False)
    )
