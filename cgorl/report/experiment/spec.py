"""Spec: a report as Weights & Biases keeps one, from the same content as the page; made without a login and without a network."""

from __future__ import annotations

from collections.abc import Sequence

from cgorl.report.experiment.content import Code, Drawings, Part, Pictures, Report, Table, Text
from cgorl.tracking.workspaces import Block, Curves, Heading, Lines, Markdown

_ELSEWHERE = "report.html"


def spec(report: Report) -> list[Block]:
    """The blocks of the report: headings, text and tables as Markdown, and curves that W&B draws of the runs themselves."""
    blocks: list[Block] = []
    for section in report.sections:
        blocks.append(Heading(section.title))
        for part in section.parts:
            blocks += _part(part, report)
    return blocks


def _part(part: Part, report: Report) -> list[Block]:
    if isinstance(part, Text):
        return [Markdown(_plain(part.text))]
    if isinstance(part, Code):
        return [Markdown(f"**{_plain(part.title)}**"), Lines(part.text)]
    if isinstance(part, Table):
        return [Markdown(markdown(part))]
    if isinstance(part, Pictures) and part.metrics:
        notes = " ".join(dict.fromkeys(p.note for p in part.pictures))
        said = f"W&B draws means here. In {_ELSEWHERE} the curves are as follows. {notes}" if notes else ""
        return [Curves(part.metrics, part.axis, report.groups, report.runs), *([Markdown(_plain(said))] if said else [])]
    if isinstance(part, Pictures):
        titles = "; ".join(p.title for p in part.pictures)
        return [Markdown(_plain(f"Pictures in {_ELSEWHERE}: {titles}"))]
    titles = "; ".join(title for title, _ in part.drawings) if isinstance(part, Drawings) else ""
    return [Markdown(_plain(f"Drawings in {_ELSEWHERE}, and among the artifacts of the runs: {titles}"))]


def markdown(table: Table) -> str:
    """A table in Markdown, its best rows in bold."""
    lines = [f"**{_plain(table.title)}**", ""] if table.title else []
    lines.append(_row([_plain(h) for h in table.head]))
    lines.append(_row(["---:" if k in table.numbers else "---" for k in range(len(table.head))]))
    for k, row in enumerate(table.rows):
        lines.append(_row([f"**{_plain(c)}**" if k in table.best and c else _plain(c) for c in row]))
    return "\n".join([*lines, *(f"\n{_plain(n)}" for n in table.notes)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """Text that Markdown leaves as it stands."""
    for sign in "\\|*_~<>`":
        text = text.replace(sign, "\\" + sign)
    return text
