"""A rule as a picture: source => target, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from cgorl.rules.pattern import INFIX, Each, Lit, Term, Var, bare
from cgorl.rules.rule import Rule

_BOX_H, _GAP_X, _GAP_Y, _PAD = 26, 14, 30, 16
_CHAR = 7.0
_STYLE = (
    ".op rect{fill:#dbe8f7;stroke:#4477aa}.root rect{stroke-width:2.5}.fn rect{fill:#f1ead8;stroke:#a08840}"
    ".var ellipse{fill:#fff;stroke:#888}text{font:12px sans-serif;fill:#222;text-anchor:middle}"
    ".note{font-size:11px;fill:#555;text-anchor:start}line{stroke:#777;stroke-width:1.2}"
    ".arrow{font-size:28px;fill:#555}.title{font-weight:bold;font-size:14px;text-anchor:start}"
    "@media (prefers-color-scheme:dark){.bg{fill:#1e1e1e}text{fill:#ddd}.op rect{fill:#24425f}.fn rect{fill:#4a4128}"
    ".var ellipse{fill:#2b2b2b}.note{fill:#aaa}}"
)


@dataclass(slots=True)
class _Box:
    label: str
    kind: str
    reads: list[int] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0
    root: bool = False

    @property
    def width(self) -> float:
        return max(34.0, _CHAR * len(self.label) + 16)


def picture(rule: Rule) -> str:
    """The rule as an SVG document: both sides as graphs read from top to bottom, its conditions in words below."""
    names = dict(rule.where)
    left, right = _Side(names), _Side(names)
    for term in rule.source:
        left.root(term)
    for term in rule.target:
        right.root(term)
    left_w, left_h = left.place()
    right_w, right_h = right.place()
    notes = _notes(rule)
    graph_h = max(left_h, right_h)
    width = max(left_w + right_w + 4 * _PAD + 40, 7 * max((len(n) for n in [*notes, rule.name]), default=0) + 2 * _PAD)
    height = graph_h + 3 * _PAD + 18 + 16 * len(notes)
    top = _PAD + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(rule.name)}: {escape(str(rule))}</title><style>{_STYLE}</style>",
        '<rect class="bg" width="100%" height="100%" fill="#fff"/>'
        f'<text class="title" x="{_PAD}" y="{_PAD + 4}">{escape(rule.name)}</text>',
        left.svg(_PAD, top),
        f'<text class="arrow" x="{left_w + 2 * _PAD + 14:.0f}" y="{top + graph_h / 2:.0f}">⇒</text>',
        right.svg(left_w + 3 * _PAD + 34, top),
    ]
    for k, note in enumerate(notes):
        parts.append(f'<text class="note" x="{_PAD}" y="{top + graph_h + _PAD + 16 * k:.0f}">{escape(note)}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def _notes(rule: Rule) -> list[str]:
    lines = [f"where {name} = {bare(term)}" for name, term in rule.where]
    row = ""
    for c in map(str, rule.conditions):
        if row and len(row) + len(c) > 90:
            lines.append(row)
            row = ""
        row = f"{row}, {c}" if row else ("if " if not lines or not any(x.startswith("if ") for x in lines) else "   ") + c
    return [*lines, row] if row else lines


class _Side:
    """One side of a rule, laid out in layers: operands above the operators that read them."""

    def __init__(self, names: Mapping[str, Term]) -> None:
        self.boxes: list[_Box] = []
        self._seen: dict[str, int] = {}
        self._names = names

    def root(self, term: Term) -> None:
        self.boxes[self._add(term)].root = True

    def _add(self, term: Term) -> int:
        key = str(term)
        if key not in self._seen:
            self._seen[key] = self._make(term)
        return self._seen[key]

    def _make(self, term: Term) -> int:
        if isinstance(term, Each):
            made = self._make(term.inner)
            self.boxes[made].label = "each " + self.boxes[made].label
            return made
        if isinstance(term, Var) and term.name in self._names:
            return self._add(self._names[term.name])
        if isinstance(term, Var | Lit):
            self.boxes.append(_Box(str(term), "var"))
            return len(self.boxes) - 1
        reads = [self._add(a) for a in term.args if not (isinstance(a, Lit) and not term.is_operator)]
        shown = ", ".join(f"{k}={v}" for k, v in term.attrs if str(v) != "_")
        label = INFIX[term.op] if term.op in INFIX and not term.is_operator else term.op
        self.boxes.append(_Box(f"{label} ({shown})" if shown else label, "op" if term.is_operator else "fn", reads))
        return len(self.boxes) - 1

    def place(self) -> tuple[float, float]:
        """Gives each box its layer and x; returns width and height."""
        for box in self.boxes:  # operands come before their readers
            box.layer = 1 + max((self.boxes[r].layer for r in box.reads), default=-1)
        for box in self.boxes:  # names sit right above their first reader
            for r in box.reads:
                if not self.boxes[r].reads:
                    self.boxes[r].layer = max(self.boxes[r].layer, min(b.layer for b in self.boxes if r in b.reads) - 1)
        layers: dict[int, list[_Box]] = {}
        for box in self.boxes:
            layers.setdefault(box.layer, []).append(box)
        width = max((sum(b.width + _GAP_X for b in row) - _GAP_X for row in layers.values()), default=0.0)
        for layer in sorted(layers):
            row = layers[layer]
            row.sort(key=lambda b: sum(self.boxes[r].x + self.boxes[r].width / 2 for r in b.reads) / len(b.reads) if b.reads else b.x)
            x = (width - (sum(b.width + _GAP_X for b in row) - _GAP_X)) / 2
            for b in row:
                b.x = x
                x += b.width + _GAP_X
        return width, (max(layers, default=0) + 1) * (_BOX_H + _GAP_Y) - _GAP_Y

    def svg(self, x: float, y: float) -> str:
        """The side as SVG, its upper left corner at (x, y)."""
        parts = []
        for box in self.boxes:
            bx, by = x + box.x + box.width / 2, y + box.layer * (_BOX_H + _GAP_Y)
            for r in box.reads:
                src = self.boxes[r]
                sx, sy = x + src.x + src.width / 2, y + src.layer * (_BOX_H + _GAP_Y) + _BOX_H
                parts.append(f'<line x1="{sx:.1f}" y1="{sy:.1f}" x2="{bx:.1f}" y2="{by:.1f}"/>')
        for box in self.boxes:
            bx, by = x + box.x, y + box.layer * (_BOX_H + _GAP_Y)
            cx = bx + box.width / 2
            if box.kind == "var":
                shape = f'<ellipse cx="{cx:.1f}" cy="{by + _BOX_H / 2:.1f}" rx="{box.width / 2:.1f}" ry="{_BOX_H / 2}"/>'
            else:
                shape = f'<rect x="{bx:.1f}" y="{by:.1f}" width="{box.width:.1f}" height="{_BOX_H}" rx="5"/>'
            kind = box.kind + (" root" if box.root else "")
            parts.append(f'<g class="{kind}">{shape}<text x="{cx:.1f}" y="{by + 17:.1f}">{escape(box.label)}</text></g>')
        return "\n".join(parts)
