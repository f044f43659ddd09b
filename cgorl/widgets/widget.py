"""Widget: what all widgets share: one module, one style, and a picture beside the live view."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

import anywidget

from cgorl.widgets.assets import text

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Widget(anywidget.AnyWidget):
    """A widget that also says in plain HTML what it shows.

    A notebook shows the live view where the kernel of the widget runs, and `static` where it does not: reopened, exported, or
    run without a browser. What a widget holds goes to the browser once, as packed bytes; a browser asks for more by messages.
    """

    _css = text("cgorl.css")

    def static(self) -> str:
        """HTML, without scripts and styles of its own, that shows what the widget shows now."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, about = super()._repr_mimebundle_(**kwargs)
        data["text/plain"] = repr(self)
        data["text/html"] = self.static()
        return data, about


def figure(svg: str, caption: str) -> str:
    """HTML of a picture with a line below; as an image, so that a notebook that is not trusted shows it too."""
    data = base64.b64encode(svg.encode()).decode()
    picture = f'<img alt="{escape(caption, quote=True)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}"/>'
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"
