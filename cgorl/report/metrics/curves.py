"""Curves: runs overlaid, those that differ in nothing but their seed as one line with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgorl.report.metrics.chart import Chart, Line, Values, thinned
from cgorl.report.metrics.log import Log
from cgorl.report.stats import interval, iqm

AXES = ("global_step", "evaluations", "seconds", "expansions", "updates")
"""What a curve may be drawn over, the first that there is by itself."""
FIRST = ("charts/episodic_return", "best_ms", "cost_ms")
"""What is drawn by itself, the first that there is."""
_NO_CHOICE = ("runs", "output")
_POINTS, _GRID, _DRAWS = 300, 100, 300


class Run(NamedTuple):
    """A run with its configuration, flat; none of a run that kept none."""

    log: Log
    about: Mapping[str, Any]


class Group(NamedTuple):
    """Runs that differ in nothing but their seed, and what tells them from the other groups."""

    label: str
    runs: Sequence[Run]


def groups(runs: Sequence[Run]) -> list[Group]:
    """The runs by configuration; a run without one stands alone, under its folder's name."""
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        about = ((k, str(v)) for k, v in run.about.items() if not _seed(k) and k not in _NO_CHOICE)
        found.setdefault(("about", *sorted(about)) if run.about else ("folder", run.log.folder), []).append(run)
    known = [dict(key[1:]) if key[0] == "about" else {} for key in found]
    told = [about for about, key in zip(known, found, strict=True) if key[0] == "about"]
    told = [_chosen(about) for about in told]
    known = [_chosen(about) for about in known]
    varied = [k for k in dict.fromkeys(k for about in told for k in about) if len({about[k] for about in told if k in about}) > 1]
    return [Group(_label(about, varied, of), of) for about, of in zip(known, found.values(), strict=True)]


def _seed(key: str) -> bool:
    return key.rpartition(".")[2] == "seed"


def _chosen(about: Mapping[str, str]) -> dict[str, str]:
    """A choice of a group by the name of its class, or `none`, so that only what two choices both have is compared further."""
    found = {k: "none" if v == "{}" else v for k, v in about.items() if not k.endswith("._target_")}
    return found | {k.removesuffix("._target_"): v.rpartition(".")[2] for k, v in about.items() if k.endswith("._target_")}


def _label(about: Mapping[str, str], varied: Sequence[str], runs: Sequence[Run]) -> str:
    told = " ".join(f"{k}={about[k]}" for k in varied if k in about)
    name = told or about.get("model") or runs[0].log.folder.name
    return f"{name} ({len(runs)} seeds)" if len(runs) > 1 else name


def smoothed(y: Values, weight: float) -> Values:
    """The exponential moving average with `weight` on the past, without the pull of a beginning at 0; nan stays and counts for nothing."""
    if not weight:
        return y
    found, mean, mass = np.full(len(y), np.nan), 0.0, 0.0
    for k, value in enumerate(y):
        if value == value:
            mean, mass = weight * mean + (1 - weight) * value, weight * mass + (1 - weight)
            found[k] = mean / mass
    return found


def chart(of: Sequence[Group], metric: str, axis: str, weight: float = 0.0, band: bool = True) -> Chart:
    """The runs' `metric` over `axis`. With `band`, groups of several as interquartile mean and 95 % interval, each run faint behind.

    The line of a group goes as far as each of its runs: beyond, it would be one of fewer runs.
    """
    lines: list[Line] = []
    steps = metric in ("best_ms",)
    for colour, group in enumerate(of):
        points = [_points(run, metric, axis, weight) for run in group.runs]
        points = [(x, y) for x, y in points if len(x)]
        many = band and len(points) > 1
        for x, y in points:
            lines.append(Line(group.label, colour, *thinned(x, y, _POINTS), faint=many, steps=steps))
        if many and (found := spread(points)) is not None:
            lines.append(Line(group.label, colour, *found))
    lines.sort(key=lambda line: not line.faint)
    return Chart(lines, axis, metric if not weight else f"{metric} (smoothed, {weight:g})")


def _points(run: Run, metric: str, axis: str, weight: float) -> tuple[Values, Values]:
    x, y = run.log.column(axis), smoothed(run.log.column(metric), weight)
    known = ~np.isnan(x) & np.isfinite(y)
    return x[known], y[known]


def spread(points: Sequence[tuple[Values, Values]]) -> tuple[Values, Values, Values, Values] | None:
    """x, interquartile mean, low and high over runs, where all of them have values; None where that is nowhere."""
    low, high = max(x[0] for x, _ in points), min(x[-1] for x, _ in points)
    if not low < high:
        return None
    every = np.unique(np.concatenate([x[(x >= low) & (x <= high)] for x, _ in points]))
    grid = every if len(every) <= _GRID else np.linspace(low, high, _GRID)
    values_RG = np.array([np.interp(grid, x, y) for x, y in points])
    ends = np.array([interval(list(column), draws=_DRAWS) for column in values_RG.T])
    middle = np.array([iqm(list(column)) for column in values_RG.T])
    return grid, middle, ends[:, 0], ends[:, 1]


def last(run: Run, metric: str) -> float:
    """The last value that a run has of a metric; nan for none."""
    y = run.log.column(metric)
    known = y[~np.isnan(y)]
    return float(known[-1]) if len(known) else float("nan")
