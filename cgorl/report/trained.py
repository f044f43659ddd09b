"""A training on the screen: how it goes, with the time that is left, and what it came to; and the table of a sweep."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.table import Column, Table


class Progress:
    """Told of each update: one line that is renewed on a terminal, a line every half minute elsewhere."""

    def __init__(self, console: Console) -> None:
        """On a console."""
        self._console, self._said = console, -1e9
        self._status = console.status("listing the matches ...") if console.is_terminal else None

    def __enter__(self) -> Progress:
        """Begins to show."""
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Ends."""
        if self._status is not None:
            self._status.stop()

    def __call__(self, update: Any) -> None:
        """Shows an update."""
        rate = update.metrics["charts/SPS"]
        left = max(0, update.total - update.steps) / rate if rate else float("nan")
        value = update.metrics.get("charts/episodic_return", float("nan"))
        text = (
            f"step {update.steps:,} of {update.total:,}  {rate:.0f} steps/s  return {value:.3f}  "
            f"best {100 * (1 - update.share):.2f} % saved  {_clock(left)} left"
        )
        if self._status is not None:
            self._status.update(text)
        elif time.monotonic() - self._said > 30:
            self._said = time.monotonic()
            self._console.print(text, highlight=False)


def _clock(seconds: float) -> str:
    if seconds != seconds:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def show(done: Any, console: Console, folder: Path) -> None:
    """Prints what a training came to."""
    numbers = (Column(head, justify="right") for head in ("first ms", "best ms", "saved", "rewrites", "greedy's rewrites"))
    table = Table("model", *numbers)
    for r in done.rows:
        saved = 1 - r["best_ms"] / r["first_ms"] if r["first_ms"] else 0.0
        table.add_row(
            *(r["model"], f"{r['first_ms']:.4f}", f"{r['best_ms']:.4f}", f"{100 * saved:.2f} %"),
            *(str(r["rewrites"]), str(r["greedy_rewrites"])),
        )
    console.print(table)
    console.print(f"{done.stopped}: {done.steps:,} steps in {_clock(done.seconds)}", highlight=False)
    total = sum(done.spent.values()) or 1.0
    console.print("time      " + ", ".join(f"{k} {100 * v / total:.0f} %" for k, v in done.spent.items()), highlight=False)
    console.print(f"run       {folder}", highlight=False, markup=False, soft_wrap=True)


def show_sweep(done: Sequence[Any], console: Console, place: Path) -> None:
    """Prints a row for each job of the sweep in the folder `place`, which failed, and how they are compared."""
    table = Table(Column("job", justify="right"), "overrides", Column("saved", justify="right"), Column("run or error", overflow="fold"))
    for d in done:
        saved = "" if d.share is None else f"{100 * (1 - d.share):.3f} %"
        table.add_row(str(d.job.number), d.job.words, saved, f"failed: {d.error}" if d.error else d.folder)
    console.print(table)
    if failed := [d for d in done if d.error]:
        console.print(f"failed: {len(failed)} of {len(done)} jobs", highlight=False)
    console.print(f"sweep     {place}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"compare   python scripts/report.py sweep={shlex.quote(str(place))}", highlight=False, markup=False, soft_wrap=True)
