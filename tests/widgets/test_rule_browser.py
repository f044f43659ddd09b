"""RuleBrowser: what it says of rules, where they match, why not, and how it is used in a browser."""

from __future__ import annotations

from functools import cache

import pytest

from cgorl.config import ConfigError
from cgorl.report.rules.places import PlaceError, node_name, places
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library
from cgorl.widgets import RuleBrowser
from tests.unpacked import unpacked
from tests.widgets.page import answers, browser, page, serve


@cache
def rules_browser() -> RuleBrowser:
    return RuleBrowser("repvgg_a0", image=32, rule="conv-batchnorm")


def test_every_rule_is_listed_with_its_matches() -> None:
    shown = rules_browser()
    rows = {r[0]: r[1:] for r in unpacked(shown.listing)["rows"]}
    assert list(rows) == [r.name for r in library()]
    found = places(shown._source.graph, RuleSet(library()), shown._source.cost)
    for name, (_, _, count, gain) in rows.items():
        here = [p for p in found if p.rule == name]
        assert count == len(here)
        assert gain == pytest.approx(max((p.gain_ms for p in here), default=0.0))
    assert len(shown.listing) < 12_000


def test_a_rule_is_told_with_picture_text_conditions_and_places() -> None:
    [(told, _)] = answers(rules_browser(), {"kind": "rule", "rule": "conv-batchnorm"})
    assert told["svg"].startswith("<svg")
    assert told["text"].startswith("# Batch normalization behind")
    assert told["provenance"] == "hand"
    assert ["constant(w, b, s, t, m, v)", "Each value rests on initializers alone (or is absent)."] in told["conditions"]
    gains = [m[1] for m in told["matches"]]
    assert gains == sorted(gains, reverse=True)
    assert all(m[3] for m in told["matches"])


def test_every_condition_of_the_library_has_words() -> None:
    shown = RuleBrowser()
    for told, _ in answers(shown, *({"kind": "rule", "rule": r.name} for r in library())):
        assert all(len(words) > 10 for _, words in told["conditions"]), told["rule"]
        assert told["matches"] == []


def test_a_node_says_why_a_rule_does_not_match() -> None:
    shown = rules_browser()
    box = {i: k for k, i in enumerate(shown._boxes)}
    graph = shown._source.graph
    relu = next(i for i, n in graph.nodes.items() if n.op == "Relu")
    norm = next(i for i, n in graph.nodes.items() if n.op == "BatchNormalization" and graph.nodes[n.inputs[0].node].op == "Conv")
    (not_it, _), (it, _) = answers(
        shown,
        {"kind": "why", "rule": "conv-batchnorm", "box": box[relu]},
        {"kind": "why", "rule": "conv-batchnorm", "box": box[norm]},
        {"kind": "why", "rule": "conv-batchnorm", "box": 10_000},
        {"kind": "why", "rule": "no-such-rule", "box": 0},
    )
    assert "is Relu, not BatchNormalization" in not_it["why"]
    assert it["why"] == ""
    name = node_name(graph, relu)
    assert shown.why(name, "conv-batchnorm") == f"conv-batchnorm does not match at {name}: {not_it['why']}"
    assert shown.why(node_name(graph, norm), "conv-batchnorm") == f"conv-batchnorm matches at {node_name(graph, norm)}"
    for node, rule, says in ((name, "conv-batch", "no rule 'conv-batch' among these"), ("nowhere", None, "no node 'nowhere'")):
        with pytest.raises(PlaceError, match=says):
            shown.why(node, rule)
    with pytest.raises(PlaceError, match="no model to look into"):
        RuleBrowser().why(name)


def test_a_rule_is_proven_on_the_spot() -> None:
    [(told, _)] = answers(rules_browser(), {"kind": "verify", "rule": "relu-maxpool"})
    assert told["ok"]
    assert told["text"].startswith("15 of ")


def test_without_a_browser_it_shows_a_picture_and_a_table() -> None:
    shown = rules_browser()
    text = shown.picture_html()
    assert "data:image/svg+xml" in text
    assert text.count("<tr>") == len(shown._matches) + 1
    assert f"{len(library()) - len(shown._matches)} rules match nowhere in it" in text
    text = RuleBrowser().picture_html()
    assert text.count("<tr>") == len(library()) + 1
    assert len(text) < 80_000


def test_bad_input_is_told_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="did you mean 'conv-batchnorm'"):
        RuleBrowser(rule="conv-batchnrom")
    with pytest.raises(ConfigError, match="rules=none_such"):
        RuleBrowser(rules="none_such")


def test_in_a_browser_one_reads_proves_and_asks() -> None:
    shown = rules_browser()
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1100, "height": 900})
        said: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.set_content(page(shown, dark=True))
        serve(tab, shown)
        assert tab.evaluate("document.querySelector('.cgorl-paper img').complete")
        assert "min-width%3A0" in tab.get_attribute(".cgorl-paper img", "src")
        assert tab.locator(".cgorl-item").count() == len(shown._matches)
        tab.get_by_text("prove it on random graphs").click()
        serve(tab, shown)
        assert "proven: 15 of" in tab.inner_text(".cgorl-rule")
        tab.wait_for_selector(".cgorl-canvas[data-painted]")
        tab.locator(".cgorl-main").focus()
        tab.keyboard.press("End")
        serve(tab, shown)
        assert tab.inner_text(".cgorl-why") == "conv-batchnorm at an output: it is an output of the model, no node"
        tab.keyboard.press("ArrowUp")
        serve(tab, shown)
        assert "not BatchNormalization" in tab.inner_text(".cgorl-why")
        tab.get_by_text("only those that match").click()
        tab.fill("input[type=search]", "relu-maxpool")
        tab.locator(".cgorl-item[data-rule='relu-maxpool']").click()
        serve(tab, shown)
        assert "it matches nowhere in this model" in tab.inner_text(".cgorl-lower")
        tab.evaluate("window.end()")
        assert said == []
