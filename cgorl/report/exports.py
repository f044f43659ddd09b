"""Exports: a grid as CSV, LaTeX, Markdown and HTML, for a paper, a page or another program."""

from __future__ import annotations

import csv as csv_
import io
import math
import re
from collections.abc import Callable, Mapping
from html import escape

from cgorl.report.grid import BEST, EQUAL, MEASURES, UNTESTED, Cell, Grid

MARKS = {EQUAL: "~", UNTESTED: "?"}
_FIRST = ("problem", "before, ms")


def digits(grid: Grid) -> int:
    """Digits behind the point that show the differences of a grid's largest value."""
    if grid.measure == "evaluations":
        return 0
    largest = max((abs(c.value) for row in grid.cells for c in row if c is not None), default=0.0)
    return 2 if grid.measure in ("change", "seconds") or not largest else min(6, max(2, 4 - math.floor(math.log10(largest))))


def words(cell: Cell, digits: int) -> tuple[str, str]:
    """A cell's value and, in brackets, its interval; the latter empty for one value or values that are all the same."""
    value = f"{cell.value + 0.0:,.{digits}f}"
    low, high = f"{cell.low + 0.0:,.{digits}f}", f"{cell.high + 0.0:,.{digits}f}"
    return value, "" if math.isnan(cell.low) or low == high == value else f"[{low}, {high}]"


def csv(grid: Grid) -> str:
    """A line for each problem and method: value, interval, number of seeds, how it stands to the best."""
    text = io.StringIO()
    out = csv_.writer(text, lineterminator="\n")
    out.writerow(["problem", "before_ms", "method", grid.measure, "low", "high", "n", "stands", "evaluations", "seconds", "stopped"])
    for problem, before, row in zip(grid.problems, grid.before_ms, grid.cells, strict=True):
        for method, c in zip(grid.methods, row, strict=True):
            if c is not None:
                told = ["" if math.isnan(v) else repr(v) for v in (c.value, c.low, c.high)]
                spent = ["" if math.isnan(v) else repr(v) for v in c.spent]
                out.writerow([problem, repr(before), method, *told, len(c.each), c.stands, *spent, c.stopped])
    return text.getvalue()


def markdown(grid: Grid) -> str:
    """A table with a line for each problem."""
    head = [*_FIRST, *map(_bar, grid.methods)]
    lines = [_row([*head]), _row(["---", *["---:"] * (len(head) - 1)])]
    for problem, before, row in _rows(
        grid, lambda c, value, rest: f"{f'**{value}**' if c.stands == BEST else value}{_mark(c)} {rest}".strip()
    ):
        lines.append(_row([_bar(problem), before, *row]))
    return "\n".join([f"{MEASURES[grid.measure].capitalize()}", "", *lines, "", *(f"- {n}" for n in grid.notes), ""])


def latex(grid: Grid) -> str:
    r"""A tabular with booktabs' rules: \usepackage{booktabs}."""

    def cell(c: Cell, value: str, rest: str) -> str:
        value, rest = (v.replace("-", "$-$") for v in (value, rest))
        shown = rf"\textbf{{{value}}}" if c.stands == BEST else value
        mark = {"~": r"$^{\sim}$", "?": r"$^{?}$"}.get(_mark(c), "")
        return f"{shown}{mark}" + (rf" {{\scriptsize {rest}}}" if rest else "")

    body = [" & ".join([_tex(p), b, *row]) + r" \\" for p, b, row in _rows(grid, cell)]
    head = " & ".join(map(_tex, [*_FIRST, *grid.methods])) + r" \\"
    notes = [f"% {n}" for n in (MEASURES[grid.measure], *grid.notes)]
    columns = "l" + "r" * (len(grid.methods) + 1)
    rules = (rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}")
    return "\n".join([*notes, *rules, ""])


def html(grid: Grid) -> str:
    """A table with its notes, without scripts and styles of its own."""

    def cell(c: Cell, value: str, rest: str) -> str:
        shown = f"<b>{value}</b>" if c.stands == BEST else value
        return f"{shown}{_mark(c)}" + (f" <small>{escape(rest)}</small>" if rest else "")

    left = 'style="text-align:left"'
    names = "".join(f"<th>{escape(h)}</th>" for h in [*_FIRST[1:], *grid.methods])
    head = f"<th {left}>{escape(_FIRST[0])}</th>{names}"
    cells = ((escape(p), "".join(f"<td>{c}</td>" for c in [b, *row])) for p, b, row in _rows(grid, cell))
    body = [f"<tr><td {left}>{p}</td>{rest}</tr>" for p, rest in cells]
    notes = "".join(f"<li>{escape(n)}</li>" for n in grid.notes)
    title = f"<caption>{escape(MEASURES[grid.measure])}</caption>"
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table><ul>{notes}</ul>"


FORMATS: Mapping[str, Callable[[Grid], str]] = {"csv": csv, "latex": latex, "markdown": markdown, "html": html}
ENDINGS = {"csv": ".csv", "latex": ".tex", "markdown": ".md", "html": ".html"}


def _rows(grid: Grid, cell: Callable[[Cell, str, str], str]) -> list[tuple[str, str, list[str]]]:
    places = digits(grid)
    return [
        (problem, f"{before:,.4g}", ["" if c is None else cell(c, *words(c, places)) for c in row])
        for problem, before, row in zip(grid.problems, grid.before_ms, grid.cells, strict=True)
    ]


def _mark(cell: Cell) -> str:
    return MARKS.get(cell.stands, "")


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _bar(text: str) -> str:
    return text.replace("|", "\\|")


_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", **{c: f"\\{c}" for c in "&%$#_{}"}}


def _tex(text: str) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda m: _TEX[m[0]], text)
