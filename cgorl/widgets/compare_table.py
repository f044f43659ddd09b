"""CompareTable: methods on problems, with intervals, to sort, filter and take along."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import traitlets

from cgorl.evaluation.run import Evaluation
from cgorl.report.exports import ENDINGS, FORMATS, MARKS, digits, html, words
from cgorl.report.graphs.packed import pack
from cgorl.report.grid import BEST, MEASURES, Cell, Grid, GridError, grid, runs
from cgorl.widgets.assets import module
from cgorl.widgets.widget import Widget


class CompareTable(Widget):
    """Searches compared: `CompareTable(cgorl.evaluate(...))`, `CompareTable("runs/evaluate/2026-...")`, or a frame of results.

    A row is a problem, a column a method; in bold is the best of a row, and what cannot be told apart from it is marked.
    `measure` is change, cost_ms, evaluations or seconds; `find` keeps the problems with these words, `sort` is the column to
    sort by (a method, "problem" or "before"), `hidden` are methods left out, of the comparison too. `export` and `save` write
    what is shown. Raises GridError for a table of something else, and for a name that is not there.
    """

    _esm = module("compare_table.js")
    picture = traitlets.Bytes(b"").tag(sync=True)
    measure = traitlets.Unicode("change").tag(sync=True)
    find = traitlets.Unicode("").tag(sync=True)
    sort = traitlets.Unicode("").tag(sync=True)
    descending = traitlets.Bool(False).tag(sync=True)
    hidden = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(
        self,
        results: Evaluation | pd.DataFrame | str | Path,
        measure: str = "change",
        find: str = "",
        sort: str = "",
        descending: bool = False,
        hidden: list[str] | None = None,
    ) -> None:
        table = _read(results)
        self._ran = runs(table)
        self._failed = int(table["cost_ms"].isna().sum())
        self._methods = [str(m) for m in dict.fromkeys(self._ran["method"])]
        for name in hidden or []:
            _known(name, self._methods)
        _known(sort, ["", "problem", "before", *self._methods])
        made = grid(self._ran, measure, hidden or [], self._failed)
        super().__init__(measure=measure, find=find, sort=sort, descending=descending, hidden=hidden or [], picture=self._packed(made))
        self.observe(lambda _: self._draw(), ["measure", "hidden"])
        self.on_msg(self._asked)

    def grid(self) -> Grid:
        """What is shown: with the problems that were looked for, in the order that was asked for."""
        made = grid(self._ran, self.measure, self.hidden, self._failed)
        wanted = self.find.lower().split()
        rows = [k for k, p in enumerate(made.problems) if all(w in p.lower() for w in wanted)]
        if self.sort == "problem":
            rows.sort(key=lambda k: made.problems[k], reverse=self.descending)
        elif self.sort == "before":
            rows.sort(key=lambda k: made.before_ms[k], reverse=self.descending)
        elif self.sort in made.methods:
            at = made.methods.index(self.sort)
            there = [(c.value, k) for k in rows if (c := made.cells[k][at]) is not None]
            there.sort(key=lambda pair: pair[0], reverse=self.descending)
            rows = [k for _, k in there] + [k for k in rows if made.cells[k][at] is None]
        return made.some(rows)

    def export(self, form: str) -> str:
        """What is shown as text: csv, latex, markdown or html. Raises GridError for another form."""
        if form not in FORMATS:
            raise GridError(f"there is no form '{form}'; there is {', '.join(FORMATS)}")
        return FORMATS[form](self.grid())

    def save(self, path: str | Path) -> Path:
        """Writes what is shown to a file: .csv, .tex, .md or .html. Raises GridError for another ending, OSError."""
        path = Path(path)
        forms = {ending: form for form, ending in ENDINGS.items()}
        if path.suffix not in forms:
            raise GridError(f"'{path}' must end in {', '.join(forms)}")
        path.write_text(self.export(forms[path.suffix]), encoding="utf-8")
        return path

    def _draw(self) -> None:
        self.picture = self._packed(grid(self._ran, self.measure, self.hidden, self._failed))

    def _packed(self, made: Grid) -> bytes:
        places = digits(made)
        measures = [m for m in MEASURES if m == "change" or m in self._ran]
        data = {
            "measures": [[m, MEASURES[m]] for m in measures],
            "all": self._methods,
            "methods": made.methods,
            "problems": made.problems,
            "before": made.before_ms,
            "cells": [[None if c is None else _told(c, places) for c in row] for row in made.cells],
            "notes": made.notes,
            "forms": [[form, f"comparison{ending}"] for form, ending in ENDINGS.items()],
        }
        return pack(data, {})

    def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        if content.get("kind") == "export" and content.get("form") in FORMATS:
            form = str(content["form"])
            self.send({"kind": "export", "name": f"comparison{ENDINGS[form]}", "text": self.export(form)})

    def static(self) -> str:
        """The table as it is shown."""
        return html(self.grid())

    def __repr__(self) -> str:
        """One line."""
        made = self.grid()
        counts = ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in ((len(made.problems), "problem"), (len(made.methods), "method")))
        return f"CompareTable({counts}, {MEASURES[self.measure]})"


def _told(c: Cell, places: int) -> list[Any]:
    value, rest = words(c, places)
    each = ", ".join(f"{v:,.{places}f}" for v in c.each[:12]) + (", ..." if len(c.each) > 12 else "")
    about = [c.stands, f"each: {each}" if len(c.each) > 1 else ""]
    about.append("" if c.spent[0] != c.spent[0] else f"{c.spent[0]:,.0f} evaluations")
    about.append("" if c.spent[1] != c.spent[1] else f"{c.spent[1]:.2f} s")
    about.append(f"stopped: {c.stopped}" if c.stopped else "")
    return [c.value, value, rest, MARKS.get(c.stands, ""), c.stands == BEST, "\n".join(filter(None, about))]


def _known(name: str, names: list[str]) -> None:
    if name not in names:
        raise GridError(f"there is no method '{name}'; there is {', '.join(filter(None, names))}")


def _read(results: Evaluation | pd.DataFrame | str | Path) -> pd.DataFrame:
    if isinstance(results, pd.DataFrame):
        return results
    if isinstance(results, Evaluation):
        return results.results
    path = Path(results)
    file = next((f for f in (path / "table.parquet", path / "table.csv") if f.is_file()), path) if path.is_dir() else path
    try:
        return pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except (OSError, ValueError) as e:
        raise GridError(f"there is no table of results in '{path}': {' '.join(str(e).split())[:200]}") from None
