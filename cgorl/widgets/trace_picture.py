"""What a TraceView shows without a browser: curves, how branches compare, and the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape

from cgorl.report.film import Cut, Film
from cgorl.report.graphs.colours import MARKS, Family
from cgorl.report.graphs.scene import Box, Scene
from cgorl.report.graphs.svg import svg
from cgorl.report.whatif.branches import TRACE, Branches
from cgorl.report.whatif.told import listed, share
from cgorl.widgets.curve import Other, curve
from cgorl.widgets.widget import figure, row

_LISTED = 100
_COMPARED = 8


def picture(trace: Film, branches: Branches | None, shown: int, draw: Callable[[Cut], Scene], title: str, note: str) -> str:
    """HTML of the trace, or of the branch that is shown, among the others."""
    film = branches.all[shown].film if branches is not None else trace
    parts = [f"<p>{escape(note)}</p>" if note else ""]
    if branches is not None and len(branches.all) > 1:
        others = [Other(branches.title(n), b.at, branches.costs_ms(n)[b.at :]) for n, b in branches.all.items() if n != shown]
        parts.append(figure(curve(branches.costs_ms(shown), _rules(film), others), f"{title}: {branches.title(shown)} among the others"))
        parts += [_comparison(branches), _counts(branches)]
    elif film.steps:
        parts.append(figure(curve(film.costs_ms, _rules(film)), title))
    if not film.steps:
        return "".join([*parts, f"<p>{escape(title)}</p>"])
    k = max(range(len(film.steps)), key=lambda j: film.steps[j].before_ms - film.steps[j].after_ms)
    pair = [
        figure(svg(draw(cut), partial(_marked, cut.marks), 480), f"{when} step {k + 1}, {film.rows[k]['rule']}")
        for cut, when in zip(film.around(k), ("before", "after"), strict=True)
    ]
    parts.append(f"<table><tr><td>{pair[0]}</td><td>{pair[1]}</td></tr></table>")
    return "".join([*parts, _ledger(film)])


def _rules(film: Film) -> Sequence[str]:
    return [r["rule"] for r in film.rows]


def _ledger(film: Film) -> str:
    cells = [row(("step", "rule", "where", "gain, ms", "measured share"), (0, 3, 4), "th")]
    for j, (r, step) in enumerate(zip(film.rows[:_LISTED], film.steps, strict=False)):
        measured = share(r)
        told = "not measured" if measured is None else f"{100 * measured:.1f} %"
        cells.append(row((str(j + 1), r["rule"], r["names"][0], f"{step.before_ms - step.after_ms:.4g}", told), (0, 3, 4)))
    more = f"<p>and {len(film.rows) - _LISTED} more</p>" if len(film.rows) > _LISTED else ""
    return "".join(["<table>", *cells, "</table>", more])


def _comparison(branches: Branches) -> str:
    """A row a branch: where it parted with which, by what it went on, and what it came to."""
    numbers, done = (2, 5, 6, 7), branches.costs_ms(TRACE)[-1]
    head = ("branch", "of", "step", "rewrite there", "goes on by", "rewrites", "cost, ms", "against the trace", "ended")
    cells = [row(head, numbers, "th")]
    for b in listed(branches):
        if b["number"] == TRACE:
            parted: tuple[str, ...] = ("", "", "", "")
        else:
            parted = (branches.title(b["parent"]), str(b["at"] + 1), f"{b['rule']} at {b['where']}", b["by"] or "nothing")
        against = "" if b["number"] == TRACE or not done else f"{100 * (b['cost_ms'] / done - 1):+.2f} %"
        cells.append(row((branches.title(b["number"]), *parted, str(b["rewrites"]), f"{b['cost_ms']:.4g}", against, b["ended"]), numbers))
    return "".join(["<table>", *cells, "</table>"])


def _counts(branches: Branches) -> str:
    """Which rules, and how often: a row a rule, a column a branch."""
    shown = list(branches.all)[:_COMPARED]
    counts = {n: Counter(_rules(branches.all[n].film)) for n in shown}
    rules = dict.fromkeys(r for n in shown for r in counts[n])
    columns = range(1, 1 + len(shown))
    cells = [row(("rule", *(branches.title(n) for n in shown)), columns, "th")]
    cells += [row((r, *(str(counts[n][r]) for n in shown)), columns) for r in rules]
    return "".join(["<table>", *cells, "</table>"])


def _marked(marks: Mapping[int, int], _: int, box: Box) -> Family:
    return MARKS[max((marks.get(i, 0) for i in box.nodes), default=0)]
