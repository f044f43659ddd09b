"""Methods at equal budgets: tables made by hand, whose answers can be seen."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from cgorl.evaluation.run import frames
from cgorl.report.compare import at_budget, band, budgets, compare, ends, labelled

BASE = {"model": "m", "rules": "default", "device": "taso", "cost": "roofline"}


def table(*jobs: tuple[str, Any, str, list[tuple[int, float]]], **more: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Searches of (method, seed, what stopped it, points of evaluations and cost in ms), all from 100 ms; a second is 100 evaluations."""
    rows, points = [], []
    for k, (search, seed, stopped, curve) in enumerate(jobs, 1):
        spent, cost = curve[-1]
        row = {**BASE, "search": search, "seed": seed, **more, "job": k, "graph_key": "g", "rules_digest": "r", "initial_ms": 100.0}
        row |= {"cost_ms": cost, "improvement": 1 - cost / 100, "rewrites": 1, "expansions": spent, "evaluations": spent}
        rows.append({**row, "seconds": spent / 100, "cpu_seconds": spent / 100, "stopped": stopped, "status": "not proven", "error": None})
        points += [{"job": k, "expansions": e, "evaluations": e, "seconds": e / 100, "best_ms": c} for e, c in [(0, 100.0), *curve]]
    return pd.DataFrame(rows).astype({"seed": "Int64"}), pd.DataFrame(points)


def cells(results: pd.DataFrame, curves: pd.DataFrame, axis: str = "evaluations") -> dict[tuple[str, float], Any]:
    return {(r.method, r.budget): r for r in compare(labelled(results), curves, axis).itertuples()}


def test_at_a_budget_stands_the_best_that_came_before_it_and_not_after() -> None:
    found = cells(*table(("greedy", None, "no rewrite gains", [(100, 90.0), (101, 80.0), (5000, 80.0)])))
    assert found["greedy", 100.0].median_ms == 90.0
    assert found["greedy", 1000.0].median_ms == 80.0
    results, curves = table(("greedy", None, "no rewrite gains", [(150, 90.0), (5000, 90.0)]))
    assert cells(results, curves)["greedy", 100.0].median_ms == 100.0  # not changed yet


def test_a_method_that_ended_keeps_its_last_value_and_is_marked() -> None:
    found = cells(*table(("greedy", None, "no rewrite gains", [(200, 90.0)]), ("beam", None, "evaluations", [(50, 95.0), (20000, 85.0)])))
    assert (found["greedy", 10000.0].median_ms, found["greedy", 10000.0].ended) == (90.0, 1)
    assert (found["greedy", 100.0].ended, found["beam", 10000.0].ended) == (0, 0)
    assert found["greedy", 10000.0].best and not found["greedy", 20000.0].best and found["beam", 20000.0].best


def test_no_budget_goes_past_where_a_method_was_cut_off() -> None:
    """What it would have found after is not known, so nobody is shown there."""
    results, _ = table(("beam", None, "seconds", [(3000, 90.0)]), ("greedy", None, "no rewrite gains", [(200, 95.0)]),
                       ("backtracking", None, "seconds", [(70000, 80.0)]))  # fmt: skip
    assert budgets(labelled(results), "evaluations") == [100.0, 1000.0, 3000.0]
    ended, _ = table(("beam", None, "no better graph", [(3000, 90.0)]), ("greedy", None, "no rewrite gains", [(200, 95.0)]))
    assert budgets(labelled(ended), "evaluations") == [100.0, 1000.0, 3000.0]
    assert budgets(labelled(ended), "seconds")[-1] == 30.0


def test_the_median_over_seeds_with_lowest_and_highest() -> None:
    jobs = [("annealing", s, "cooled down", [(100, c)]) for s, c in ((1, 70.0), (2, 99.0), (3, 80.0))]
    found = cells(*table(*jobs, ("greedy", None, "no rewrite gains", [(100, 79.0)])))
    one = found["annealing", 100.0]
    assert (one.n, one.median_ms, one.low_ms, one.high_ms, one.best) == (3, 80.0, 70.0, 99.0, False)
    assert found["greedy", 100.0].best  # by the median, not by the luckiest seed


def test_equal_medians_are_all_best() -> None:
    found = cells(*table(("a", None, "done", [(100, 80.0)]), ("b", None, "done", [(100, 80.0)]), ("c", None, "done", [(100, 80.1)])))
    assert [found[m, 100.0].best for m in "abc"] == [True, True, False]


def test_problems_and_methods_are_named_by_what_differs() -> None:
    one, _ = table(("beam", None, "done", [(100, 80.0)]), **{"search.width": 4, "zoo.image": 32, "budget.seconds": 5})
    two, _ = table(("beam", None, "done", [(100, 80.0)]), **{"search.width": 8, "zoo.image": 32, "budget.seconds": 5})
    ran = labelled(pd.concat([one, two]))
    assert list(ran["problem"]) == ["m default taso zoo.image=32"] * 2 and list(ran["method"]) == [
        "beam search.width=4",
        "beam search.width=8",
    ]
    two["search.width"], two["zoo.image"], two["simplify"], one["simplify"] = 4, 64, True, True
    ran = labelled(pd.concat([one, two]))
    assert list(ran["problem"]) == ["m default taso zoo.image=32", "m default taso zoo.image=64"] and set(ran["method"]) == {"beam"}


def test_failed_jobs_take_no_part() -> None:
    results, curves = table(("greedy", None, "done", [(100, 80.0)]), ("beam", None, "done", [(100, 70.0)]))
    results.loc[1, ["cost_ms", "status"]] = [math.nan, "failed"]
    assert set(m for m, _ in cells(results, curves)) == {"greedy"}
    assert list(ends(labelled(results))["best"]) == [True]


def test_where_each_ended() -> None:
    results, _ = table(("a", 1, "x", [(100, 80.0)]), ("a", 2, "x", [(300, 70.0)]), ("b", None, "y", [(50, 75.0)]))
    a, b = ends(labelled(results)).to_dict("records")
    assert (a["median_ms"], a["low_ms"], a["evaluations"], a["n"], a["best"]) == (75.0, 70.0, 200.0, 2, True) and b["best"]


def test_the_band_stops_where_the_first_seed_was_cut_off() -> None:
    results, curves = table(("a", 1, "seconds", [(100, 90.0), (1000, 90.0)]), ("a", 2, "seconds", [(200, 80.0), (3000, 50.0)]))
    found = band(labelled(results), curves, "evaluations")
    assert list(found["evaluations"]) == [0, 100, 200, 1000] and list(found["median_ms"]) == [100.0, 95.0, 85.0, 85.0]
    assert (found["low_ms"].iloc[-1], found["high_ms"].iloc[-1], found["by_itself"].iloc[-1]) == (80.0, 90.0, False)
    results["stopped"] = "cooled down"
    found = band(labelled(results), curves, "evaluations")
    assert found["evaluations"].max() == 3000 and found["median_ms"].iloc[-1] == 70.0 and found["by_itself"].all()


@pytest.mark.parametrize("axis", ["evaluations", "seconds"])
def test_a_budget_just_reached_counts(axis: str) -> None:
    results, curves = table(("a", None, "seconds", [(100, 90.0), (1000, 80.0)]))
    ran = labelled(results)
    last = budgets(ran, axis)[-1]
    assert at_budget(ran, curves, axis, last).to_dict("records")[0]["best_ms"] == 80.0


def test_an_evaluation_of_nothing_is_two_empty_tables() -> None:
    results, curves = frames([])
    assert len(results) == len(curves) == len(labelled(results)) == 0
    assert len(compare(labelled(results), curves, "seconds")) == len(ends(labelled(results))) == 0


def test_an_option_of_one_search_tells_it_only_from_itself() -> None:
    beam, _ = table(("beam", None, "done", [(100, 80.0)]), **{"search.width": 4})
    greedy, _ = table(("greedy", None, "done", [(100, 80.0)]))
    assert list(labelled(pd.concat([beam, greedy]))["method"]) == ["beam", "greedy"]
