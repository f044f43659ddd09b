"""RunView: the curves of trainings and searches, while they run and after."""

from __future__ import annotations

import threading
import time
from html import escape
from pathlib import Path
from typing import Any

import traitlets

from cgorl import config
from cgorl.config import ConfigError
from cgorl.report.metrics.chart import Chart, packed, short, svg
from cgorl.report.metrics.curves import AXES, FIRST, Group, Run, chart, groups, last
from cgorl.report.metrics.log import Log, RunError, folders
from cgorl.report.stats import LEVEL, coverage
from cgorl.tracking import flat
from cgorl.widgets.assets import module
from cgorl.widgets.widget import Widget, figure, row

_MOST = 40
_PAUSE, _LONG_PAUSE, _PATIENCE, _RENEWED = 1.0, 5.0, 60, 30.0


class RunView(Widget):
    """Curves of runs over each other: `RunView("runs/train/2026-...")`, or of all runs in a folder: `RunView("runs/train")`.

    Each path is the folder of a run, or one with runs in it, in which new ones are found as they begin. Runs that differ in
    nothing but their seed are one line with an interval (`band`), or one line each. `metric` is what to draw, `axis` over what,
    `smooth` the weight of the past from 0 to below 1. The files are read on while runs write them (`live`), at most once a
    second; `close()` ends that. Raises RunError where there is no such folder, or no such metric.
    """

    _esm = module("run_view.js")
    picture = traitlets.Bytes(b"").tag(sync=True)
    metrics = traitlets.List(traitlets.Unicode()).tag(sync=True)
    axes = traitlets.List(traitlets.Unicode()).tag(sync=True)
    metric = traitlets.Unicode("").tag(sync=True)
    axis = traitlets.Unicode("").tag(sync=True)
    smooth = traitlets.Float(0.0, min=0.0, max=0.99).tag(sync=True)
    band = traitlets.Bool(True).tag(sync=True)
    height = traitlets.Int(340).tag(sync=True)

    def __init__(
        self,
        *paths: str | Path,
        metric: str = "",
        axis: str = "",
        smooth: float = 0.0,
        band: bool = True,
        live: bool = True,
        height: int = 340,
    ) -> None:
        self._paths = [Path(p) for p in paths]
        self._runs: dict[Path, Run] = {}
        self._left_out = 0
        self._lock = threading.RLock()
        self._closed = threading.Event()
        if not paths:
            raise RunError("the folder of a run must be given, or one with runs in it")
        super().__init__(metric=metric, axis=axis, smooth=smooth, band=band, height=height)
        self.read()
        if metric and metric not in self.metrics and any(r.log.lines for r in self._runs.values()):
            raise RunError(f"there is no metric '{metric}' in these runs; there is {', '.join(self.metrics)}")
        self.observe(lambda _: self._draw(), ["metric", "axis", "smooth", "band"])
        if live and not self._over():
            threading.Thread(target=self._watch, daemon=True, name="RunView").start()

    def read(self) -> bool:
        """Reads on in the files and finds runs that have begun; whether there was anything new. Raises RunError."""
        with self._lock:
            there = list(dict.fromkeys(f for path in self._paths for f in folders(path)))
            self._left_out = max(0, len(there) - _MOST)
            for folder in there[-_MOST:]:
                if folder not in self._runs:
                    self._runs[folder] = Run(Log(folder), _about(folder))
            new = [run.log.read() for run in self._runs.values()]
            self._name()
            before = self.picture
            self._draw()
            return any(new) or self.picture != before

    def _name(self) -> None:
        """What can be drawn, and what is drawn where nothing was asked for."""
        names = sorted({n for r in self._runs.values() for n in r.log.names})
        axes = [a for a in AXES if a in names]
        metrics = [n for n in names if n not in AXES]
        with self.hold_trait_notifications():
            if metrics != self.metrics:
                self.metrics = metrics
            if axes != self.axes:
                self.axes = axes
            if not self.axis and axes:
                self.axis = axes[0]
            if not self.metric and metrics:
                self.metric = next((m for m in FIRST if m in metrics), metrics[0])

    def chart(self) -> Chart:
        """What is drawn now."""
        return chart(self._groups(), self.metric, self.axis, self.smooth, self.band)

    def _groups(self) -> list[Group]:
        return groups(list(self._runs.values()))

    def _note(self) -> str:
        """What the bands are, and how far they can be trusted."""
        counts = sorted({len(g.runs) for g in self._groups() if len(g.runs) > 1})
        if not counts or not self.band:
            return ""
        true = ", ".join(f"{100 * coverage(n):.0f} % with {n} seeds" for n in counts)
        less = f"of normal values they hold the true one in {true}"
        return f"bands: {100 * LEVEL:.0f} % bootstrap intervals of the interquartile mean; {less}"

    def _rows(self) -> list[list[Any]]:
        """A row a run: its group's number and label, folder, state, lines, the last value."""
        rows = []
        for k, group in enumerate(self._groups()):
            for run in group.runs:
                seed = next((v for key, v in run.about.items() if key.rpartition(".")[2] == "seed"), "")
                state = run.log.state() + (f"; {run.log.unread} lines cannot be read" if run.log.unread else "")
                value = last(run, self.metric)
                rows.append([k, group.label, str(seed), run.log.folder.name, state, run.log.lines, None if value != value else value])
        return rows

    def _draw(self) -> None:
        with self._lock:
            made = packed(self.chart(), rows=self._rows(), left_out=self._left_out, note=self._note())
            if made != self.picture:
                self.picture = made

    def _over(self) -> bool:
        """Whether nothing more can come: each path is a run, and each run is over."""
        return set(self._paths) <= set(self._runs) and all(r.log.over for r in self._runs.values())

    def _watch(self) -> None:
        quiet, renewed = 0, time.monotonic()
        while not self._closed.wait(_PAUSE if quiet < _PATIENCE else _LONG_PAUSE):
            try:
                quiet = 0 if self.read() else quiet + 1
            except RunError:
                quiet += 1  # the folder is gone; what was read of it stays to be seen
            over = self._over()
            if over or (not quiet and time.monotonic() - renewed > _RENEWED):
                renewed = time.monotonic()
                self.renew()
            if over:
                return

    def close(self) -> None:
        """Ends the reading and the views."""
        self._closed.set()
        super().close()

    def static(self) -> str:
        """The curves as a picture, and the runs as a table."""
        with self._lock:
            drawn, rows = self.chart(), self._rows()
        parts = [figure(svg(drawn), repr(self))] if drawn.lines else [f"<p>{escape(repr(self))}</p>"]
        parts.append("<table>" + row(("run", "seed", "folder", "state", "lines", f"last {self.metric}"), (1, 4, 5), "th"))
        for _, label, seed, folder, state, lines, value in rows:
            parts.append(row((label, seed, folder, state, str(lines), "" if value is None else short(value)), (1, 4, 5)))
        notes = [self._note(), f"and {self._left_out} older ones" if self._left_out else ""]
        return "".join([*parts, "</table>", *(f"<p>{escape(n)}</p>" for n in notes if n)])

    def __repr__(self) -> str:
        """One line."""
        count = f"{len(self._runs)} run" + ("s" if len(self._runs) != 1 else "")
        return f"RunView({count}, {self.metric} over {self.axis})" if self.metric else f"RunView({count}, no metrics yet)"


def _about(folder: Path) -> dict[str, Any]:
    try:
        return flat(config.plain(config.kept(folder / "config.yaml")))
    except ConfigError:
        return {}  # a run that kept none is told by its folder
