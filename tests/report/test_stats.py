"""Statistics by hand, and that the intervals cover what they say that they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cgorl.report.stats import coverage, interval, iqm, paired


def test_the_interquartile_mean_by_hand() -> None:
    assert iqm([5.0]) == 5.0 and iqm([1.0, 2.0]) == 1.5 and math.isnan(iqm([]))
    assert iqm([0.0, 1.0, 3.0, 100.0]) == 2.0
    assert iqm([9.0, 0.0, 3.0]) == pytest.approx((0.25 * 0 + 1 * 3 + 0.25 * 9) / 1.5)  # 0.75 to 2.25 of the three
    assert iqm([1e9, 4.0, 5.0, 6.0, -1e9, 5.0, 4.0, 6.0]) == 5.0


def test_an_interval_holds_the_mean_and_narrows_with_more() -> None:
    x = np.random.default_rng(0).standard_normal(40)
    low, high = interval(x[:10].tolist())
    narrow = interval(x.tolist())
    assert low < iqm(x[:10].tolist()) < high and narrow[1] - narrow[0] < high - low
    assert interval([3.0, 3.0, 3.0]) == (3.0, 3.0) and all(math.isnan(v) for v in interval([3.0]))
    assert interval(x.tolist(), 0.5)[0] > narrow[0] and interval(x.tolist()) == narrow


def test_the_coverage_is_told_as_it_is() -> None:
    assert math.isnan(coverage(1)) and 0.4 < coverage(2) < 0.6  # two values: it holds the truth when that lies between them
    assert coverage(3) < coverage(10) < 0.96 and coverage(30) > 0.9


def test_pairs_are_what_both_have() -> None:
    assert paired({1: 5.0, 2: 7.0, 3: 1.0}, {2: 4.0, 1: 5.0, 9: 0.0}) == [0.0, 3.0]
