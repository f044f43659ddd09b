"""Compare: methods at equal budgets, from the two tables of an evaluation; pure functions from frames to frames."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import pandas as pd

from cgorl.search.searcher import LIMITS

AXES = ("evaluations", "seconds")
"""What searches can be given the same of: matches priced, wall-clock time."""
_FIRST = {"evaluations": 100.0, "seconds": 0.01}
_GROUPS = ("model", "rules", "device", "cost", "zoo", "dims", "unbound", "simplify")
_COLUMNS = 5
_RESULTS = (
    *("job", "seed", "graph_key", "rules_digest", "initial_ms", "cost_ms", "improvement", "rewrites", "expansions", "evaluations"),
    *("seconds", "cpu_seconds", "stopped", "status", "error"),
)


def labelled(results: pd.DataFrame) -> pd.DataFrame:
    """The searches that ran, with what they worked on (`problem`) and how (`method`) in words; how is told where it differs."""
    ran = results[results["cost_ms"].notna()].copy()
    keys = [k for k in results.columns if k not in _RESULTS]
    about = [k for k in keys if k.split(".")[0] in _GROUPS]
    how = [k for k in keys if k not in about]
    varied = {k for k in keys if _varies(results, k)}
    ran["problem"] = _words(ran, [k for k in about if k in varied or k.split(".")[0] in ("model", "rules", "device", "zoo", "dims")])
    ran["method"] = _words(ran, [k for k in how if k == "search" or k in varied])
    return ran


def _varies(results: pd.DataFrame, key: str) -> bool:
    """Whether a key tells rows apart; one inside a search, such as `search.width`, those of that search."""
    if key.startswith("search.") and "search" in results:
        return bool((results.groupby("search")[key].nunique(dropna=False) > 1).any())
    return bool(results[key].nunique(dropna=False) > 1)


def budgets(ran: pd.DataFrame, axis: str) -> list[float]:
    """Powers of ten up to what all methods ran, and that: to where the first was cut off by a limit, or the last ended by itself."""
    spent = ran[axis].astype(float)
    cut = spent[ran["stopped"].isin(LIMITS)]
    top = float(cut.min() if len(cut) else spent.max())
    found, tens = [], _FIRST[axis]
    while tens < top / 1.2:
        found.append(tens)
        tens *= 10
    return [*found, top][-_COLUMNS:]


def at_budget(ran: pd.DataFrame, curves: pd.DataFrame, axis: str, budget: float) -> pd.DataFrame:
    """Of each job the best cost within the budget (`best_ms`), and whether it had `ended` before: then its last value holds."""
    within = curves[curves[axis] <= budget * (1 + 1e-9)]
    last = within.groupby("job", sort=False)["best_ms"].min()
    found = ran[["job", "problem", "method"]].copy()
    found["best_ms"] = found["job"].map(last)
    found["ended"] = (ran[axis].astype(float) < budget * (1 - 1e-9)).to_numpy()
    return found


def compare(ran: pd.DataFrame, curves: pd.DataFrame, axis: str) -> pd.DataFrame:
    """A row for each problem, method and budget: the median, lowest and highest cost over `n` jobs.

    `ended` is how many of them had ended by then; `best` marks the lowest medians of a budget.
    """
    rows = []
    for problem, group in ran.groupby("problem", sort=False):
        for budget in budgets(group, axis):
            values = at_budget(group, curves, axis, budget)
            for method, one in values.groupby("method", sort=False):
                spread = (len(one), one["best_ms"].median(), one["best_ms"].min(), one["best_ms"].max(), int(one["ended"].sum()))
                rows.append((problem, method, axis, budget, *spread))
    table = pd.DataFrame(rows, columns=["problem", "method", "axis", "budget", "n", "median_ms", "low_ms", "high_ms", "ended"])
    return _best(table, ["problem", "budget"])


def ends(ran: pd.DataFrame) -> pd.DataFrame:
    """A row for each problem and method: where it ended, median, lowest and highest cost, and what it spent, as medians."""
    rows = []
    for (problem, method), one in ran.groupby(["problem", "method"], sort=False):
        costs = one["cost_ms"]
        spent = [float(one[k].astype(float).median()) for k in ("expansions", "evaluations", "seconds", "cpu_seconds")]
        why = ", ".join(dict.fromkeys(one["stopped"]))
        rows.append((problem, method, len(one), one["initial_ms"].iloc[0], costs.median(), costs.min(), costs.max(), *spent, why))
    names = [
        "problem",
        "method",
        "n",
        "initial_ms",
        "median_ms",
        "low_ms",
        "high_ms",
        "expansions",
        "evaluations",
        "seconds",
        "cpu_seconds",
    ]
    return _best(pd.DataFrame(rows, columns=[*names, "stopped"]), ["problem"])


def band(ran: pd.DataFrame, curves: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The anytime curves of each problem and method over its jobs: median, lowest and highest cost from each point on.

    A job that ended by itself keeps its last value; the curve stops where the first job was cut off by a limit, since what it
    would have done next is not known. `by_itself` tells that none was.
    """
    found = []
    for (problem, method), one in ran.groupby(["problem", "method"], sort=False):
        spent = one[axis].astype(float)
        cut = spent[one["stopped"].isin(LIMITS)]
        points = curves[curves["job"].isin(one["job"])].pivot_table(index=axis, columns="job", values="best_ms", aggfunc="min").ffill()
        points = points[points.index <= (cut.min() if len(cut) else math.inf) * (1 + 1e-9)]
        steps = pd.DataFrame({"median_ms": points.median(axis=1), "low_ms": points.min(axis=1), "high_ms": points.max(axis=1)})
        steps = steps.reset_index(names=axis)
        steps.insert(0, "problem", problem)
        steps.insert(1, "method", method)
        steps["n"], steps["by_itself"] = len(one), not len(cut)
        found.append(steps)
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def _best(table: pd.DataFrame, within: Sequence[str]) -> pd.DataFrame:
    least = table.groupby(list(within))["median_ms"].transform("min")
    table["best"] = table["median_ms"] <= least * (1 + 1e-9)
    return table


def _words(rows: pd.DataFrame, keys: Sequence[Hashable]) -> list[str]:
    plain = ("model", "rules", "device", "cost", "search")
    return [
        " ".join(str(v) if k in plain else f"{k}={_short(v)}" for k, v in zip(keys, row, strict=True) if pd.notna(v))
        for row in rows[list(keys)].itertuples(index=False, name=None)
    ]


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
