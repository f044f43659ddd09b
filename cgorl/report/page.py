"""Page: what came of a job on one page of HTML that needs nothing else, to keep or to hand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from cgorl.report.provenance import provenance

_LISTED = 500
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;margin:1rem 0}"
    "th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #ccc;overflow-wrap:anywhere}"
    "td.n,th.n{text-align:right}th{white-space:nowrap}pre{white-space:pre-wrap}"
)


def page(name: str, brief: Mapping[str, Any], ledger: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    """The page of a job on the model `name`: `brief` as cgorl.report.brief says, the entries of the ledger, and the options chosen."""
    rows = [
        [str(k + 1), r["rule"], r["names"][0], f"{r['before_ms'] - r['after_ms']:.4g}", _share(r)] for k, r in enumerate(ledger[:_LISTED])
    ]
    more = f"<p>and {len(ledger) - _LISTED} more</p>" if len(ledger) > _LISTED else ""
    about = {**{k: v for k, v in options.items() if v not in (None, {}, "")}, **provenance()}
    operators = _table(("operator", "before", "after", "change"), brief["operators"])
    parts = [
        f"<h1>{escape(name)}</h1><p><strong>{escape(brief['headline'])}</strong></p><p>{escape(brief['proven'])}</p>",
        _table(("", "before", "after", "change"), brief["rows"]),
        f"<h2>By operator, estimated ms</h2>{operators}" if brief["operators"] else "",
        f"<h2>The job</h2><pre>{escape(chr(10).join(brief['lines']))}</pre>",
        "<h2>Rewrites</h2>" + _table(("step", "rule", "where", "gain, ms", "measured share"), rows) + more if rows else "",
        "<h2>With what</h2>" + _table(("", ""), [[str(k), str(v)] for k, v in about.items()]),
    ]
    head = f'<meta charset="utf-8"><title>{escape(name)}: cgorl</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _row(k: int, r: Mapping[str, Any]) -> list[str]:
    return [str(k + 1), r["rule"], r["names"][0], f"{r['before_ms'] - r['after_ms']:.4g}", _share(r)]


def _share(row: Mapping[str, Any]) -> str:
    share = (row.get("measured") or {}).get("share")
    return "not measured" if share is None else f"{100 * share:.1f} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        texts = 3 if len(row) == 5 else 1  # the rest are numbers
        return "<tr>" + "".join(f"<{tag}{'' if k < texts else ' class=n'}>{escape(c)}</{tag}>" for k, c in enumerate(row)) + "</tr>"

    return "<table>" + cells(head, "th") + "".join(cells(r, "td") for r in rows) + "</table>"
