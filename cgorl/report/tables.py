"""Tables: an evaluation on a terminal; each job as it goes, then what failed, and the methods at equal budgets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from cgorl.report.compare import AXES, compare, ends, labelled
from cgorl.report.landscape import verdict
from cgorl.report.screen import decimals, pace
from cgorl.search.searcher import Budget
from cgorl.search.searcher import Progress as SearchProgress
from cgorl.tracking import TrackError


class Board:
    """Shows the jobs of an evaluation as they pass: a line for each that ends, and on a terminal the one that runs."""

    def __init__(self, console: Console, jobs: int) -> None:
        """Writes to `console`."""
        self.console, self._jobs = console, jobs
        self._budget, self._number, self._words, self._told = Budget(), 0, "", time.monotonic()
        columns = (MofNCompleteColumn(), BarColumn(bar_width=8), TextColumn("{task.fields[text]}"))
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task("jobs", total=jobs, text="")

    def __enter__(self) -> Board:
        """Starts the display."""
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the display."""
        if self.console.is_terminal:
            self._bar.stop()

    def begin(self, number: int, words: str, budget: Budget) -> None:
        """A job begins."""
        self._number, self._words, self._budget, self._told = number, words, budget, time.monotonic()
        self._bar.update(self._task, text=escape(f"{words}: load"), completed=number - 1)

    def progress(self, progress: SearchProgress) -> None:
        """Its search goes on."""
        if self.console.is_terminal:
            self._bar.update(self._task, text=escape(f"{pace(progress, self._budget)[0]}  {self._words}"))
        elif time.monotonic() - self._told > 10:
            self._told = time.monotonic()
            self.say(f"{self._number}/{self._jobs}  {self._words} ... {pace(progress, self._budget)[0]}")

    def end(self, row: Mapping[str, Any]) -> None:
        """A job has ended with this row."""
        self._bar.update(self._task, completed=self._number)
        if row["error"] and "cost_ms" not in row:
            text = f"FAILED: {row['error']}"
        else:
            text = f"{row['cost_ms']:.{decimals(row['initial_ms'])}f} ms ({0.0 - 100 * row['improvement']:+.2f} %), "
            text += f"{row['evaluations']:,} priced, {row['seconds']:.1f} s, {row['stopped']}"
            text += f"; {row['status']}" if row["status"] != "not proven" else ""
        self.say(f"{self._number}/{self._jobs}  {self._words}: {text}")

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def show_comparison(results: pd.DataFrame, curves: pd.DataFrame, console: Console, once: tuple[str, ...] = ()) -> None:
    """Prints the methods of each problem at equal evaluations and at equal seconds, then what failed. `once`: see Plan."""
    ran = labelled(results)
    if len(ran):
        ended, budgets = ends(ran), {axis: compare(ran, curves, axis) for axis in AXES}
        proof = "proven" if (ran["status"] == "proven").all() else "not proven (prove=true proves each)"
        for problem in ended["problem"].unique():
            mine = ended[ended["problem"] == problem]
            before = float(mine["initial_ms"].iloc[0])
            head = f"[bold]{escape(problem)}[/]: {before:.{decimals(before)}f} ms before the search; costs in ms, estimated, {proof}"
            console.print(f"\n{head}", highlight=False, soft_wrap=True)
            for axis in AXES:
                table = budgets[axis]
                console.print(_equal(table[table["problem"] == problem], mine, axis))
        notes = ["bold: the best; *: had ended by itself before, its last value holds; no column goes past where a limit cut a method off"]
        if (ended["n"] > 1).any():
            notes.append("several seeds: the median, and from lowest to highest")
        if once:
            notes.append(f"run once, since without a seed: {', '.join(once)}")
        for note in [*notes, "seconds are wall-clock"]:
            console.print(note, style="dim", highlight=False, soft_wrap=True)
    show_failures(results, console)


def _equal(table: pd.DataFrame, ended: pd.DataFrame, axis: str) -> Table:
    priced = axis == "evaluations"
    shown = Table(title=f"at equal {axis}", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("method", overflow="fold", min_width=min(24, max(len(m) for m in ended["method"])))
    budgets = sorted(table["budget"].unique())
    moved = [b for b in budgets if (table.loc[table["budget"] == b, "low_ms"] < ended["initial_ms"].iloc[0]).any()]
    for budget in moved or budgets[-1:]:
        shown.add_column(f"{budget:,.0f}" if priced else f"{budget:.3g} s", justify="right", overflow="fold")
    for head in ("at its end", "change", axis) if priced else (f"{axis} to its end",):
        shown.add_column(head, justify="right")
    digits = decimals(float(ended["initial_ms"].iloc[0]))
    cells = {(r.method, r.budget): _cell(r, digits, "*" if r.ended == r.n else "") for r in table.itertuples()}
    for r in ended.itertuples():
        change = f"{100 * (r.median_ms / r.initial_ms - 1):+.2f} %" if r.initial_ms else ""
        last = (_cell(r, digits), change, f"{r.evaluations:,.0f}") if priced else (f"{r.seconds:.2f}",)
        shown.add_row(escape(str(r.method)), *(cells[r.method, b] for b in moved or budgets[-1:]), *last)
    return shown


def _cell(row: Any, digits: int, mark: str = "") -> str:
    middle, low, high = (f"{v:.{digits}f}" for v in (row.median_ms, row.low_ms, row.high_ms))
    text = f"[bold]{middle}{mark}[/]" if row.best else f"{middle}{mark}"
    return text if low == high else f"{text}\n[dim]{low}-{high}[/]"


def show_failures(results: pd.DataFrame, console: Console) -> None:
    """Prints a table of the jobs that failed, if there are any."""
    bad = results[results["status"].isin(("failed", "proof failed"))]
    if not len(bad):
        return
    table = Table(title=f"failed: {len(bad)} of {len(results)} jobs", title_justify="left", header_style="bold red")
    for head in ("job", "model", "rules", "search", "seed", "why"):
        table.add_column(head, overflow="fold")
    for r in bad.itertuples():
        words = (r.job, r.model, r.rules, r.search, "" if pd.isna(r.seed) else r.seed, r.error)
        table.add_row(*(escape(str(w)) for w in words))
    console.print(table)


def show_landscape(table: pd.DataFrame, console: Console) -> None:
    """Prints the room and the barrier of each problem of a landscape (see cgorl.report.landscape)."""
    shown = Table(title="is there anything to search?", title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("problem", overflow="fold")
    for head in ("initial ms", "greedy", "best known", "room", "depth", "height", ""):
        shown.add_column(head, justify="right")
    for problem, rows in table.groupby("problem", sort=False):
        one = rows.iloc[0]
        if pd.isna(one.get("best_ms")):
            shown.add_row(escape(str(problem)), "", "", "", "", "", "", "failed")
            continue
        digits, greedy = decimals(one["initial_ms"]), one["best_ms"] + one["room"] * one["initial_ms"]
        costs = [f"{v:.{digits}f}" for v in (one["initial_ms"], greedy, one["best_ms"])]
        barrier = (f"{one['depth']:.0f}", f"{100 * one['height']:.2f} %")
        shown.add_row(escape(str(problem)), *costs, f"{100 * one['room']:.2f} %", *barrier, verdict(one["room"]))
    console.print(shown)
    show_failures(table[table["error"].notna()].assign(job="", search=table["method"], seed=pd.NA), console)


def write(table: pd.DataFrame, path: Path) -> list[Path]:
    """Writes a table as Parquet and as CSV to `path` with those endings; returns the files. Raises TrackError."""
    files = [path.with_suffix(".parquet"), path.with_suffix(".csv")]
    try:
        table.to_parquet(files[0], index=False)
        table.to_csv(files[1], index=False)
    except OSError as e:
        raise TrackError(f"cannot write the table '{path.name}' into '{path.parent}': {e.strerror or e}") from None
    return files
