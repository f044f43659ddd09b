"""GraphView: what it holds, what it sends, and how it looks in a browser."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import cgorl
from cgorl.config import ConfigError
from cgorl.ir.onnx_io import ModelError
from cgorl.ir.sizes import DimsError
from cgorl.widgets import GraphView
from cgorl.widgets.widget import WIDGET_VIEW
from tests.widgets.page import browser, page


def view(**given: Any) -> GraphView:
    return GraphView("squeezenet1_1", image=64, **given)


def test_a_notebook_gets_a_live_view_and_a_picture_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = view()
    outputs: list[dict[str, Any]] = []
    monkeypatch.setattr("cgorl.widgets.widget.display", lambda data, **_: outputs.append(data))
    shown._ipython_display_()
    live, picture = outputs
    assert WIDGET_VIEW in live
    assert "text/html" not in live
    assert live["text/plain"] == picture["text/plain"] == "GraphView(squeezenet1_1: 65 nodes)"
    assert "data:image/svg+xml;base64," in picture["text/html"]
    assert f'data-cgorl="{shown.stand_in}"' in picture["text/html"]
    assert "65 nodes" in picture["text/html"]
    assert "<script" not in picture["text/html"]


def test_what_is_sent_is_small_and_sent_once() -> None:
    shown = view()
    state = shown.get_state()
    assert len(state["picture"]) < 8000
    assert len(json.dumps({k: v for k, v in state.items() if isinstance(v, str)})) < 60_000
    sent = recorded(shown)
    shown.colour = "cost"
    shown.height = 300
    assert [list(s) for s in sent] == [["colour"], ["height"]]
    shown.folded = True
    assert [set(s) for s in sent[2:]] == [{"folded"}, {"picture"}]


def test_the_picture_is_coloured_as_the_view_is() -> None:
    def svg(text: str) -> str:
        return base64.b64decode(text.partition("base64,")[2].partition('"')[0]).decode()

    shown = view()
    assert ">convolution<" in svg(shown.picture_html())
    shown.colour = "cost"
    assert ">up to 5 %<" in svg(shown.picture_html())
    assert ">convolution<" not in svg(shown.picture_html())


def recorded(widget: GraphView) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    class Comm:
        kernel = object()

        def send(self, data: dict[str, Any], **_: Any) -> None:
            sent.append({**data["state"], **{p[0]: None for p in data["buffer_paths"]}})

        def close(self, *_: Any, **__: Any) -> None: ...

        def on_msg(self, _: Any) -> None: ...

        comm_id = "one"

    widget.comm.close()
    widget.comm = Comm()
    return sent


def test_a_block_folds_by_a_message_and_all_by_the_trait() -> None:
    shown = GraphView("bert", layers=3, cost=None)
    whole = len(shown.scene().boxes)
    shown._handle_custom_msg({"kind": "fold", "block": 0}, [])
    one = len(shown.scene().boxes)
    assert whole - one == len(shown._blocks[0].nodes) - 1
    shown._handle_custom_msg({"kind": "fold", "block": 10_000}, [])
    shown._handle_custom_msg({"kind": "other"}, [])
    assert len(shown.scene().boxes) == one
    shown.folded = True
    assert len(shown.scene().boxes) < one
    shown.folded = False
    assert len(shown.scene().boxes) == whole


def test_a_graph_is_taken_as_it_is() -> None:
    graph = cgorl.load("bert", layers=1)
    assert GraphView(graph, cost=None)._source.graph is graph


def test_bad_input_is_told_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="there is no cost=nothing"):
        view(cost="nothing")
    with pytest.raises(ModelError):
        GraphView("no/such/file.onnx")
    with pytest.raises(DimsError, match=r"dims\.batch=8"):
        GraphView("bert", layers=1, batch="batch")
    assert GraphView("bert", layers=1, batch="batch", dims={"batch": 2}).scene().total_ms > 0


def test_in_a_browser_it_draws_searches_walks_and_folds() -> None:
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1000, "height": 700})
        said: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.on("request", lambda r: asked.append(r.url))
        tab.set_content(page(GraphView("resnet50"), dark=True))
        tab.wait_for_selector(".cgorl-dark .cgorl-canvas[data-painted]")
        tab.fill("input[type=search]", "maxpool")
        assert tab.inner_text(".cgorl-hits") == "1 found"
        tab.press("input[type=search]", "Enter")
        assert "stem/maxpool" in tab.inner_text(".cgorl-tip")
        tab.locator(".cgorl-main").focus()
        tab.keyboard.press("ArrowDown")
        assert tab.inner_text(".cgorl-tip").startswith("Conv\nlayer1/0/")
        assert "% of all" in tab.inner_text(".cgorl-tip")
        tab.keyboard.press("Enter")
        assert tab.evaluate("window.sent") == [{"kind": "fold", "block": 0}]
        tab.select_option("select", "cost")
        assert "to the dearest" in tab.inner_text(".cgorl-legend")
        assert tab.evaluate("window.model.get('colour')") == "cost"
        before = tab.evaluate(PAPER)
        tab.evaluate("document.body.dataset.jpThemeLight = 'true'")
        tab.wait_for_function(f"{PAPER} !== {json.dumps(before)}")
        tab.evaluate("window.end()")
        assert tab.locator(".cgorl-canvas").count() == 0
        assert said == []
        assert [u for u in asked if not u.startswith(("blob:", "data:"))] == []


PAPER = "document.querySelector('.cgorl-main').getContext('2d').getImageData(2, 2, 1, 1).data.join()"
