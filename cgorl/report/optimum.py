"""Optimum: the page of the experiment that holds every method against the true optimum of small graphs (see cgorl.evaluation.thesis)."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from cgorl.report.stats import LEVEL, coverage, interval, iqm
from cgorl.report.thesis import RAN, markdown, origin, spent, spent_until
from cgorl.search.exhaustive import COMPLETE

EXHAUSTIVE = "exhaustive"
SAME = 1e-5
"""Costs this near, as a share, are the same: curves are kept with seven digits."""

_ALL = "none: it tells no method apart"

_HEAD = """# How far from the true optimum?

Of these graphs `exhaustive` lists every graph that the rules reach (none of more than twice the nodes of the first), so that the
lowest of them is the optimum of the price list. The gap of a search is cost / optimum - 1 in %: 0 is the optimum. Each method that
draws runs with several seeds; `IQM` is the interquartile mean of their gaps, with its bootstrap interval. `to the optimum` are
evaluations until there (- : never), the fewest and the most over seeds. Costs are estimates of the price list, not measured times,
and the graphs are not proven here. The whole tier is what conf/experiment/optimum.yaml says; the commands tell how much was run.
"""


def page(table: pd.DataFrame) -> str:
    """The Markdown page of a table with a row for each problem, method and seed."""
    parts = [_HEAD, *origin(table)]
    table = table.reindex(columns=list(dict.fromkeys([*table, *RAN, "stopped"])))  # where all failed, these are not there
    ran = table[table["cost_ms"].notna()]
    counts = sorted({int(n) for n in ran.groupby(["problem", "method"]).size() if n > 1})
    told = ", ".join(f"{100 * coverage(n):.0f} % with {n} seeds" for n in counts)
    parts += [f"- intervals: {100 * LEVEL:.0f} % in name; of normal values they hold the true one in {told or '-'}", ""]
    problems = {str(p): rows for p, rows in ran.groupby("problem", sort=False)}
    methods = [m for m in dict.fromkeys(map(str, ran["method"])) if m != EXHAUSTIVE]
    cells = []
    for problem, rows in problems.items():
        gaps = {m: _gaps(rows, m) for m in methods}
        short = ", ".join(m for m, g in gaps.items() if g and max(g) > 100 * SAME)
        cells.append([problem, *_size(rows), *(f"{iqm(g):.2f}" if g else "" for g in gaps.values()), short or _ALL])
    head = ("problem", "optimum known", "graphs", "evaluations", *methods, "not always there")
    parts += ["## The gap, IQM in %", "", *markdown(head, cells), ""]
    for problem, rows in problems.items():
        parts += _methods(problem, rows, methods)
    failed = table[table["error"].notna()]
    parts += (
        ["## Failed", "", *(f"- {r['problem']}, {r['method']}: {r['error']}" for r in failed.to_dict("records")), ""] if len(failed) else []
    )
    return "\n".join(parts)


def _whole(rows: pd.DataFrame) -> dict[Any, Any] | None:
    """The row of the exhaustive search that saw every graph, if there is one."""
    found = rows[(rows["method"] == EXHAUSTIVE) & (rows["stopped"] == COMPLETE)].to_dict("records")
    return found[-1] if found else None


def _best(rows: pd.DataFrame) -> float:
    """The optimum in ms, or the lowest cost known where it is not known."""
    whole = _whole(rows)
    return float(whole["cost_ms"] if whole else rows["cost_ms"].min())


def _gaps(rows: pd.DataFrame, method: str) -> list[float]:
    return [100 * max(0.0, float(c) / _best(rows) - 1) for c in rows.loc[rows["method"] == method, "cost_ms"]]


def _size(rows: pd.DataFrame) -> list[str]:
    """Whether the optimum is known, how many graphs there are, and the evaluations that seeing all of them took."""
    if whole := _whole(rows):
        return ["yes", f"{int(whole['expansions']):,}", f"{int(whole['evaluations']):,}"]
    cut = rows[rows["method"] == EXHAUSTIVE].to_dict("records")
    seen = [f"over {int(cut[-1][k]):,}" for k in ("expansions", "evaluations")] if cut else ["", ""]
    return ["no: gaps are to the best that any run found, and at least so large", *seen]


def _methods(problem: str, rows: pd.DataFrame, methods: list[str]) -> list[str]:
    first, best = rows.iloc[0], _best(rows)
    cells = []
    for name in methods:
        mine, gaps = rows[rows["method"] == name], _gaps(rows, name)
        if not gaps:
            continue
        low, high = interval(gaps)
        there = sum(g <= 100 * SAME for g in gaps)
        near = [spent_until(str(c), best * (1 + SAME)) for c in mine["curve"]]
        evaluations, seconds = (float(mine[k].astype(float).median()) for k in ("evaluations", "cpu_seconds"))
        spread = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        cells.append(
            [
                name,
                f"{iqm(gaps):.3f}",
                spread,
                f"{max(gaps):.3f}",
                f"{there} of {len(gaps)}",
                spent(near),
                f"{evaluations:,.0f}",
                f"{seconds:.1f}",
            ]
        )
    about = (
        f"{first['rules']} rules, device {first['device']}, {first['initial_ms']:.4g} ms before, "
        f"{'optimum' if _whole(rows) else 'best known'} {best:.6g} ms ({100 * (best / float(first['initial_ms']) - 1):.2f} %)"
    )
    head = ("method", "gap IQM %", "interval", "largest", "seeds there", "to the optimum", "evaluations", "CPU s")
    return [f"## {problem}", "", about, "", *markdown(head, cells), ""]
