"""Files: a report in a folder, and in short on a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Shown

from cgorl.report.experiment.content import Pictures, Report, Table, Text
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.page import page
from cgorl.report.experiment.standing import comparison
from cgorl.report.exports import csv
from cgorl.tracking import TrackError


def folder(paths: Sequence[Path]) -> Path:
    """Where the report of these goes by itself."""
    if len(paths) == 1 and paths[0].is_dir():
        return paths[0] / "report"
    return Path("runs") / "report" / re.sub(r"[^\w.-]+", "_", "_".join(p.stem for p in paths))[:80]


def write(report: Report, of: Experiment, into: Path, figures: str | None = None) -> list[Path]:
    """Writes the page, the comparison as CSV, and with `figures` (svg, png, pdf) each picture; returns the files. Raises TrackError."""
    try:
        into.mkdir(parents=True, exist_ok=True)
        written = [into / "report.html"]
        written[0].write_text(page(report), encoding="utf-8")
        if len(of.results):
            written.append(into / "comparison.csv")
            written[-1].write_text(csv(comparison(of)), encoding="utf-8")
    except OSError as e:
        raise TrackError(f"cannot write the report into '{into}': {e.strerror or e}") from None
    pictures = [p for section in report.sections for part in section.parts if isinstance(part, Pictures) for p in part.pictures]
    names: set[str] = set()
    for picture in pictures if figures else ():
        stem = re.sub(r"[^\w.-]+", "_", picture.title)[:80]
        name = next(n for n in (stem, *(f"{stem}_{k}" for k in range(2, 999))) if n not in names)
        names.add(name)
        written.append(picture.save(into / f"{name}.{figures}"))
    return written


def show(report: Report, console: Console) -> None:
    """Prints it in short, and the tables that compare."""
    for section in report.sections:
        if section.title == "In short":
            for part in section.parts:
                console.print(part.text if isinstance(part, Text) else "", highlight=False, markup=False, soft_wrap=True)
        elif section.title in ("Comparison", "Failed jobs"):
            for part in section.parts:
                if isinstance(part, Table):
                    console.print(_shown(part, part.title or section.title.lower()))


def _shown(table: Table, title: str) -> Shown:
    shown = Shown(title=escape(title), title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, head in enumerate(table.head):
        shown.add_column(head, justify="right" if k in table.numbers else "left", overflow="fold")
    for k, row in enumerate(table.rows):
        shown.add_row(*map(escape, row), style="bold" if k in table.best else None)
    return shown
