"""Grid: problems by methods, with intervals over seeds, the best of each row, and what can be told apart from it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cgorl.report.compare import labelled
from cgorl.report.stats import LEVEL, coverage, interval, iqm, paired

MEASURES = {"change": "change of the cost, %", "cost_ms": "cost, ms", "evaluations": "evaluations", "seconds": "seconds"}
"""What a grid can show, with its name; less is better in each."""
BEST, EQUAL, WORSE, UNTESTED = "best", "not told apart from the best", "worse", "not tested: one seed"
_SAME = 1e-3
"""Changes in % that lie this near count as the same."""


class GridError(ValueError):
    """A table that holds no comparison; the message says what is missing."""


class Cell(NamedTuple):
    """What a method came to on a problem: the interquartile mean over seeds, its interval (nan for one value), each value.

    `stands` says how it compares with the best of its row; `spent` are the medians of evaluations and seconds, `stopped` why.
    """

    value: float
    low: float
    high: float
    each: tuple[float, ...]
    stands: str
    spent: tuple[float, float]
    stopped: str


class Grid(NamedTuple):
    """Rows are problems, each with its cost before in ms; a cell is None where a method did not run, or failed."""

    measure: str
    problems: tuple[str, ...]
    before_ms: tuple[float, ...]
    methods: tuple[str, ...]
    cells: tuple[tuple[Cell | None, ...], ...]
    notes: tuple[str, ...]

    def some(self, rows: Sequence[int]) -> Grid:
        """These rows in this order."""
        return self._replace(
            problems=tuple(self.problems[k] for k in rows),
            before_ms=tuple(self.before_ms[k] for k in rows),
            cells=tuple(self.cells[k] for k in rows),
        )


def runs(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table that ended with a cost, with `problem` and `method`. Raises GridError for a table of something else."""
    needed = {"cost_ms", "initial_ms"} | ({"search"} if "problem" not in results or "method" not in results else set())
    if missing := sorted(needed - set(results.columns)):
        raise GridError(f"the table has no column {', '.join(missing)}: it should be the results of scripts/evaluate.py or cgorl.evaluate")
    own = {"problem", "method"} <= set(results.columns)
    ran = results[results["cost_ms"].notna()] if own else labelled(results)
    if not len(ran):
        raise GridError("no job of the table ended with a cost: there is nothing to compare")
    return ran


def grid(ran: pd.DataFrame, measure: str = "change", hidden: Collection[str] = (), failed: int = 0) -> Grid:
    """The methods that are not hidden on all problems. Raises GridError for a measure that there is not."""
    if measure not in MEASURES or (measure not in ran and measure != "change"):
        there = [m for m in MEASURES if m == "change" or m in ran]
        raise GridError(f"there is no measure '{measure}'; there is {', '.join(there)}")
    methods = [str(m) for m in dict.fromkeys(ran["method"]) if m not in hidden]
    problems = [str(p) for p in dict.fromkeys(ran["problem"])]
    by = {(str(p), str(m)): rows for (p, m), rows in ran.groupby(["problem", "method"], sort=False)}
    cells, before = [], []
    for problem in problems:
        here = {m: by[problem, m] for m in methods if (problem, m) in by}
        stands = _stands({m: _changes(rows) for m, rows in here.items()}, {m: _drawn(rows) for m, rows in here.items()})
        cells.append(tuple(_cell(here[m], measure, stands[m]) if m in here else None for m in methods))
        first = [rows["initial_ms"].iloc[0] for (p, _), rows in by.items() if p == problem]
        before.append(float(first[0]))
    return Grid(measure, tuple(problems), tuple(before), tuple(methods), tuple(cells), tuple(_notes(cells, ran, failed)))


def _changes(rows: pd.DataFrame) -> dict[Any, float]:
    """Changes in % by seed; by their place where there are no seeds."""
    seeds = rows["seed"] if _drawn(rows) else range(len(rows))
    pairs = zip(seeds, rows["initial_ms"], rows["cost_ms"], strict=True)
    return {s: 100 * (float(c) / float(i) - 1) if i else 0.0 for s, i, c in pairs}


def _drawn(rows: pd.DataFrame) -> bool:
    return "seed" in rows and bool(rows["seed"].notna().all())


def _stands(of: Mapping[str, Mapping[Any, float]], drawn: Mapping[str, bool]) -> dict[str, str]:
    """How each method compares with the one of the lowest interquartile mean."""
    if not of:
        return {}
    mean = {m: iqm(list(v.values())) for m, v in of.items()}
    best = min(mean, key=lambda m: mean[m])
    return {m: BEST if mean[m] <= mean[best] + 1e-9 else _versus(of[m], of[best], drawn[m], drawn[best]) for m in of}


def _versus(mine: Mapping[Any, float], best: Mapping[Any, float], drawn: bool, best_drawn: bool) -> str:
    """By the interval of the differences: of the same seeds, or of each run with the other's one that draws nothing."""
    apart = paired(mine, best) if drawn and best_drawn else [a - b for a in mine.values() for b in best.values()]
    if apart and max(map(abs, apart)) <= _SAME:
        return EQUAL
    if not drawn and not best_drawn:
        return WORSE  # neither draws: the difference is what it is
    if len(apart) < 2:
        return UNTESTED
    return WORSE if interval(apart)[0] > _SAME else EQUAL


def _cell(rows: pd.DataFrame, measure: str, stands: str) -> Cell:
    each = list(_changes(rows).values()) if measure == "change" else [float(v) for v in rows[measure]]
    low, high = interval(each)
    spent = tuple(float(rows[k].astype(float).median()) if k in rows else math.nan for k in ("evaluations", "seconds"))
    why = ", ".join(dict.fromkeys(str(s) for s in rows["stopped"].dropna())) if "stopped" in rows else ""
    return Cell(iqm(each), low, high, tuple(each), stands, (spent[0], spent[1]), why)


def _notes(cells: Sequence[Sequence[Cell | None]], ran: pd.DataFrame, failed: int) -> list[str]:
    found = ["less is better; costs are estimates of the price list, not measured times"]
    counts = sorted({len(c.each) for row in cells for c in row if c is not None and len(c.each) > 1})
    if counts:
        true = ", ".join(f"{100 * coverage(n):.0f} % with {n} seeds" for n in counts)
        mean = "the interquartile mean over seeds, in brackets its bootstrap interval"
        found.append(f"{mean}: {100 * LEVEL:.0f} % in name; of normal values they hold the true one in {true}")
    found.append("bold: the best of a row by its cost; ~: not told apart from it by the interval of differences; ?: one seed, not tested")
    if "status" in ran and (unproven := int((ran["status"] != "proven").sum())):
        found.append(f"{unproven} of {len(ran)} results are not proven")
    if failed:
        found.append(f"{failed} jobs failed and are not in here")
    return found
