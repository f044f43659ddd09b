"""Kernels, pads and groups of convolutions and pools."""

from __future__ import annotations

import math
from typing import Any

from cgorl.rules.context import Context, NoMatch


def zeros(at: Context, numbers: Any) -> None:
    """All numbers are 0."""
    if any(numbers):
        raise NoMatch(f"{list(numbers)} is not all 0")


def ones(at: Context, numbers: Any) -> None:
    """All numbers are 1."""
    if any(n != 1 for n in numbers):
        raise NoMatch(f"{list(numbers)} is not all 1")


def zeros_or_absent(at: Context, numbers: Any, value: Any) -> None:
    """All numbers are 0, or the optional operand is not there."""
    if value is not None and any(numbers):
        raise NoMatch(f"{list(numbers)} is not all 0 and '{at.label(value)}' is there")


def spatial_only(at: Context, pads: Any) -> None:
    """A Pad's amounts leave batch and channels alone and cut nothing off."""
    half = len(pads) // 2
    if any(pads[:2]) or any(pads[half : half + 2]) or any(p < 0 for p in pads):
        raise NoMatch(f"pads {list(pads)} are not spatial and non-negative")


def covers(at: Context, k1: Any, p1: Any, k2: Any, p2: Any, dilations: Any) -> None:
    """Window `k1` padded by `p1` holds window `k2` padded by `p2` at every place, tap on tap."""
    n = len(k1)
    for i, d in enumerate(dilations):
        lead, tail = p1[i] - p2[i], p1[n + i] - p2[n + i]
        if lead < 0 or tail < 0 or lead % d or tail % d or k1[i] != k2[i] + (lead + tail) // d:
            raise NoMatch(f"kernel {list(k1)} with pads {list(p1)} does not hold kernel {list(k2)} with pads {list(p2)}")


def holds_centre(at: Context, kernel: Any, pads: Any, strides: Any, dilations: Any) -> None:
    """One tap of the window reads the very place that the result stands at, and the size stays."""
    n = len(kernel)
    for i in range(n):
        if strides[i] != 1 or pads[i] % dilations[i] or pads[i] + pads[n + i] != (kernel[i] - 1) * dilations[i]:
            raise NoMatch(f"kernel {list(kernel)} with pads {list(pads)} and strides {list(strides)} has no tap on its own place")


def contains_window(at: Context, k1: Any, p1: Any, k2: Any, p2: Any) -> None:
    """Window `k1` padded by `p1` reaches as far as `k2` padded by `p2`, or further, on every side; and further on one."""
    n = len(k1)
    steps = [(p1[i] - p2[i], p1[n + i] - p2[n + i], k1[i] - k2[i]) for i in range(n)]
    if any(a < 0 or b < 0 or a + b != k for a, b, k in steps) or not any(k for _, _, k in steps):
        raise NoMatch(f"window {list(k1)} with pads {list(p1)} does not contain window {list(k2)} with pads {list(p2)}")


def below(at: Context, pads: Any, window: Any) -> None:
    """Every pad is smaller than the window."""
    n = len(window)
    if any(pads[i] >= window[i] or pads[n + i] >= window[i] for i in range(n)):
        raise NoMatch(f"pads {list(pads)} reach past window {list(window)}")


def counts_padding(at: Context, flag: int, pads: Any) -> None:
    """An average pool divides by its full window everywhere: it counts padding, or has none."""
    if not flag and any(pads):
        raise NoMatch("the average pool does not count its padding")


def keeps_constants(at: Context, flag: int, pads: Any, bias: Any) -> None:
    """An average pool leaves a constant as it is (it does not count padding, or has none), or there is no bias."""
    if flag and any(pads) and bias is not None:
        raise NoMatch("the average pool counts its padding, and there is a bias")


def divides(at: Context, number: int, factor: int) -> None:
    """`factor` divides the number."""
    if number < factor or number % factor:
        raise NoMatch(f"{factor} does not divide {number}")


def block_diagonal(at: Context, weight: Any, group: int, factor: int) -> None:
    """A constant weight [O, C/group, ...] mixes nothing between the parts of each group cut into `factor`."""
    o, c, *_ = at.shape(weight)
    if group < 1:
        raise NoMatch(f"{group} groups are none")
    per = o // group
    if c % factor or per % factor or c < factor or o == 0:
        raise NoMatch(f"{group} groups of {c} channels cannot be cut by {factor}")
    held = at.builder.tensor(weight)
    if held is None or math.prod(held.shape) > 1 << 22:
        raise NoMatch(f"the contents of '{at.label(weight)}' are not known, or more than 4 million")
    fact = f"block_diagonal {group} {factor}"
    if fact not in held.memo:
        blocks = held.array().reshape(group, factor, per // factor, factor, c // factor, -1)
        held.memo[fact] = all(not blocks[:, a, :, b].any() for a in range(factor) for b in range(factor) if a != b)
    if not held.memo[fact]:
        raise NoMatch(f"'{at.label(weight)}' mixes channels between its parts")


def lowest(at: Context, number: Any) -> None:
    """The number is as low as float32 goes, or lower."""
    if number is None or float(number) > -3.4e38:
        raise NoMatch(f"{number} is not the lowest number")


def cuts_front(at: Context, pads: Any) -> None:
    """A Pad's amounts leave batch and channels alone, cut off up to 2 in front, and lay none or more behind."""
    half = len(pads) // 2
    lead, tail = pads[2:half], pads[half + 2 :]
    if any(pads[:2]) or any(pads[half : half + 2]) or not lead or min(lead) < -2 or max(lead) > 0 or not any(lead) or min(tail) < 0:
        raise NoMatch(f"pads {list(pads)} do not just cut off one or two in front")
