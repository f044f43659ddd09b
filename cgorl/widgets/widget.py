"""Widget: what all widgets share: one module, one style, and a picture beside the live view."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Container, Iterable
from html import escape
from itertools import count
from typing import Any

import anywidget
import traitlets
from IPython.display import display, update_display

from cgorl.widgets.assets import text

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Widget(anywidget.AnyWidget):
    """A widget that also says in plain HTML what it shows.

    A notebook gets two outputs: the live view, and the picture (`static`), which the live view hides as long as it lives. So
    the picture is there where the kernel is gone: in a notebook that is opened again, exported, or run without a browser.
    What a widget holds goes to the browser once, as packed bytes; a browser asks for more by messages.
    """

    _css = text("cgorl.css")
    stand_in = traitlets.Unicode("").tag(sync=True)
    """What the picture is called in the page."""

    def __init__(self, **traits: Any) -> None:
        self._displayed = False
        super().__init__(stand_in=uuid.uuid4().hex, **traits)

    def static(self) -> str:
        """HTML, without scripts and styles of its own, that shows what the widget shows now."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, about = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/plain": repr(self)}, about

    def _ipython_display_(self) -> None:
        data, about = self._repr_mimebundle_()
        display(data, metadata=about, raw=True)
        display({"text/plain": repr(self), "text/html": self.picture_html()}, raw=True, display_id=self.stand_in)
        self._displayed = True

    def renew(self) -> None:
        """Puts the picture as it is now in the place of the one in the notebook; to be called now and then by what changes."""
        if self._displayed:
            update_display({"text/plain": repr(self), "text/html": self.picture_html()}, raw=True, display_id=self.stand_in)

    def picture_html(self) -> str:
        """`static`, called so that the live view finds it.

        Where JupyterLab finds no widget it says so in a line of bare text above, which the picture takes the place of.
        """
        above = f'.jp-OutputArea-child:has(+ .jp-OutputArea-child [data-cgorl="{self.stand_in}"]) > .jupyter-widgets:not(:has(*))'
        return f'<div data-cgorl="{self.stand_in}"><style>{above} {{ display: none; }}</style>{self.static()}</div>'


def row(cells: Iterable[str], numbers: Container[int] = (), tag: str = "td") -> str:
    """HTML of a row of plain texts; to the left, as texts are, but for the columns in `numbers`."""
    sides = ("right" if k in numbers else "left" for k in count())
    return "<tr>" + "".join(f'<{tag} style="text-align:{s}">{escape(c)}</{tag}>' for c, s in zip(cells, sides, strict=False)) + "</tr>"


def figure(svg: str, caption: str) -> str:
    """HTML of a picture with a line below; as an image, so that a notebook that is not trusted shows it too."""
    data = base64.b64encode(svg.encode()).decode()
    picture = f'<img alt="{escape(caption, quote=True)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"/>'
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"
