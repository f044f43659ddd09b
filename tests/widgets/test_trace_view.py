"""TraceView: what it answers, what it says without a browser, and how it plays in one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import cgorl
from cgorl import config, jobs
from cgorl.pipeline import Outcome
from cgorl.search.trace import TraceError
from cgorl.tracking import Tracker
from cgorl.widgets import TraceView
from tests.unpacked import unpacked
from tests.widgets.page import answers, browser, page, serve


@cache
def outcome() -> Outcome:
    return cgorl.optimize("repvgg_a0", zoo={"image": 32}, prove=False, expansions=8)


def test_a_step_is_sent_when_it_is_asked_for_and_is_small() -> None:
    shown = TraceView(outcome())
    [(about, (before, after))] = answers(shown, {"kind": "step", "step": 1}, {"kind": "step", "step": 99}, {"kind": "?"})
    assert about == {"kind": "step", "step": 1}
    assert len(before) + len(after) < 6000
    assert unpacked(before)["mark"].any() and unpacked(after)["mark"].any()
    assert len(shown.picture) < 10_000


def test_the_ledger_comes_with_the_first_picture() -> None:
    data = unpacked(TraceView(outcome()).picture)
    assert [data["rules"][r[0]] for r in data["rows"]] == [s.match.rule.name for s in outcome().trace]
    assert data["costs"][0] == pytest.approx(outcome().initial_cost_ms)
    assert all(len(boxes) > 0 for boxes in data["where"])


def test_what_else_there_was_is_ordered_by_gain_and_holds_what_was_done() -> None:
    [(found, _)] = answers(TraceView(outcome(), cost="roofline"), {"kind": "candidates", "step": 2})
    gains = [r["gain_ms"] for r in found["rows"][:8]]
    assert gains == sorted(gains, reverse=True)
    [taken] = [r for r in found["rows"] if r["taken"]]
    assert taken["rule"] == outcome().trace[2].match.rule.name
    assert taken["gain_ms"] == pytest.approx(outcome().trace[2].before_ms - outcome().trace[2].after_ms)


def test_a_policy_says_what_it_thinks_of_each() -> None:
    pytest.importorskip("torch")
    policy = Path(__file__).parents[2] / "data" / "agents" / "general.pt"
    shown = TraceView(outcome(), cost="roofline", policy=policy)
    (found, _), (again, _) = answers(shown, {"kind": "candidates", "step": 2}, {"kind": "candidates", "step": 0})
    chances = [r["chance"] for r in found["rows"][:8]]
    assert chances == sorted(chances, reverse=True)
    assert 0 < sum(chances) + found["stop"] <= 1.0001
    assert sum(r["taken"] for r in found["rows"]) == sum(r["taken"] for r in again["rows"]) == 1
    with pytest.raises(TraceError, match="a policy reads prices too"):
        TraceView(outcome(), policy=policy)


def test_a_run_is_read_from_its_folder(tmp_path: Path) -> None:
    cfg = config.load_config("optimize", ["model=repvgg_a0", "zoo.image=32", "prove=false", "expansions=5", f"runs={tmp_path}"])
    tracker = Tracker(tmp_path, "optimize", "repvgg")
    done = jobs.optimize(cfg, tracker=tracker)
    shown = TraceView(tracker.folder)
    assert repr(shown) == repr(TraceView(done))
    assert shown.asks
    assert repr(TraceView(tracker.folder / "trace.json")) == repr(shown)
    with pytest.raises(TraceError, match="starts from another graph"):
        TraceView(tracker.folder, model=cgorl.load("bert", layers=1))
    with pytest.raises(TraceError, match="there is no trace in"):
        TraceView(tmp_path)


def test_without_a_browser_it_shows_curve_rewrite_and_ledger() -> None:
    text = TraceView(outcome()).picture_html()
    assert text.count("data:image/svg+xml") == 3
    assert text.count("<tr>") == len(outcome().trace) + 2
    assert len(text) < 60_000
    empty = cgorl.optimize("squeezenet1_1", zoo={"image": 64}, prove=False, expansions=0)
    assert "no rewrite" in TraceView(empty).picture_html()


def test_in_a_browser_slider_and_ledger_go_through_the_steps() -> None:
    shown = TraceView(outcome(), cost="roofline")
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1100, "height": 900})
        said: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.set_content(page(shown))
        tab.wait_for_function("window.ready && window.sent.length >= 3")  # this step, the next, and what else there was
        serve(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-shown='0']")
        assert "step 1 of 8" in tab.inner_text(".cgorl-headline")
        assert "candidates, the largest gain first" in tab.inner_text(".cgorl-candidates")
        tab.locator(".cgorl-slider").fill("3")
        serve(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-shown='3']")
        assert tab.inner_text("tr.now >> nth=0").split("\t")[1].strip() == outcome().trace[3].match.rule.name
        tab.locator(".cgorl-ledger tr[data-step='1']").click()
        tab.wait_for_selector(".cgorl-trace[data-shown='1']")
        tab.locator("button[title^='step on']").click()
        serve(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-shown='2']")
        assert tab.locator(".cgorl-slider").input_value() == "2"
        tab.locator("button[title^='play']").click()
        tab.wait_for_function("window.model.get('step') >= 3")
        tab.evaluate("window.end()")
        assert said == []
