"""Grids: what is best in a row, what can be told apart from it, and what is exported."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pandas as pd
import pytest

from cgorl.report.exports import FORMATS, html, latex, markdown
from cgorl.report.grid import BEST, EQUAL, UNTESTED, WORSE, Grid, GridError, grid, runs
from cgorl.report.stats import interval, iqm


def table(*rows: tuple[str, str, float | None, float | None]) -> pd.DataFrame:
    """Rows of problem, search, seed and cost in ms, from 10 ms."""
    made: list[dict[str, Any]] = [
        {
            "job": k,
            "model": p,
            "rules": "default",
            "search": s,
            "seed": seed,
            "initial_ms": 10.0,
            "cost_ms": cost,
            "evaluations": 5,
            "seconds": 0.1,
        }
        for k, (p, s, seed, cost) in enumerate(rows, 1)
    ]
    return pd.DataFrame(made).assign(stopped="seconds", status="proven", error=None)


def stands(made: Grid, row: int = 0) -> dict[str, str]:
    return {m: c.stands for m, c in zip(made.methods, made.cells[row], strict=True) if c is not None}


def test_methods_that_draw_nothing_are_compared_as_they_are() -> None:
    made = grid(runs(table(("m", "greedy", None, 8.0), ("m", "beam", None, 7.0), ("m", "same", None, 7.0))))
    assert stands(made) == {"greedy": WORSE, "beam": BEST, "same": BEST}
    assert [c.value for c in made.cells[0] if c] == pytest.approx([-20, -30, -30]) and math.isnan(made.cells[0][0].low)  # type: ignore[union-attr]


def test_seeds_are_told_apart_by_the_interval_of_their_differences() -> None:
    a, b, c = [7.0, 7.2, 7.1, 7.3], [7.5, 7.7, 7.6, 7.8], [6.4, 8.0, 7.9, 7.0]
    rows = [("m", name, float(s), v) for name, values in (("a", a), ("b", b), ("c", c)) for s, v in enumerate(values)]
    made = grid(runs(table(*rows, ("m", "det", None, 7.2), ("m", "far", None, 9.0), ("m", "once", 0.0, 9.5))))
    assert stands(made) == {"a": BEST, "b": WORSE, "c": EQUAL, "det": EQUAL, "far": WORSE, "once": UNTESTED}
    cell = made.cells[0][0]
    assert cell is not None and cell.each == pytest.approx([-30, -28, -29, -27])
    assert cell.value == pytest.approx(iqm(list(cell.each))) and (cell.low, cell.high) == interval(list(cell.each))
    assert any("with 4 seeds" in note for note in made.notes)


def test_a_hidden_method_takes_no_part() -> None:
    ran = runs(table(("m", "greedy", None, 8.0), ("m", "beam", None, 7.0)))
    assert stands(grid(ran, hidden=["beam"])) == {"greedy": BEST}
    assert grid(ran, hidden=["beam", "greedy"]).cells == ((),)


def test_what_failed_is_an_empty_cell_and_a_note() -> None:
    given = table(("m", "greedy", None, 8.0), ("n", "greedy", None, None), ("n", "beam", None, 5.0))
    made = grid(runs(given), failed=1)
    assert made.cells[0][1] is None and made.cells[1][0] is None
    assert made.notes[-1] == "1 jobs failed and are not in here"


def test_other_tables_are_told_in_a_sentence() -> None:
    with pytest.raises(GridError, match=r"no column cost_ms, initial_ms, search: it should be the results of scripts/evaluate\.py"):
        runs(pd.DataFrame({"x": [1]}))
    with pytest.raises(GridError, match="nothing to compare"):
        runs(table(("m", "greedy", None, None)))
    with pytest.raises(GridError, match="no measure 'speed'; there is change, cost_ms, evaluations, seconds"):
        grid(runs(table(("m", "greedy", None, 1.0))), "speed")


def test_a_table_with_its_own_problems_and_methods_keeps_them() -> None:
    given = pd.DataFrame({"problem": ["p"], "method": ["q"], "initial_ms": [2.0], "cost_ms": [1.0]})
    made = grid(runs(given))
    assert (made.problems, made.methods) == (("p",), ("q",)) and made.cells[0][0].value == -50  # type: ignore[union-attr]
    assert "p,2.0,q,-50.0,,,1,best,,," in FORMATS["csv"](made)


@pytest.fixture
def small() -> Grid:
    rows = [("a_1|x", "greedy", None, 8.0), *(("a_1|x", "r&d", float(s), 9.0 + s / 10) for s in range(3)), ("b", "r&d", 0.0, 4.0)]
    return grid(runs(table(*rows)))


def test_csv_is_tidy(small: Grid) -> None:
    found = list(csv.DictReader(io.StringIO(FORMATS["csv"](small))))
    assert [(r["problem"], r["method"], r["n"], r["stands"]) for r in found] == [
        ("a_1|x default", "greedy", "1", BEST),
        ("a_1|x default", "r&d", "3", WORSE),
        ("b default", "r&d", "1", BEST),
    ]
    assert float(found[0]["change"]) == pytest.approx(-20) and found[0]["low"] == ""


def test_texts_are_escaped_and_the_best_is_bold(small: Grid) -> None:
    paper = latex(small)
    assert r"a\_1|x default & 10 & \textbf{$-$20.00} & $-$9.00 {\scriptsize [$-$10.00, $-$8.00]} \\" in paper
    assert r"r\&d" in paper and paper.count(r"\\") == 3 and r"\begin{tabular}{lrrr}" in paper
    page = markdown(small)
    assert r"| a_1\|x default | 10 | **-20.00** | -9.00 [-10.00, -8.00] |" in page and "| b default | 10 |  | **-60.00** |" in page
    whole = html(small)
    assert "r&amp;d" in whole and whole.count("<b>") == 2 and whole.count("<tr>") == 3
