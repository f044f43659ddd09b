"""Picture: a figure that stands in a page or a notebook, light or dark, and goes into a file."""

from __future__ import annotations

import hashlib
import io
import re
from html import escape
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from cgorl.report.figures import COLOURS, GREY, save

GRID = "#d9d9d9"
_FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


class Picture(NamedTuple):
    """A figure of matplotlib's with what it is called and what is to be known of it; a notebook shows it as it stands."""

    figure: Figure
    title: str
    note: str = ""

    def save(self, path: str | Path) -> Path:
        """Writes it as PNG, SVG or PDF, by the ending of `path`. Raises TrackError."""
        return save(self.figure, Path(path))

    def svg(self) -> str:
        """It as SVG to stand within a page: text and axes in the page's colour, lines in --c0 to --c6 where the page sets them."""
        text = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.title}):
            FigureCanvasSVG(self.figure).print_svg(text, metadata={"Date": None, "Creator": None})
        return _inline(text.getvalue(), self.title)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        note = f"<figcaption>{escape(self.note)}</figcaption>" if self.note else ""
        return f'<figure style="margin:0;max-width:46em">{self.svg()}{note}</figure>'


def _inline(text: str, title: str) -> str:
    """The drawing alone, its ids its own in a page of several, its colours those of the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    own = "f" + hashlib.blake2b(title.encode(), digest_size=4).hexdigest()
    text = re.sub(r'\bid="([^"]+)"', rf'id="{own}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{own}-", text)
    for k, colour in enumerate(COLOURS[:6]):
        text = re.sub(rf"(?<=[\s:]){colour}\b", f"var(--c{k}, {colour})", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?<=[\s:]){GRID}\b", "var(--grid, rgba(128,128,128,.3))", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?<=[\s:])(#000000|{GREY})\b", "currentColor", text, flags=re.IGNORECASE)
    text = re.sub(r"'DejaVu Sans'[^;\"]*sans-serif", _FONT, text)
    box = re.search(r'viewBox="0 0 ([\d.]+)', text)
    width = f"{float(box[1]) * 1.6:.0f}px" if box else "100%"
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    # matplotlib leaves the colour of text to the reader, which is black wherever the page is
    look = f"width:100%;max-width:{width};height:auto;fill:currentColor"
    return f'{head} role="img" aria-label="{escape(title, quote=True)}" style="{look}">{rest}'.strip()
