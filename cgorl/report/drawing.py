"""Drawing: a graph as a picture (SVG), producers above their readers, what a search has changed marked."""

from __future__ import annotations

import html
from collections.abc import Collection

from cgorl.ir.graph import OUTPUT, Graph

_WIDE, _HIGH, _GAP = 92, 20, 14
_HUES = {"Conv": 210, "MatMul": 265, "Gemm": 265, "Relu": 30, "Add": 120, "Concat": 170, "Split": 170}


def drawing(graph: Graph, title: str, marked: Collection[int] = ()) -> str:
    """The running nodes of `graph` with their operators; those in `marked` have a thick border."""
    running = [i for i in graph.order() if not graph.nodes[i].constant]
    level: dict[int, int] = {}
    for i in running:
        level[i] = 1 + max((level[v.node] for v in graph.nodes[i].reads() if v.node in level), default=-1)
    rows: dict[int, list[int]] = {}
    place: dict[int, float] = {}
    for i in running:
        rows.setdefault(level[i], []).append(i)
    for _, row in sorted(rows.items()):  # each near the middle of what it reads, side by side
        wanted = {i: _middle([place[v.node] for v in graph.nodes[i].reads() if v.node in place]) for i in row}
        row.sort(key=wanted.__getitem__)
        for k, i in enumerate(row):
            place[i] = (k - (len(row) - 1) / 2) * (_WIDE + _GAP)
    left = min(place.values(), default=0.0) - _WIDE
    width = max(place.values(), default=0.0) + _WIDE - left
    height = (len(rows) + 1) * (_HIGH + _GAP) + _HIGH
    at = {i: (place[i] - left, _HIGH + (level[i] + 1) * (_HIGH + _GAP)) for i in running}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">',
        f'<title>{html.escape(title)}</title><text x="8" y="16">{html.escape(title)}</text>',
    ]
    for i in running:
        x, y = at[i]
        for u in graph.users[i]:
            if u.node != OUTPUT and u.node in at:
                parts.append(f'<path d="M{x:.0f} {y + _HIGH / 2:.0f}L{at[u.node][0]:.0f} {at[u.node][1] - _HIGH / 2:.0f}" stroke="#999"/>')
    for i in running:
        (x, y), op = at[i], graph.nodes[i].op
        border = 3 if i in marked else 1
        parts.append(
            f'<rect x="{x - _WIDE / 2:.0f}" y="{y - _HIGH / 2:.0f}" width="{_WIDE}" height="{_HIGH}" rx="4" stroke="#333" '
            f'stroke-width="{border}" fill="hsl({_HUES.get(op, 0)} {60 if op in _HUES else 0}% 88%)"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{html.escape(op[:14])}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _middle(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
