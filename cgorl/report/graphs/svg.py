"""A scene as one SVG picture on white paper, in columns like a newspaper's, since networks are much deeper than wide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape

from cgorl.report.graphs.colours import Family, family
from cgorl.report.graphs.layout import ROW
from cgorl.report.graphs.scene import Box, Scene

_BOX = 28.0
_WIDTH = 1000.0
_MARGIN, _LINE = 10.0, 18.0
_FORMAT = 1.6
_READABLE = 0.42
_ONE_COLUMN, _MOST_COLUMNS = 12, 24


def svg(scene: Scene, kind: Callable[[int, Box], Family] | None = None, width: float = _WIDTH, loud: Iterable[int] = ()) -> str:
    """The drawing as an SVG document at most `width` pixels wide; boxes filled by `kind` of number and box (else by operator).

    Boxes numbered in `loud` have a strong rim. Names are written where they can be read. About 100 bytes a box.
    """
    fills = [kind(k, box) if kind is not None else family(box.op) for k, box in enumerate(scene.boxes)]
    x, y = scene.layout.x, scene.layout.y
    wide = max([*(float(x[k]) + b.width / 2 for k, b in enumerate(scene.boxes)), 80.0]) + 2 * _MARGIN
    rows = int(max(y, default=0.0) / ROW) + 1
    columns = 1 if rows <= _ONE_COLUMN else min(_MOST_COLUMNS, max(1, round(math.sqrt(_FORMAT * rows * ROW / wide))))
    each = math.ceil(rows / columns)
    columns = math.ceil(rows / each)
    scale = min(1.0, width / (columns * wide))
    column = each * ROW + 2 * _MARGIN - (ROW - _BOX)
    used = list(dict.fromkeys(fills))
    per_line = max(1, int(columns * wide * scale / 150))
    lines = math.ceil(len(used) / per_line)
    total_w, total_h = max(columns * wide * scale, min(len(used), per_line) * 150), column * scale + lines * _LINE + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_w:.0f}" height="{total_h:.0f}" viewBox="0 0 {total_w:.1f} {total_h:.1f}">',
        '<rect width="100%" height="100%" fill="#fff"/><defs><g id="g">',
        _links(scene),
        *_boxes(scene, fills, scale >= _READABLE, set(loud)),
        "</g></defs>",
    ]
    for c in range(columns):
        top = c * each * ROW - _MARGIN
        parts.append(
            f'<svg x="{c * wide * scale:.1f}" width="{wide * scale:.1f}" height="{column * scale:.1f}" '
            f'viewBox="{-_MARGIN} {top:.0f} {wide:.0f} {column:.0f}"><use href="#g"/></svg>'
        )
    for k, kind_ in enumerate(used):
        at_x, at_y = 6 + 150 * (k % per_line), column * scale + _LINE * (k // per_line) + 4
        parts.append(f'<rect x="{at_x}" y="{at_y:.0f}" width="14" height="11" rx="2" fill="{kind_.light}" stroke="#888"/>')
        parts.append(f'<text x="{at_x + 19}" y="{at_y + 10:.0f}" font-family="sans-serif" font-size="11" fill="#444">{kind_.name}</text>')
    return "".join(parts) + "</svg>"


def _links(scene: Scene) -> str:
    x, y, count = scene.layout.x, scene.layout.y, len(scene.boxes)
    parts = []
    for a, b in scene.layout.links.tolist():
        y0, y1 = y[a] + (_BOX if a < count else _BOX / 2), y[b] + (0 if b < count else _BOX / 2)
        half = (y0 + y1) / 2
        bend = f"V{y1:.0f}" if x[a] == x[b] else f"C{x[a]:.0f} {half:.0f} {x[b]:.0f} {half:.0f} {x[b]:.0f} {y1:.0f}"
        parts.append(f"M{x[a]:.0f} {y0:.0f}{bend}")
    return f'<path d="{"".join(parts)}" fill="none" stroke="#888" stroke-width="1.2"/>'


def _boxes(scene: Scene, fills: list[Family], written: bool, loud: set[int]) -> Iterable[str]:
    x, y = scene.layout.x, scene.layout.y
    groups: dict[tuple[str, bool], list[str]] = {}
    for k, box in enumerate(scene.boxes):
        outline = f"M{x[k] - box.width / 2:.0f} {y[k]:.0f}h{box.width:.0f}v{_BOX:.0f}h{-box.width:.0f}z"
        groups.setdefault((fills[k].light, k in loud), []).append(outline)
    for (fill, strong), outlines in groups.items():
        rim = '#222" stroke-width="2.5' if strong else "#888"
        yield f'<path d="{"".join(outlines)}" fill="{fill}" stroke="{rim}" stroke-linejoin="round"/>'
    if written:
        yield '<g font-family="sans-serif" font-size="12" fill="#222" text-anchor="middle">'
        for k, box in enumerate(scene.boxes):
            yield f'<text x="{x[k]:.0f}" y="{y[k] + 18:.0f}">{escape(box.label)}</text>'
        yield "</g>"
