"""TraceView: what it answers, what it says without a browser, and how it plays in one."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cgorl
from cgorl import config, jobs
from cgorl.pipeline import Outcome
from cgorl.report.whatif.branches import BranchError
from cgorl.report.whatif.guide import GuideError
from cgorl.search.trace import TraceError
from cgorl.tracking import Tracker
from cgorl.widgets import TraceView
from tests.unpacked import unpacked
from tests.widgets.page import answers, browser, page, serve, serve_all, tell

POLICY = Path(__file__).parents[2] / "data" / "agents" / "general.pt"


@cache
def outcome() -> Outcome:
    return cgorl.optimize("repvgg_a0", zoo={"image": 32}, prove=False, expansions=8)


def test_a_step_is_sent_when_it_is_asked_for_and_is_small() -> None:
    shown = TraceView(outcome())
    [(about, (before, after))] = answers(shown, {"kind": "step", "step": 1}, {"kind": "step", "step": 99}, {"kind": "?"})
    assert about == {"kind": "step", "branch": 0, "step": 1}
    assert len(before) + len(after) < 6000
    assert unpacked(before)["mark"].any() and unpacked(after)["mark"].any()
    assert len(shown.picture) < 10_000


def test_the_ledger_comes_with_the_first_picture() -> None:
    data = unpacked(TraceView(outcome()).picture)
    assert [data["rules"][r[0]] for r in data["rows"]] == [s.match.rule.name for s in outcome().trace]
    assert data["first"] == pytest.approx(outcome().initial_cost_ms)
    assert data["costs"][-1] == pytest.approx(outcome().cost_ms)
    assert all(len(boxes) > 0 for boxes in data["where"])


def test_what_else_there_was_goes_by_the_jobs_own_prices() -> None:
    shown = TraceView(outcome())
    [(found, _)] = answers(shown, {"kind": "candidates", "step": 2})
    assert found["kind"] == "candidates" and found["rows"] == shown.candidates(2)["rows"]
    assert shown.asks and shown.guides == ["gain"] and not shown.note
    other = TraceView(outcome(), cost=jobs.cost(config.load_config("optimize", ["model=graph", "device=v100"])))
    assert "not of the run's" in other.note and other.film().costs_ms[0] != outcome().initial_cost_ms
    assert other.film().costs_ms[0] == pytest.approx(other.branches[0]["cost_ms"] + sum(b - a for b, a in ends(other)))


def ends(shown: TraceView) -> list[tuple[float, float]]:
    return [(s.before_ms, s.after_ms) for s in shown.film().steps]


def test_a_policy_says_what_it_thinks_of_each() -> None:
    pytest.importorskip("torch")
    shown = TraceView(outcome(), cost="roofline", policy=POLICY)
    (found, _), (again, _) = answers(shown, {"kind": "candidates", "step": 2}, {"kind": "candidates", "step": 0})
    chances = [r["chance"] for r in found["rows"][:8]]
    assert chances == sorted(chances, reverse=True)
    assert 0 < sum(chances) + found["stop"] <= 1.0001
    assert sum(r["taken"] for r in found["rows"]) == sum(r["taken"] for r in again["rows"]) == 1
    assert shown.guides == ["policy", "gain"]


def test_a_click_branches_and_only_what_is_new_is_sent() -> None:
    shown = TraceView(outcome())
    row = shown.candidates(3)["rows"][4]
    asked = {"kind": "what_if", "branch": 0, "step": 3, "rule": row["rule"], "nodes": row["nodes"], "by": "gain", "steps": 30, "ask": 7}
    sent = answers(shown, asked)
    while sent[-1][0]["left"]:
        sent += answers(shown, {"kind": "go_on", "branch": 1, "steps": sent[-1][0]["left"], "ask": 7})
    assert all((c["kind"], c["branch"], c["ask"]) == ("film", 1, 7) for c, _ in sent)
    rows = [(c["rules"][r[0]], r[1]) for c, _ in sent for r in c["rows"]]
    assert rows == [(r["rule"], r["names"][0]) for r in shown.film(1).rows[3:]] and len(rows) == 31
    assert sum(len(json.dumps(c)) for c, _ in sent) < 6000
    assert shown.branch == 1 and len(json.dumps(shown.branches)) < 700
    [(whole, _)] = answers(shown, {"kind": "film", "branch": 1})  # a view that was opened later
    assert whole["since"] == 3 and len(whole["rows"]) == 31 and len(json.dumps(whole)) < 6000
    [(about, (before, after))] = answers(shown, {"kind": "step", "branch": 1, "step": 20})
    assert about["branch"] == 1 and len(before) + len(after) < 6000
    answers(shown, {"kind": "drop", "branch": 1})
    assert shown.branch == 0 and len(shown.branches) == 1


def test_one_message_keeps_the_kernel_for_a_slice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgorl.widgets.trace_view._SLICE", 0.0)
    shown = TraceView(outcome())
    row = shown.candidates(0)["rows"][2]
    asked = {"kind": "what_if", "branch": 0, "step": 0, "rule": row["rule"], "nodes": row["nodes"], "by": "gain", "steps": 5}
    [(first, _)] = answers(shown, asked)
    assert first["left"] == 4 and len(first["rows"]) == 2
    [(more, _)] = answers(shown, {"kind": "go_on", "branch": 1, "steps": 4})
    assert more["left"] == 3 and len(more["rows"]) == 1 and more["since"] == 2
    [(much, _)] = answers(shown, {"kind": "go_on", "branch": 1, "steps": 10**9})
    assert much["left"] == 199


def test_from_python_one_branches_too() -> None:
    shown = TraceView(outcome())
    n = shown.what_if(2, 3, steps=4)
    assert (shown.branch, len(shown.film(n).steps), shown.branches[1]["at"]) == (n, 7, 2)
    m = shown.what_if(5, 1, by="", steps=9)
    assert shown.branches[2]["parent"] == n and len(shown.film(m).steps) == 6 and shown.branches[2]["ended"] == "not gone on with"
    assert repr(shown).endswith("; 2 branches)")
    shown.drop(n)
    assert shown.branch == 0 and repr(shown) == repr(TraceView(outcome()))
    with pytest.raises(BranchError, match="no candidate of rank 500"):
        shown.what_if(2, 500)
    with pytest.raises(BranchError, match="there is no branch 9"):
        shown.branch = 9
    [(why, _)] = answers(shown, {"kind": "what_if", "branch": 0, "step": 0, "rule": "no-such", "nodes": [1], "by": "gain", "steps": 3})
    assert why["kind"] == "why" and "no-such does not apply" in why["text"]


def test_a_run_is_read_from_its_folder(tmp_path: Path) -> None:
    cfg = config.load_config("optimize", ["model=repvgg_a0", "zoo.image=32", "prove=false", "expansions=5", f"runs={tmp_path}"])
    tracker = Tracker(tmp_path, "optimize", "repvgg")
    done = jobs.optimize(cfg, tracker=tracker)
    shown = TraceView(tracker.folder)
    assert repr(shown) == repr(TraceView(done))
    assert shown.asks and shown.candidates(1)["rows"] == TraceView(done).candidates(1)["rows"]
    assert repr(TraceView(tracker.folder / "trace.json")) == repr(shown)
    with pytest.raises(TraceError, match="starts from another graph"):
        TraceView(tracker.folder, model=cgorl.load("bert", layers=1))
    with pytest.raises(TraceError, match="there is no trace in"):
        TraceView(tmp_path)


def agents_run(tmp_path: Path, **more: Any) -> Path:
    given = ["model=repvgg_a0", "zoo.image=32", "zoo.width=0.125", "zoo.depth=[1,1,1,1]", "prove=false", "search=agent", "evaluations=400"]
    cfg = config.load_config("optimize", [*given, *(f"{k}={v}" for k, v in more.items())])
    tracker = Tracker(tmp_path, "optimize", "repvgg")
    jobs.optimize(cfg, tracker=tracker)
    return tracker.folder


def test_the_run_of_an_agent_tells_its_chances_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    folder = agents_run(tmp_path)
    shown = TraceView(folder)
    assert shown.guides == ["policy", "gain"] and shown.candidates(0)["by"] == "policy"
    n = shown.what_if(0, 2, by="policy", steps=3)
    assert len(shown.film(n).steps) == 4
    monkeypatch.setattr("cgorl.widgets.trace_run.find_spec", lambda name: None)
    without = TraceView(folder)
    assert without.guides == ["gain"] and "needs the agent's packages" in without.note and without.candidates(0)["by"] == "gain"
    monkeypatch.setattr("cgorl.report.whatif.guide.find_spec", lambda name: None)
    with pytest.raises(GuideError, match="a policy needs the agent's packages"):
        TraceView(folder, policy=POLICY)


def test_without_the_agents_packages_the_film_plays_and_branches() -> None:
    script = """
import sys
for name in ("torch", "torch_geometric", "gymnasium", "wandb"):
    sys.modules[name] = None
import cgorl
from cgorl.widgets import TraceView
shown = TraceView(cgorl.optimize("squeezenet1_1", zoo={"image": 64}, prove=False, device="v100", expansions=4))
number = shown.what_if(0, 2, steps=5)
print(len(shown.film(number).steps) > 1, "branch 1" in shown.static())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "True True"), ran.stderr


def test_without_a_browser_it_shows_curve_rewrite_and_ledger() -> None:
    text = TraceView(outcome()).picture_html()
    assert text.count("data:image/svg+xml") == 3
    assert text.count("<tr>") == len(outcome().trace) + 2
    assert len(text) < 60_000
    empty = cgorl.optimize("squeezenet1_1", zoo={"image": 64}, prove=False, expansions=0)
    assert "no rewrite" in TraceView(empty).picture_html()


def test_without_a_browser_it_shows_the_branches_and_is_renewed_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[str] = []
    monkeypatch.setattr(TraceView, "renew", lambda self: renewed.append(self.picture_html()))
    shown = TraceView(outcome())
    shown.what_if(2, 3, steps=6)
    shown.what_if(4, 2, steps=3)
    assert len(renewed) == 2
    text = renewed[-1]
    assert text.count("data:image/svg+xml") == 3 and "branch 2 among the others" in text
    for b in shown.branches[1:]:
        assert f"{b['rule']} at {b['where']}" in text and f"{b['cost_ms']:.4g}" in text
    assert len(text) < 60_000


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


def test_in_a_browser_one_branches_compares_and_drops() -> None:
    shown = TraceView(outcome())
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1100, "height": 1200})
        said: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.set_content(page(shown))
        serve_all(tab, shown)
        tab.locator(".cgorl-slider").fill("2")
        serve_all(tab, shown)
        assert tab.locator(".cgorl-branches").is_hidden()
        tab.get_by_label("rewrites at most").fill("12")
        tab.locator(".cgorl-candidates tbody tr").nth(3).click()
        serve_all(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-branch='1'][data-shown='2'][data-walks='false']")
        assert len(shown.film(1).steps) == 15 and shown.branch == 1
        assert "branch 1, step 3 of 15" in tab.inner_text(".cgorl-headline")
        assert tab.locator(".cgorl-ledger tr[data-step]").count() == 15
        assert tab.get_attribute(".cgorl-curve", "data-ways") == "2"
        tab.locator(".cgorl-candidates tbody tr").nth(4).get_by_role("button").press("Enter")  # by keys too
        serve_all(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-branch='2']")
        rows = tab.locator(".cgorl-branches tr[data-branch]")
        assert [rows.nth(k).get_attribute("data-branch") for k in range(3)] == ["0", "1", "2"]
        assert f"{100 * (shown.branches[1]['cost_ms'] / shown.branches[0]['cost_ms'] - 1):.2f}".lstrip("-") in rows.nth(1).inner_text()
        assert "conv-batchnorm" in tab.inner_text(".cgorl-branches .cgorl-ledger >> nth=1")
        rows.nth(0).click()
        serve_all(tab, shown)
        assert shown.branch == 0 and "step 3 of 8" in tab.inner_text(".cgorl-headline")
        tab.locator(".cgorl-slider").fill("8")
        tab.wait_for_function("document.querySelector('.cgorl-headline').innerText.includes('the end')")
        serve_all(tab, shown)
        tab.get_by_label("a branch goes on by").select_option("")
        tab.locator(".cgorl-candidates tbody tr").nth(0).click()
        serve_all(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-branch='3']")
        assert len(shown.film(3).steps) == 9
        assert "film" not in tab.evaluate("window.kinds")  # what is new came by itself, and only once
        tab.get_by_label("drop branch 1").click()
        serve_all(tab, shown)
        assert [b["number"] for b in shown.branches] == [0, 2, 3]
        assert tab.locator(".cgorl-branches tr[data-branch]").count() == 3
        shown.drop(2)
        shown.drop(3)
        tell(tab, shown)
        assert tab.locator(".cgorl-branches").is_hidden() and tab.get_attribute(".cgorl-trace", "data-branch") == "0"
        tab.evaluate("window.end()")
        assert said == []


def test_a_view_that_is_opened_later_shows_the_branches(tmp_path: Path) -> None:
    shown = TraceView(outcome())
    shown.what_if(2, 3, steps=4)
    shown.what_if(4, 2, steps=4)
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1100, "height": 1200})
        tab.set_content(page(shown, dark=True))
        serve_all(tab, shown)
        tab.wait_for_selector(".cgorl-trace[data-branch='2'][data-shown='0']")
        assert tab.get_attribute(".cgorl-curve", "data-ways") == "3"
        assert tab.locator(".cgorl-ledger tr[data-step]").count() == len(shown.film(2).steps)
