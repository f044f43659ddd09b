"""What the landscape's figures mean, on costs made by hand."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from cgorl.report.landscape import barrier, best_after, page, spent_until, verdict


@pytest.mark.parametrize(
    ("costs", "depth", "height"),
    [
        ([10.0], 0, 0.0),
        ([10.0, 9.0, 8.0], 1, 0.0),  # downhill all the way
        ([10.0, 10.0, 10.0, 9.0], 3, 0.0),  # a plain
        ([10.0, 11.0, 12.0, 9.0], 3, 2.0),  # a hill
        ([10.0, 8.0, 9.5, 7.0, 7.2, 7.1, 6.0], 3, 1.5),  # the deepest and the highest need not be one
        ([10.0, 9.0, 12.0, 15.0], 1, 0.0),  # what comes after the best does not count
        ([10.0, 11.0, 10.0, 11.0], 0, 0.0),  # never lower
        ([10.0, 10.0 + 1e-12, 10.0 - 1e-12, 9.0], 3, 1e-12),  # rounding is no gain
    ],
)
def test_the_barrier_is_the_worst_stretch_between_a_best_and_the_next(costs: list[float], depth: int, height: float) -> None:
    found = barrier(costs)
    assert found.depth == depth and found.height_ms == pytest.approx(height, abs=1e-11)


CURVE = [
    {"expansions": e, "evaluations": n, "best_ms": c}
    for e, n, c in ((0, 0, 10.0), (1, 50, 10.0), (7, 300, 9.0), (200, 9000, 8.0), (400, 20000, 8.0))
]


def test_evaluations_until_a_cost() -> None:
    assert spent_until(CURVE, 9.0) == 300 and spent_until(CURVE, 8.5) == 9000 and spent_until(CURVE, 10.0) == 0
    assert math.isnan(spent_until(CURVE, 7.9))


def test_the_best_after_so_many_expansions() -> None:
    assert best_after(CURVE, 100, False) == 9.0 and best_after(CURVE, 200, False) == 8.0 and best_after(CURVE, 6, False) == 10.0
    assert math.isnan(best_after(CURVE, 1000, False)) and best_after(CURVE, 1000, True) == 8.0


def test_room_below_half_a_percent_is_no_room() -> None:
    assert [verdict(r) for r in (0.0, 0.0049, 0.005, 0.2, math.nan)] == ["no room", "no room", "room", "room", "unknown"]


def test_the_page_says_what_the_table_says() -> None:
    one: dict[str, Any] = {
        **{"problem": "net default taso", "initial_ms": 100.0, "best_ms": 80.0, "best_method": "best", "moves": 40, "depth": 9},
        **{"height": 0.042, "lower": 0.25, "keep": 0.5, "raise": 0.25, "way_lower": 0.1, "way_keep": 0.8, "way_raise": 0.1, "error": None},
        **{"commit": "abc1234", "machine": "a machine", "date": "2026-01-01"},
    }
    ended = {"stopped": "expansions", "expansions": 5000, "seconds": 71.2}
    rows = [
        {**one, "method": "greedy", "cost_ms": 99.0, "room": 0.19, "evaluations_to_own": 40, "evaluations_to_known": math.nan},
        {**one, "method": "backtracking", "cost_ms": 80.0, "room": 0.19, "evaluations_to_own": 1234, "evaluations_to_known": 1200,
         "at_100": 98.0, "at_300": math.nan},
        {**one, "method": "best", "cost_ms": 80.0, "room": 0.19, "evaluations_to_own": 1234, "evaluations_to_known": 1200, **ended},
    ]  # fmt: skip
    table = pd.DataFrame([*rows, *({**r, "problem": "other", "room": 0.001, "stopped": "queue empty"} for r in rows)])
    text = page(table.assign(command="python scripts/evaluate.py experiment=landscape"), [100, 300])
    first = next(line for line in text.splitlines() if line.startswith("| net default taso | 100"))
    assert first == "| net default taso | 100 | -1.00 | -2.00 |  | -20.00 (best) | 5,000 graphs | 19.00 | room |"
    assert "| -20.00 (best) | queue empty | 0.10 | **no room** |" in text
    assert "| net default taso | 40 | 25 / 50 / 25 | 10 / 80 / 10 | 9 | 4.20 | 40 / - | 1,234 / 1,200 | 1,234 / 1,200 |" in text
    assert text.count("**no room**") == 2  # the legend, and the one problem without
    for part in ("experiment=landscape", "abc1234", "a machine", "2026-01-01"):
        assert part in text
