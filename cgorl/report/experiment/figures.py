"""Figures: curves over seeds, cost over what was spent, and which rules were used; each a Picture for page, notebook and file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from cgorl.report.compare import band
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.kinds import ReportError
from cgorl.report.experiment.picture import GRID, Picture
from cgorl.report.figures import COLOURS, looks_of, panel, plain
from cgorl.report.metrics.chart import Values, thinned
from cgorl.report.metrics.curves import smoothed, spread
from cgorl.report.stats import LEVEL, coverage, interval, iqm

RETURN, INTRINSIC, BEST = "charts/episodic_return", "charts/episodic_intrinsic_return", "cost/best_share"
NAMES = {
    RETURN: "extrinsic return, % of first cost",
    INTRINSIC: "intrinsic return (curiosity)",
    BEST: "best cost so far, % of first",
    "charts/intrinsic_reward": "intrinsic reward a step",
    "global_step": "environment steps",
    "seconds": "seconds of wall-clock time",
    "updates": "updates",
    "evaluations": "evaluations (matches priced)",
}
_LEGEND_ROWS = 4
_POINTS = 300
_RULES, _BINS = 20, 10


def learning_curves(of: Experiment, metric: str = RETURN, axis: str = "global_step", smooth: float = 0.0) -> Picture:
    """A metric of trainings over `axis` (global_step, updates or seconds): a line and a band for each method, each run faint behind.

    The line is the interquartile mean over seeds, the band its bootstrap interval. `smooth` is the weight of the past, from 0
    to below 1. Raises ReportError for a metric or an axis that there is not.
    """
    for name in (metric, axis):
        if name not in of.metrics:
            raise ReportError(f"these runs have no metric '{name}'; there is {', '.join(_metrics(of)) or 'none: they are no trainings'}")
    figure, plot = _paper()
    scale = 100.0 if metric.endswith("_share") else 1.0
    counts: set[int] = set()
    looks = looks_of(of.methods)
    for method, runs in _by_method(of):
        points = [_points(one, metric, axis, smooth, scale) for _, one in runs]
        points = [(x, y) for x, y in points if len(x)]
        found = spread(points) if len(points) > 1 else None
        look = looks[method]
        for n, (x, y) in enumerate(points):
            alone = {"label": method if n == 0 else None, **look} if found is None else {"color": look["color"], "lw": 0.7, "alpha": 0.35}
            plot.plot(*thinned(x, y, _POINTS), **alone)
        if found is not None:
            counts.add(len(points))
            plot.fill_between(found[0], found[2], found[3], color=look["color"], alpha=0.18, lw=0)
            plot.plot(found[0], found[1], label=f"{method} ({len(points)} seeds)", **look)
    plot.set_xlabel(NAMES.get(axis, axis))
    plot.set_ylabel(NAMES.get(metric, metric))
    plot.xaxis.set_major_formatter(EngFormatter(sep=""))
    plot.yaxis.set_major_locator(MaxNLocator(6))
    _legend(figure, plot)
    told = f"{NAMES.get(metric, metric).partition(',')[0]} over {NAMES.get(axis, axis)}" + (f", smoothed ({smooth:g})" if smooth else "")
    return Picture(figure, told, f"{metric}. {_about_bands(counts)}")


def returns(of: Experiment, axis: str = "global_step", smooth: float = 0.0) -> list[Picture]:
    """The curves of extrinsic and of intrinsic returns, those that there are. Raises ReportError."""
    there = [m for m in (RETURN, INTRINSIC) if m in of.metrics and of.metrics[m].notna().any()]
    if INTRINSIC not in there and "charts/intrinsic_reward" in of.metrics and (of.metrics["charts/intrinsic_reward"] > 0).any():
        there.append("charts/intrinsic_reward")  # of a run from before there were intrinsic returns of episodes
    return [learning_curves(of, metric, axis, smooth) for metric in there]


def intervals(of: Experiment) -> list[Picture]:
    """The change of the cost by each method, a picture for each problem: each seed a dot, interquartile mean and interval a bar."""
    found = []
    for problem, ran in of.results.groupby("problem", sort=False):
        methods = [m for m in of.methods if (ran["method"] == m).any()]
        figure, plot = _paper(high=0.9 + 0.3 * len(methods))
        for k, method in enumerate(methods):
            rows = ran[ran["method"] == method]
            values = [100 * (float(c) / float(i) - 1) for i, c in zip(rows["initial_ms"], rows["cost_ms"], strict=True) if i]
            low, high = interval(values)
            colour = COLOURS[of.methods.index(method) % 7]
            if low == low:
                plot.plot([low, high], [k, k], color=colour, lw=6, alpha=0.35, solid_capstyle="butt")
            plot.plot(values, [k] * len(values), "o", ms=4, color=colour, alpha=0.75, mew=0)
            plot.plot([iqm(values)], [k], "|", ms=13, mew=2.5, color=colour)
        plot.set_yticks(range(len(methods)), [_cut(m, 40) for m in methods], fontsize=9)
        plot.set_ylim(len(methods) - 0.5, -0.5)
        plot.set_xlabel("change of the cost, % (less is better)")
        plot.grid(True, axis="x", lw=0.5, color=GRID)
        plot.grid(False, axis="y")
        plot.xaxis.set_major_locator(MaxNLocator(6))
        note = "Dots: each run. Line: interquartile mean. Bar: its bootstrap interval."
        found.append(Picture(figure, f"{problem}: change of the cost by method", note))
    return found


def cost_over_time(of: Experiment, axis: str = "") -> list[Picture]:
    """The best cost so far over what was spent (`axis`): of searches a picture for each problem, of trainings one.

    `axis` is evaluations or seconds of searches; global_step, updates or seconds of trainings. Raises ReportError.
    """
    if of.kind == "train":
        if BEST not in of.metrics or not of.metrics[BEST].notna().any():
            return []  # a run from before the share was logged
        return [learning_curves(of, BEST, axis or "global_step")]
    axis = axis or "evaluations"
    if not len(of.curves):
        return []
    if axis not in of.curves:
        raise ReportError(f"these searches have no '{axis}'; there is {', '.join(k for k in ('evaluations', 'seconds') if k in of.curves)}")
    looks = looks_of(list(dict.fromkeys(map(str, of.results["method"]))))
    found = []
    for problem, ran in of.results.groupby("problem", sort=False):
        figure, plot = _paper()
        initial = float(ran["initial_ms"].iloc[0])
        panel(plot, band(ran, of.curves, axis), axis, initial, looks)
        plot.set_xlabel(NAMES[axis])
        plot.set_ylabel(f"cost, % of {initial:.4g} ms")
        _legend(figure, plot)
        note = "Best cost so far, estimated: the median over seeds, and from lowest to highest. Dot: ended by itself; none: budget used up."
        found.append(Picture(figure, f"{problem}: cost over {axis}", note))
    return found


def rule_usage(of: Experiment) -> Picture | None:
    """A heat map of the rules in the best rewrites of each method's jobs (a mean over them); None where nothing was rewritten."""
    if not len(of.used):
        return None
    jobs = of.used.groupby("method", sort=False)["job"].nunique()
    table = of.used.pivot_table(index="rule", columns="method", values="count", aggfunc="sum", fill_value=0, sort=False)
    methods = [m for m in of.methods if m in table]
    table = table[methods] / [float(jobs[m]) for m in methods]
    note = "How many times each rule is in the best rewrites of a job: a mean over the jobs of a method."
    return _heat(table, "rules in the best rewrites", "", note)


def rule_usage_over_time(of: Experiment, method: str = "") -> Picture | None:
    """A heat map of the rules that episodes applied, over the course of the trainings of a method (the first); None without any.

    Cells are shares, in %, of all rewrites of that time. Raises ReportError for a method that there is not.
    """
    counts = [c for c in of.metrics.columns if c.startswith("rules/")] if len(of.metrics) else []
    if not counts:
        return None
    method = method or str(of.metrics["method"].iloc[0])
    lines = of.metrics[of.metrics["method"] == method]
    if not len(lines):
        raise ReportError(f"there is no method '{method}'; there is {', '.join(of.methods)}")
    step = lines["global_step"].astype(float)
    bins = min(_BINS, step.nunique())
    width = float(step.max()) / bins
    at = np.ceil(step / width).clip(1, bins).astype(int) if width else pd.Series(1, index=step.index)
    table = lines[counts].groupby(at).sum().T
    table = 100 * table / table.sum().replace(0, 1)
    table.index = [str(c).removeprefix("rules/") for c in table.index]
    marked = [k for k in table.columns if k % 2 == 0] if bins > 6 else list(table.columns)
    table.columns = [_short(k * width) if k in marked else "" for k in table.columns]
    table = table[table.max(axis=1) > 0]
    note = f"Shares, in %, of the rewrites that episodes applied ({method}), over environment steps: what was tried, not what was kept."
    return _heat(table, f"rules tried over time: {method}", "environment steps", note) if len(table) else None


def _metrics(of: Experiment) -> list[str]:
    return sorted(c for c in of.metrics.columns if "/" in c and not c.startswith(("config.", "rules/")))


def _by_method(of: Experiment) -> list[tuple[str, list[tuple[object, pd.DataFrame]]]]:
    return [(str(m), list(lines.groupby("job", sort=False))) for m, lines in of.metrics.groupby("method", sort=False)]


def _points(run: pd.DataFrame, metric: str, axis: str, smooth: float, scale: float) -> tuple[Values, Values]:
    x, y = run[axis].astype(float).to_numpy(), smoothed(scale * run[metric].astype(float).to_numpy(), smooth)
    known = ~np.isnan(x) & np.isfinite(y)
    return x[known], y[known]


def _about_bands(counts: set[int]) -> str:
    if not counts:
        return "One line for each run."
    true = ", ".join(f"{100 * coverage(n):.0f} % with {n} seeds" for n in sorted(counts))
    less = f"of normal values they hold the true one in {true}"
    return f"Lines: interquartile mean over seeds. Bands: its bootstrap interval, {100 * LEVEL:.0f} % in name; {less}. Faint: each run."


def _paper(wide: float = 4.8, high: float = 3.2) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(wide, high), dpi=150, layout="constrained")
    figure.patch.set_alpha(0)
    plot = figure.subplots()
    plot.patch.set_alpha(0)
    plain(plot)
    plot.tick_params(labelsize=9)
    return figure, plot


def _legend(figure: Figure, plot: Axes) -> None:
    handles, labels = plot.get_legend_handles_labels()
    if not labels:
        return
    columns = max(1, min(len(labels), 56 // (max(map(len, labels)) + 6)))
    over = -(-len(labels) // columns) - _LEGEND_ROWS
    if over > 0:  # a long legend makes the picture higher, not the plot smaller
        figure.set_figheight(figure.get_figheight() + 0.2 * over)
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, frameon=False, fontsize=9)


def _heat(table: pd.DataFrame, title: str, x_name: str, note: str) -> Picture:
    """The largest rows of a table as a heat map, with its numbers in it."""
    rows = table.max(axis=1).sort_values(ascending=False).index[:_RULES]
    left_out, shown = len(table) - len(rows), table.loc[rows]
    values = shown.to_numpy(float)
    longest = max(len(str(r)) for r in rows)
    figure, plot = _paper(high=0.9 + 0.24 * len(rows) + (0.3 if x_name else _tall(list(shown.columns))))
    image = plot.imshow(values, aspect="auto", cmap="cividis", vmin=0)
    figure.colorbar(image, ax=plot, shrink=0.9, pad=0.02).ax.tick_params(labelsize=8)
    plot.grid(False)
    slanted = not x_name and max(len(str(c)) for c in shown.columns) * len(shown.columns) > 60 - longest
    ticks: dict[str, Any] = {"rotation": 30, "ha": "right"} if slanted else {}
    plot.set_xticks(range(len(shown.columns)), [_cut(str(c), 28) for c in shown.columns], fontsize=8, **ticks)
    plot.set_yticks(range(len(rows)), [str(r) for r in rows], fontsize=8)
    plot.set_xlabel(x_name)
    for (i, j), v in np.ndenumerate(values):
        ink = "#fffffe" if v < 0.55 * values.max() else "#010101"  # not the page's own colours: they lie on a cell
        plot.text(j, i, f"{v:.0f}" if v >= 9.5 or v == round(v) else f"{v:.1f}", ha="center", va="center", fontsize=7, color=ink)
    return Picture(figure, title, note + (f" {left_out} more rules, used less, are left out." if left_out else ""))


def _short(steps: float) -> str:
    return f"{steps:.0f}" if steps < 1000 else EngFormatter(places=1, sep="")(steps).replace(".0", "")


def _tall(columns: Sequence[object]) -> float:
    return min(1.4, 0.3 + 0.035 * max(len(str(c)) for c in columns))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
