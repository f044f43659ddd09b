"""Figures: pictures of results as files, drawn with matplotlib and without a display."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from cgorl.report.compare import AXES, band
from cgorl.tracking import TrackError

# Okabe and Ito's colours, which the colour-blind tell apart; their yellow is too light for a line. Line styles tell more apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STYLES = ("-", "--", "-.", ":")
_LABELS = {"evaluations": "evaluations (matches priced)", "seconds": "seconds"}
_NOTE = (
    "Best cost so far, estimated; median, and from lowest to highest where there are seeds. Dot: ended by itself; no dot: budget used up."
)
GREY = "#595959"


def anytime(ran: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """The anytime curves of `labelled` searches: a row a problem; evaluations on the left, seconds on the right.

    A line is the median over seeds, its band reaches from the lowest to the highest. A dot marks where a method ended by
    itself, dots after it that its last value holds; a line without a dot was cut off by its budget. Lines that lie on each
    other are all seen, since the lower ones are wider.
    """
    problems, methods = list(dict.fromkeys(ran["problem"])), list(dict.fromkeys(ran["method"]))
    looks = looks_of(methods)
    figure = Figure(figsize=(10, 0.9 + 3.1 * len(problems)), dpi=150, layout="constrained")
    axes = figure.subplots(len(problems), 2, squeeze=False, sharey="row")
    for row, problem in zip(axes, problems, strict=True):
        group = ran[ran["problem"] == problem]
        initial = float(group["initial_ms"].iloc[0])
        for axis, plot in zip(AXES, row, strict=True):
            panel(plot, band(group, curves, axis), axis, initial, looks)
            plot.set_xlabel(_LABELS[axis])
        row[0].set_ylabel(f"cost, % of {initial:.4g} ms")
        row[0].set_title(problem, loc="left", fontsize=10)
    handles = {line.get_label(): line for plot in axes.flat for line in plot.get_lines() if not str(line.get_label()).startswith("_")}
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=min(5, len(handles)), frameon=False, fontsize=9)
    figure.supxlabel(_NOTE, x=0.01, ha="left", fontsize=8, color=GREY)
    return figure


def looks_of(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, style and width of each method's line: where lines lie on each other, all are seen."""
    widths = (1.4 + 2.6 * (len(methods) - 1 - k) / max(1, len(methods) - 1) for k in range(len(methods)))
    styles = zip(methods, widths, strict=True)
    return {m: {"color": COLOURS[k % 7], "ls": _STYLES[k // 7 % 4], "lw": w} for k, (m, w) in enumerate(styles)}


def panel(plot: Axes, bands: pd.DataFrame, axis: str, initial: float, looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Draws the `band` of one problem; `looks` are the line styles of the methods. See `anytime`."""
    plain(plot)
    later = bands.loc[bands[axis] > 0, axis]
    changes = bands.loc[(bands["low_ms"] < initial * (1 - 1e-12)) & (bands[axis] > 0), axis]
    left = 0.5 * float((changes if len(changes) else later).min()) if len(later) else 1.0  # where the first line begins to fall
    right = 1.25 * float(bands[axis].max()) if len(later) else 10.0
    for method, steps in bands.groupby("method", sort=False):
        look = looks[str(method)]
        x = [max(left, float(v)) for v in steps[axis]]
        middle, low, high = (list(steps[k] / initial) for k in ("median_ms", "low_ms", "high_ms"))
        n = int(steps["n"].iloc[0])
        if x[0] > left:  # until a search has priced anything, the graph that it began with is its best; a lone point is no line
            x, middle, low, high = [left, *x], [middle[0], *middle], [low[0], *low], [high[0], *high]
        plot.plot(x, middle, drawstyle="steps-post", solid_capstyle="butt", label=f"{method} ({n} seeds)" if n > 1 else str(method), **look)
        if n > 1:
            plot.fill_between(x, low, high, step="post", color=look["color"], alpha=0.18, lw=0)
        if steps["by_itself"].iloc[0]:
            plot.plot([x[-1], right], [middle[-1]] * 2, ls=(0, (1, 3)), lw=1.2, color=look["color"])
            plot.plot([x[-1]], [middle[-1]], "o", ms=5, color=look["color"])
    plot.set_xscale("log")
    plot.set_xlim(left, right)
    plot.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if right < 30 * left else (1,)))
    plot.xaxis.set_minor_formatter(NullFormatter())
    plot.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 1 else f"{v:g}"))
    plot.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))


def progress(metrics: Path, problem: str, method: str, stopped: str) -> Figure | None:
    """The anytime curve of one run from its metrics.jsonl; None below two points."""
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    points = [p for line in lines if "best_ms" in (p := json.loads(line))]
    if len(points) < 2:
        return None
    curve = pd.DataFrame(points)[["best_ms", *AXES]].assign(job=1)
    ran = pd.DataFrame(
        [{**points[-1], "job": 1, "problem": problem, "method": method, "stopped": stopped, "initial_ms": points[0]["best_ms"]}]
    )
    return anytime(ran, curve)


def save(figure: Figure, path: Path) -> Path:
    """Writes the figure as PNG, SVG or PDF, by the ending of `path`. Raises TrackError."""
    FigureCanvasAgg(figure)
    try:
        figure.savefig(path)
    except OSError as e:
        raise TrackError(f"cannot write the picture '{path}': {e.strerror or e}") from None
    return path


def plain(plot: Axes) -> None:
    """Draws two axes and a light grid, as in all figures here."""
    plot.spines[["top", "right"]].set_visible(False)
    plot.grid(True, which="major", lw=0.5, color="#d9d9d9")
    plot.set_axisbelow(True)
    plot.tick_params(labelsize=8, labelcolor=GREY, color=GREY)
    plot.xaxis.label.set(size=9)
    plot.yaxis.label.set(size=9)


def names(models: Sequence[str]) -> dict[str, str]:
    """A file name without its ending for the picture of each model, all different."""
    found: dict[str, str] = {}
    for model in models:
        stem = "".join(c if c.isalnum() or c in "_.-" else "_" for c in Path(model).stem) or "model"
        taken = set(found.values())
        found[model] = next(n for n in (f"anytime_{stem}", *(f"anytime_{stem}_{k}" for k in range(2, 9999))) if n not in taken)
    return found
