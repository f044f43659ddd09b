"""Chart: lines to draw, some with a band, as data for a browser and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgorl.report.graphs.packed import pack

Values = NDArray[np.float64]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B", "#6A5ACD")
"""Of groups in their order, over again from the ninth on; the same as in assets/line_chart.js for light paper."""

_W, _H, _LEFT, _RIGHT, _TOP, _FOOT = 720.0, 280.0, 70.0, 12.0, 14.0, 34.0
_DRAWN = 120


class Line(NamedTuple):
    """One line: x and y of N points, and with a band its low and high; `faint` stands behind, `steps` holds each value till the next."""

    label: str
    colour: int
    x: Values
    y: Values
    low: Values | None = None
    high: Values | None = None
    faint: bool = False
    steps: bool = False


class Chart(NamedTuple):
    """Lines over one pair of axes."""

    lines: Sequence[Line]
    x_name: str
    y_name: str


def packed(chart: Chart, **more: object) -> bytes:
    """The chart in one piece for assets/line_chart.js; `more` is JSON data beside it."""
    rows, parts, at = [], [], 0
    for line in chart.lines:
        columns = [v for v in (line.x, line.y, line.low, line.high) if v is not None]
        rows.append([line.label, line.colour, at, len(line.x), int(len(columns) > 2), int(line.faint), int(line.steps)])
        parts += columns
        at += len(columns) * len(line.x)
    points = np.concatenate(parts) if parts else np.zeros(0)
    data = {"lines": rows, "x_name": chart.x_name, "y_name": chart.y_name, **more}
    return pack(data, {"points": points.astype(np.float32)})


def thinned(x: Values, y: Values, most: int) -> tuple[Values, Values]:
    """At most about `most` of the points that have a value, first and last among them: the lowest and highest of each stretch."""
    known = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[known], y[known]
    if len(x) <= most:
        return x, y
    keep = {0, len(x) - 1}
    for part in np.array_split(np.arange(len(x)), max(1, most // 2 - 1)):
        keep |= {int(part[np.argmin(y[part])]), int(part[np.argmax(y[part])])}
    at = np.array(sorted(keep))
    return x[at], y[at]


def ticks(low: float, high: float, count: int) -> list[float]:
    """About `count` round numbers from low to high."""
    room = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(room / count))
    step *= next(k for k in (1, 2, 5, 10) if room / (step * k) <= count)
    return [step * k for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number in a few signs."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        return f"{value:.3g}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"


def svg(chart: Chart) -> str:
    """The chart as a picture, with its legend."""
    drawn = [_few(line) for line in chart.lines if len(line.x)]
    (x0, x1), (y0, y1) = extent(drawn)

    def at(x: float, y: float) -> str:
        across, down = (x - x0) / (x1 - x0), (y1 - y) / (y1 - y0)
        return f"{_LEFT + (_W - _LEFT - _RIGHT) * across:.1f} {_TOP + (_H - _TOP - _FOOT) * down:.1f}"

    labels = list(dict.fromkeys((line.label, line.colour) for line in drawn))
    rows = -(-len(labels) // 3)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_W:.0f}" height="{_H + 18 * rows:.0f}" font-family="sans-serif" font-size="11">'
    ]
    parts.append('<rect width="100%" height="100%" fill="#fff"/>')
    for y in ticks(y0, y1, 5):
        place = at(x0, y)
        parts.append(f'<path d="M{place}H{_W - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{float(place.split()[1]) + 4:.1f}" fill="#555" text-anchor="end">{short(y)}</text>')
    for x in ticks(x0, x1, 8):
        across = at(x, y0).split()[0]
        parts.append(f'<text x="{across}" y="{_H - _FOOT + 15}" fill="#555" text-anchor="middle">{short(x)}</text>')
    parts.append(f'<text x="{_W - _RIGHT}" y="{_H - 4}" fill="#555" text-anchor="end">{escape(chart.x_name)}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_TOP - 3}" fill="#555">{escape(chart.y_name)}</text>')
    for line in drawn:
        if line.low is not None and line.high is not None:
            ways = [at(x, y) for x, y in zip(line.x, line.high, strict=True)] + [
                at(x, y) for x, y in zip(line.x[::-1], line.low[::-1], strict=True)
            ]
            parts.append(f'<path d="M{"L".join(ways)}Z" fill="{_colour(line)}" fill-opacity="0.16"/>')
        parts.append(f'<path d="{_way(line, at)}" fill="none" stroke="{_colour(line)}" {_pen(line)}/>')
    for k, (label, colour) in enumerate(labels):
        x, y = _LEFT + 216 * (k % 3), _H + 18 * (k // 3)
        parts.append(f'<rect x="{x:.0f}" y="{y}" width="14" height="4" fill="{COLOURS[colour % len(COLOURS)]}"/>')
        parts.append(f'<text x="{x + 19:.0f}" y="{y + 6}" fill="#444">{escape(_cut(label))}</text>')
    return "".join(parts) + "</svg>"


def extent(lines: Sequence[Line]) -> tuple[tuple[float, float], tuple[float, float]]:
    """From where to where lines go, along both axes, with a little room above and below; 0 to 1 for none."""
    if not lines:
        return (0.0, 1.0), (0.0, 1.0)
    x = np.concatenate([line.x for line in lines])
    y = np.concatenate([v for line in lines for v in (line.y, line.low, line.high) if v is not None])
    x0, x1, y0, y1 = float(x.min()), float(x.max()), float(y.min()), float(y.max())
    room = 0.05 * (y1 - y0) or 0.05 * abs(y1) or 0.5
    return (x0, x1 if x1 > x0 else x0 + 1), (y0 - room, y1 + room)


def _few(line: Line) -> Line:
    if line.low is not None or len(line.x) <= _DRAWN:
        return line
    x, y = thinned(line.x, line.y, _DRAWN)
    return line._replace(x=x, y=y)


def _way(line: Line, at: object) -> str:
    assert callable(at)
    places = [at(x, y) for x, y in zip(line.x, line.y, strict=True)]
    if not line.steps:
        return "M" + "L".join(places)
    return f"M{places[0]}" + "".join(f"H{p.split()[0]}V{p.split()[1]}" for p in places[1:])


def _pen(line: Line) -> str:
    return 'stroke-width="1" stroke-opacity="0.4"' if line.faint else 'stroke-width="2"'


def _colour(line: Line) -> str:
    return COLOURS[line.colour % len(COLOURS)]


def _cut(label: str) -> str:
    return label if len(label) <= 34 else label[:33] + "…"
