"""The cost after each rewrite as a picture, steps coloured by rule."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

RULE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B", "#6A5ACD")
"""Of rules in the order in which they first occur, over again from the ninth on; the same as in assets/trace_view.js."""

_W, _H, _LEFT, _TOP, _FOOT = 720.0, 200.0, 64.0, 12.0, 24.0


class Other(NamedTuple):
    """The costs of another way from step `at` on, drawn behind."""

    name: str
    at: int
    costs_ms: Sequence[float]


def curve(costs_ms: Sequence[float], rules: Sequence[str], others: Sequence[Other] = ()) -> str:
    """SVG of the costs, the first before any rewrite; rewrite k, by rule `rules[k]`, leads from cost k to cost k + 1."""
    low = min([min(costs_ms), *(min(o.costs_ms) for o in others)])
    high = max([max(costs_ms), *(max(o.costs_ms) for o in others)])
    long = max([1, len(rules), *(o.at + len(o.costs_ms) - 1 for o in others)])
    room = (high - low) or abs(high) or 1.0
    names = list(dict.fromkeys(rules))
    lines = -(-len(names) // 4)

    def at(k: int, ms: float) -> tuple[float, float]:
        return _LEFT + (_W - _LEFT - 10) * k / long, _TOP + (_H - _TOP - _FOOT) * (high - ms) / room

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_W:.0f}" height="{_H + 18 * lines:.0f}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for ms in (high, low):
        y = at(0, ms)[1]
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_W - 10}" stroke="#ddd"/><text x="4" y="{y + 4:.1f}" fill="#555">{ms:.4g} ms</text>')
    parts.append(f'<text x="{_W - 10}" y="{_H - 6}" fill="#555" text-anchor="end">{len(rules)} rewrites</text>')
    for o in others:
        points = "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(o.at + k, ms) for k, ms in enumerate(o.costs_ms)))
        x, y = at(o.at + len(o.costs_ms) - 1, o.costs_ms[-1])
        parts.append(f'<path d="M{points}" fill="none" stroke="#999" stroke-width="1.5" stroke-dasharray="5 3"/>')
        parts.append(f'<text x="{min(x, _W - 12):.1f}" y="{max(10.0, y - 4):.1f}" fill="#555" text-anchor="end">{escape(o.name)}</text>')
    for k, rule in enumerate(rules):
        (x0, y0), (x1, y1) = at(k, costs_ms[k]), at(k + 1, costs_ms[k + 1])
        parts.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{_colour(names, rule)}" stroke-width="2.5"/>')
    for k, name in enumerate(names):
        x, y = _LEFT + 162 * (k % 4), _H + 18 * (k // 4)
        parts.append(f'<rect x="{x:.0f}" y="{y}" width="12" height="10" fill="{_colour(names, name)}"/>')
        parts.append(f'<text x="{x + 16:.0f}" y="{y + 9}" fill="#444">{escape(name)}</text>')
    return "".join(parts) + "</svg>"


def _colour(names: list[str], rule: str) -> str:
    return RULE_COLOURS[names.index(rule) % len(RULE_COLOURS)]
