"""Statistics of few runs: interquartile mean, bootstrap intervals with their true coverage, and differences of pairs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

import numpy as np

LEVEL = 0.95

Key = TypeVar("Key", bound=Hashable)


def iqm(values: Sequence[float]) -> float:
    """The mean of the middle half; a value that is in it in part counts in part. nan for none."""
    return float(_iqm(np.asarray(values, float)[None])[0]) if len(values) else math.nan


def interval(values: Sequence[float], level: float = LEVEL, draws: int = 5000, seed: int = 0) -> tuple[float, float]:
    """The percentile bootstrap interval of the interquartile mean; nan for fewer than two values. See `coverage`."""
    x = np.asarray(values, float)
    if len(x) < 2:
        return math.nan, math.nan
    drawn = _iqm(x[np.random.default_rng(seed).integers(len(x), size=(draws, len(x)))])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@cache
def coverage(n: int, level: float = LEVEL, trials: int = 1000, draws: int = 400) -> float:
    """How often the interval of `n` normal values holds what it is of: with few values less often than its level says."""
    if n < 2:
        return math.nan
    rng = np.random.default_rng(n)
    x = rng.standard_normal((trials, n))
    rows = rng.integers(n, size=(trials, draws, n))
    drawn = _iqm(np.take_along_axis(x[:, None, :], rows, 2).reshape(-1, n)).reshape(trials, draws)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=1)
    return float(((low <= 0) & (high >= 0)).mean())


def paired(a: Mapping[Key, float], b: Mapping[Key, float]) -> list[float]:
    """The differences a - b over what both have a value of."""
    return [a[k] - b[k] for k in a if k in b]


def _iqm(x_RN: Any) -> Any:
    n = x_RN.shape[1]
    edges = np.arange(n + 1)
    weight_N = np.clip(np.minimum(edges[1:], 0.75 * n) - np.maximum(edges[:-1], 0.25 * n), 0, None)
    return np.sort(x_RN, axis=1) @ (weight_N / weight_N.sum())
