"""Agreement: a picture of what was foretold against what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from cgorl.report.figures import COLOURS, GREY, plain


def agreement(
    models: Sequence[tuple[str, float, float]],
    pairs: Sequence[tuple[float, float]],
    variants: Sequence[tuple[float, float]],
    name: str,
    note: str,
) -> Figure:
    """Three panels, foretold on the x axis and measured on the y axis; those without points are left out.

    `models` are times in ms by name, `pairs` times before over times after a substitution, `variants` times in ms of variants
    of the model `name`. `note` says where it was measured.
    """
    panels = [p for p in ("models", "pairs", "variants") if {"models": models, "pairs": pairs, "variants": variants}[p]]
    figure = Figure(figsize=(4.2 * max(1, len(panels)), 4.4), dpi=150, layout="constrained")
    axes = figure.subplots(1, max(1, len(panels)), squeeze=False)[0]
    for panel, plot in zip(panels, axes, strict=False):
        plain(plot)
        if panel == "models":
            _points(plot, [(a, b) for _, a, b in models], "models, ms")
            for k, (label, a, b) in enumerate(sorted(models, key=lambda m: m[1])):  # under the line and over it in turn
                at, side = ((5, -7), "left") if k % 2 == 0 else ((-5, 3), "right")
                plot.annotate(label, (a, b), at, textcoords="offset points", fontsize=6, color=GREY, ha=side)
        elif panel == "pairs":
            _points(plot, pairs, "substitutions, time before over after")
            plot.axhline(1.0, color=GREY, lw=0.8)
            plot.axvline(1.0, color=GREY, lw=0.8)
        else:
            _points(plot, variants, f"variants of {name}, ms")
    figure.supxlabel(f"One point each; on the line: foretold as measured. {note}", x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def _points(plot: Axes, points: Sequence[tuple[float, float]], title: str) -> None:
    both = [v for p in points for v in p if v > 0]
    wide = max(both) > 4 * min(both)
    low, high = min(both) / (1.7 if wide else 1.05), max(both) * (1.7 if wide else 1.05)
    if wide:
        plot.set_xscale("log")
        plot.set_yscale("log")
        for axis in (plot.xaxis, plot.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            axis.set_minor_formatter(NullFormatter())
    plot.plot([low, high], [low, high], "-", color=GREY, lw=0.8)
    plot.plot(*zip(*points, strict=True), "o", ms=4, color=COLOURS[0], alpha=0.8)
    plot.set_xlim(low, high)
    plot.set_ylim(low, high)
    plot.set_xlabel("foretold")
    plot.set_ylabel("measured", fontsize=9)
    plot.set_title(title, loc="left", fontsize=10)
