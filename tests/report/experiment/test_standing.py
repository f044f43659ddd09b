"""Methods held against each other: of the same seeds, with intervals, and a verdict that follows from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cgorl.report.experiment import comparison, differences, read
from cgorl.report.experiment.kinds import ReportError
from cgorl.report.experiment.standing import ends
from tests.report.experiment.made import sweep, two_by_three


def test_differences_are_of_the_same_seeds(tmp_path: Path) -> None:
    of = read(two_by_three(tmp_path / "s"))
    [row] = differences(of).to_dict("records")
    assert (row["method"], row["reference"], row["n"], row["verdict"]) == ("icm.beta=0.1", "icm.beta=0.2", 3, "higher")
    assert row["difference"] == pytest.approx(2) and row["low"] == pytest.approx(2)  # unpaired they would overlap
    [other] = differences(of, "icm.beta=0.1").to_dict("records")
    assert other["verdict"] == "lower" and other["difference"] == pytest.approx(-2)
    with pytest.raises(ReportError, match=r"there is no method .x.; there is icm\.beta=0\.1"):
        differences(of, "x")


def test_what_is_not_told_apart(tmp_path: Path) -> None:
    jobs = [
        (f"icm.beta={b} seed={s}", {"change": c}) for b, of in (("0.1", (-3, -5, -4)), ("0.2", (-5, -3, -4.5))) for s, c in enumerate(of)
    ]
    of = read(sweep(tmp_path / "s", jobs))
    assert list(differences(of)["verdict"]) == ["not told apart"]
    one = read(sweep(tmp_path / "t", [("icm.beta=0.1 seed=1", {"change": -3}), ("icm.beta=0.2 seed=1", {"change": -5})]))
    assert list(differences(one)["verdict"]) == ["one value: not tested"]
    same = read(sweep(tmp_path / "u", [("icm.beta=0.1 seed=1", {}), ("icm.beta=0.2 seed=1", {})]))
    assert list(differences(same)["verdict"]) == ["equal"]


def test_methods_that_draw_nothing_differ_by_what_they_differ_by(tmp_path: Path) -> None:
    rows = [{"problem": "p", "method": m, "initial_ms": 2.0, "cost_ms": c, "seed": None} for m, c in (("greedy", 1.0), ("beam", 1.5))]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv")
    [row] = differences(read(tmp_path / "t.csv")).to_dict("records")
    assert (row["method"], row["verdict"]) == ("beam", "higher") and row["difference"] == pytest.approx(25)


def test_the_comparison_is_a_grid_and_the_ends_are_means_over_the_last_tenth(tmp_path: Path) -> None:
    of = read(two_by_three(tmp_path / "s"))
    made = comparison(of)
    assert made.methods == ("icm.beta=0.1", "icm.beta=0.2") and made.problems == ("net",)
    cell = made.cells[0][1]
    assert cell is not None and cell.value == pytest.approx(-14) and cell.stands == "best"
    rows = ends(of).set_index("method")
    assert rows.loc["icm.beta=0.1", "extrinsic"].each == (40.0, 40.0, 40.0) and rows.loc["icm.beta=0.1", "intrinsic"].value == 0.75
    assert rows.loc["icm.beta=7", "failed"] == 1 and rows.loc["icm.beta=7", "change"].each == ()


def test_nothing_to_compare_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="nothing to compare"):
        comparison(read(sweep(tmp_path / "s", [("seed=1", {"error": "no"})])))
