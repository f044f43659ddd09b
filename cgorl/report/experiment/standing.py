"""Standing: the methods of an experiment held against each other, on the same seeds where they have them."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.figures import INTRINSIC, RETURN
from cgorl.report.experiment.kinds import ReportError
from cgorl.report.grid import Grid, GridError, grid
from cgorl.report.stats import interval, iqm, paired

_LAST = 0.1
"""The share of a training at its end that its last returns are a mean over."""
_SAME = 1e-3
LOWER, HIGHER, EQUAL, APART, ALONE = "lower", "higher", "equal", "not told apart", "one value: not tested"


class Spread(NamedTuple):
    """An interquartile mean, its bootstrap interval (nan for fewer than two values), and each value."""

    value: float
    low: float
    high: float
    each: tuple[float, ...]

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """The spread of values; nan of none."""
        known = [float(v) for v in values if not math.isnan(v)]
        return cls(iqm(known), *interval(known), tuple(known))


def comparison(of: Experiment, measure: str = "change") -> Grid:
    """Problems by methods, with intervals over seeds: `.cells`; cgorl.report.exports writes it as CSV, LaTeX, Markdown, HTML.

    `cgorl.widgets.CompareTable(of.results)` shows the same. Raises ReportError where no job came to a cost.
    """
    if not len(of.results):
        raise ReportError("no job has come to a cost yet: there is nothing to compare")
    try:
        return grid(of.results, measure, failed=int((of.jobs["error"] != "").sum()))
    except GridError as e:
        raise ReportError(str(e)) from None


def differences(of: Experiment, reference: str = "") -> pd.DataFrame:
    """Each method less the `reference` (the one of the lowest mean change), problem by problem, in points of % change.

    Columns: problem, method, reference, difference (interquartile mean), low, high, n, verdict. With seeds on both sides the
    differences are of the same seeds; a method that draws nothing is held against each run of the other. Raises ReportError.
    """
    if reference and reference not in of.methods:
        raise ReportError(f"there is no method '{reference}'; there is {', '.join(of.methods)}")
    rows = []
    for problem, ran in of.results.groupby("problem", sort=False):
        changes = {str(m): _changes(one) for m, one in ran.groupby("method", sort=False)}
        against = reference or min(changes, key=lambda m: iqm(list(changes[m].values())))
        if against not in changes:
            continue
        for method, mine in changes.items():
            if method == against:
                continue
            drawn = all(isinstance(k, int) for k in (*mine, *changes[against]))
            pairs = (
                paired(dict(mine), dict(changes[against])) if drawn else [a - b for a in mine.values() for b in changes[against].values()]
            )
            low, high = interval(pairs)
            sure = not drawn and len(pairs) == 1
            told = _verdict(pairs, low, high, sure)
            rows.append((problem, method, against, iqm(pairs), low, high, len(pairs), told))
    return pd.DataFrame(rows, columns=["problem", "method", "reference", "difference", "low", "high", "n", "verdict"])


def ends(of: Experiment) -> pd.DataFrame:
    """What the trainings of each method came to at their ends: a row a method, with a Spread in each column.

    `change` is best over first cost in %; `extrinsic` and `intrinsic` are the returns of episodes, a mean over the last tenth
    of the steps; `steps_per_second` is a mean over all of them.
    """
    rows = []
    for method in of.methods:
        jobs = of.jobs[of.jobs["method"] == method]
        lines = of.metrics[of.metrics["method"] == method] if len(of.metrics) else of.metrics
        row = {"method": method, "jobs": len(jobs), "failed": int((jobs["error"] != "").sum())}
        row["change"] = Spread.of([float(v) for v in jobs["change"]])
        for name, metric in (("extrinsic", RETURN), ("intrinsic", INTRINSIC)):
            row[name] = Spread.of([_last(one, metric) for _, one in lines.groupby("job", sort=False)] if metric in lines else [])
        speed = [float(one["charts/SPS"].mean()) for _, one in lines.groupby("job", sort=False)] if "charts/SPS" in lines else []
        row["steps_per_second"] = Spread.of(speed)
        rows.append(row)
    return pd.DataFrame(rows)


def _last(run: pd.DataFrame, metric: str) -> float:
    step = run["global_step"].astype(float)
    return float(run.loc[step >= (1 - _LAST) * step.max(), metric].mean())


def _changes(rows: pd.DataFrame) -> dict[object, float]:
    """Changes in % by seed; by their place, as text, where there are none."""
    seeds = rows["seed"] if "seed" in rows and rows["seed"].notna().all() else [f"run {k}" for k in range(len(rows))]
    found: dict[object, float] = {}
    for seed, first, cost in zip(seeds, rows["initial_ms"], rows["cost_ms"], strict=True):
        found[seed if isinstance(seed, str) else int(seed)] = 100 * (float(cost) / float(first) - 1) if first else 0.0
    return found


def _verdict(pairs: list[float], low: float, high: float, sure: bool) -> str:
    if not pairs:
        return "no seed in common"
    if max(map(abs, pairs)) <= _SAME:
        return EQUAL
    if sure:
        return HIGHER if pairs[0] > 0 else LOWER
    if len(pairs) < 2:
        return ALONE
    return HIGHER if low > _SAME else LOWER if high < -_SAME else APART
