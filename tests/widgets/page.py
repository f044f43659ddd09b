"""A widget on a page of its own, without Jupyter: its module, and a model that holds its traits and keeps what is asked of it."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from cgorl.widgets.widget import Widget

_PAGE = """<!doctype html><meta charset="utf-8"><title>widget</title><style>body {{ margin: 12px; {paper} }}</style><style>{css}</style>
<body {dark}><div id="host"></div><script type="module">
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const given = {traits};
const held = Object.fromEntries(Object.entries(given).map(([k, v]) => [k, v && v.bytes !== undefined ? bytes(v.bytes) : v]));
const told = {{}};
window.sent = [];
window.kinds = [];
window.model = {{
  get: (k) => held[k],
  set: (k, v) => {{ if (held[k] !== v) {{ held[k] = v; for (const f of told[`change:${{k}}`] || []) f(); }} }},
  save_changes: () => {{}},
  send: (content) => {{ window.sent.push(content); window.kinds.push(content.kind); }},
  on: (event, f) => (told[event] ||= []).push(f),
  off: (event, f) => (told[event] = (told[event] || []).filter((g) => g !== f)),
  tell: (content, buffers = []) => {{ for (const f of told["msg:custom"] || []) f(content, buffers.map(bytes)); }},
}};
const {{ default: widget }} = await import(URL.createObjectURL(new Blob([{module}], {{ type: "text/javascript" }})));
window.began = performance.now();
window.end = widget.render({{ model: window.model, el: document.getElementById("host") }});
window.ready = true;
</script>"""


def page(widget: Widget, dark: bool = False) -> str:
    """The page as HTML."""
    traits = {k: getattr(widget, k) for k in widget.keys if not k.startswith("_") and k not in ("layout", "tabbable", "tooltip")}
    given = {k: {"bytes": base64.b64encode(v).decode()} if isinstance(v, bytes) else v for k, v in traits.items()}
    return _PAGE.format(
        paper="background: #111; color: #eee;" if dark else "",
        css=widget._css,
        dark=f'data-jp-theme-light="{"false" if dark else "true"}"',
        traits=json.dumps(given).replace("</", "<\\/"),
        module=json.dumps(widget._esm).replace("</", "<\\/"),
    )


def answers(widget: Widget, *asked: Mapping[str, Any]) -> list[tuple[dict[str, Any], list[bytes]]]:
    """What the widget sends, content and buffers, when a browser asks for something."""
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers or []))
    for content in asked:
        widget._handle_custom_msg(dict(content), [])
    return sent


def serve(tab: Any, widget: Widget) -> None:
    """Waits until the page asks for something, and brings it what the widget answers to all that it has asked; traits are kept alike."""
    tab.wait_for_function("window.ready && window.sent.length >= 1")
    _heed(tab, widget)
    sent = answers(widget, *tab.evaluate("window.sent.splice(0)"))
    tell(tab, widget)
    for content, buffers in sent:
        tab.evaluate("([c, b]) => window.model.tell(c, b)", [content, [base64.b64encode(b).decode() for b in buffers]])


def serve_all(tab: Any, widget: Widget) -> None:
    """Serves until the page asks for nothing more."""
    serve(tab, widget)
    while tab.evaluate("new Promise((done) => setTimeout(() => done(window.sent.length), 60))"):
        serve(tab, widget)


def tell(tab: Any, widget: Widget) -> None:
    """Brings the page the traits that have changed here."""
    for name, value in _plain(widget).items():
        if value != tab.evaluate("(k) => window.model.get(k)", name):
            tab.evaluate("([k, v]) => window.model.set(k, v)", [name, value])
    widget._page = _plain(widget)


def _heed(tab: Any, widget: Widget) -> None:
    """Takes over the traits that the page has changed since it was told."""
    for name, value in getattr(widget, "_page", _plain(widget)).items():
        now = tab.evaluate("(k) => window.model.get(k)", name)
        if now != value:
            setattr(widget, name, now)


def _plain(widget: Widget) -> dict[str, Any]:
    """The traits that are JSON data."""
    names = [k for k in widget.keys if not k.startswith("_") and k not in ("layout", "tabbable", "tooltip")]
    return {k: v for k in names if not isinstance(v := getattr(widget, k), bytes)}


@contextmanager
def browser() -> Iterator[Any]:
    """Debian's chromium driven by playwright; skips with the reason where one of them is not there."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install -e '.[dev]')")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on this machine (Debian: apt-get install chromium fonts-dejavu-core)")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    quiet += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=program, args=quiet)
        try:
            yield opened
        finally:
            opened.close()
