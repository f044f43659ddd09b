"""Page: a report as one HTML file that needs nothing else: no script, no network; light or dark as its reader's system is."""

from __future__ import annotations

import base64
import re
from html import escape
from importlib import resources

from cgorl.report.experiment.content import Code, Drawings, Part, Pictures, Report, Table, Text


def page(report: Report) -> str:
    """The whole page."""
    style = resources.files("cgorl.assets").joinpath("report.css").read_text(encoding="utf-8")
    anchors = [(_anchor(s.title), s.title) for s in report.sections]
    links = "".join(f'<a href="#{a}">{escape(t)}</a>' for a, t in anchors)
    body = "".join(
        f'<section id="{a}"><h2>{escape(t)}</h2>{"".join(map(_part, s.parts))}</section>'
        for (a, t), s in zip(anchors, report.sections, strict=True)
    )
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(report.title)}</title><style>{style}</style></head>"
    )
    return f"{head}<body><header><h1>{escape(report.title)}</h1><nav>{links}</nav></header><main>{body}</main></body></html>\n"


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return f"<p>{escape(part.text)}</p>"
    if isinstance(part, Code):
        code = f"<pre><code>{escape(part.text)}</code></pre>"
        return _folded(part.title, code) if part.folded else f'<p class="name">{escape(part.title)}</p>{code}'
    if isinstance(part, Table):
        return _folded(part.title, _table(part, named=False)) if part.folded else _table(part)
    if isinstance(part, Pictures):
        figures = "".join(
            f"<figure><figcaption><b>{escape(p.title)}</b></figcaption>{p.svg()}<figcaption>{escape(p.note)}</figcaption></figure>"
            for p in part.pictures
        )
        return f'<div class="figures">{figures}</div>'
    return _drawings(part)


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def _table(table: Table, named: bool = True) -> str:
    def cells(tag: str, row: tuple[str, ...]) -> str:
        return "".join(f"<{tag}{' class=n' if k in table.numbers else ''}>{escape(c)}</{tag}>" for k, c in enumerate(row))

    caption = f'<p class="name"><b>{escape(table.title)}</b></p>' if table.title and named else ""
    head = f"<thead><tr>{cells('th', table.head)}</tr></thead>" if any(table.head) else ""
    rows = "".join(f"<tr{' class=best' if k in table.best else ''}>{cells('td', row)}</tr>" for k, row in enumerate(table.rows))
    facts = "" if any(table.head) else ' class="facts"'
    notes = "".join(f'<p class="note">{escape(n)}</p>' for n in table.notes)
    return f'{caption}<div class="scroll" tabindex="0"><table{facts}>{head}<tbody>{rows}</tbody></table></div>{notes}'


def _drawings(part: Drawings) -> str:
    figures = []
    for title, svg in part.drawings:
        data = base64.b64encode(svg.encode()).decode()
        image = (
            f'<div class="scroll paper" tabindex="0"><img alt="the graph of {escape(title)}" src="data:image/svg+xml;base64,{data}"></div>'
        )
        figures.append(_folded(title, image))
    return f'{"".join(figures)}<p class="note">{escape(part.note)}</p>'


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")
