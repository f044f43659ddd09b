"""CompareTable: what it shows, sorts, filters and exports, in Python and in a browser."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cgorl
from cgorl.evaluation.run import Evaluation, save
from cgorl.report.grid import GridError
from cgorl.widgets import CompareTable
from tests.unpacked import unpacked
from tests.widgets.page import browser, page


@pytest.fixture(scope="module")
def ran() -> Evaluation:
    return cgorl.evaluate(
        "model=squeezenet1_1,bert", "zoo.image=64", "search=greedy,random_walk", "seed=1,2,3", "evaluations=150", "seconds=60"
    )


def test_an_evaluation_its_frame_and_its_folder_show_the_same(ran: Evaluation, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    save(ran, tmp_path)
    one = CompareTable(ran)
    assert one.grid() == CompareTable(ran.results).grid()
    for path in (tmp_path, tmp_path / "table.csv"):
        assert CompareTable(path).export("markdown") == one.export("markdown")
    data = unpacked(one.picture)
    assert data["all"] == ["greedy", "random_walk"] and len(data["problems"]) == 2
    assert data["cells"][0][0][4] is True
    assert len(one.picture) < 4_000


def test_what_is_looked_for_sorted_and_hidden_is_what_leaves(ran: Evaluation, tmp_path: Path) -> None:
    made = CompareTable(ran, find="SQUEEZE default")
    assert [p.split()[0] for p in made.grid().problems] == ["squeezenet1_1"]
    made.find, made.sort = "", "greedy"
    first = [p.split()[0] for p in made.grid().problems]
    made.descending = True
    assert [p.split()[0] for p in made.grid().problems] == first[::-1] != first
    made.sort, made.descending = "before", False
    before = made.grid().before_ms
    assert list(before) == sorted(before)
    made.hidden = ["greedy"]
    assert made.grid().methods == ("random_walk",) and "greedy" not in made.save(tmp_path / "t.tex").read_text()
    assert "greedy" not in unpacked(made.picture)["methods"]
    made.measure = "evaluations"
    assert "150" in made.export("csv") and "evaluations" in repr(made)


def test_without_a_browser_it_is_a_table(ran: Evaluation) -> None:
    text = CompareTable(ran).picture_html()
    assert text.count("<tr>") == 3 and "<b>" in text and "not proven" in text


def test_bad_input_is_told_in_a_sentence(ran: Evaluation, tmp_path: Path) -> None:
    with pytest.raises(GridError, match="no table of results in"):
        CompareTable(tmp_path / "none.csv")
    with pytest.raises(GridError, match="no table of results in"):
        CompareTable(tmp_path)
    with pytest.raises(GridError, match="no method 'bream'; there is greedy, random_walk"):
        CompareTable(ran, hidden=["bream"])
    with pytest.raises(GridError, match=r"must end in .csv, .tex, .md, .html"):
        CompareTable(ran).save(tmp_path / "t.xlsx")
    with pytest.raises(GridError, match="there is no form 'pdf'"):
        CompareTable(ran).export("pdf")
    with pytest.raises(GridError, match="no column"):
        CompareTable(pd.DataFrame({"x": [1]}))


def test_in_a_browser_one_sorts_filters_and_downloads(ran: Evaluation) -> None:
    made = CompareTable(ran)
    sent: list[dict[str, Any]] = []
    made.send = lambda content, buffers=None: sent.append(content)
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1000, "height": 520})
        said: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.set_content(page(made))
        tab.wait_for_selector(".cgorl-grid tbody tr")

        def first() -> str:
            return str(tab.locator(".cgorl-grid tbody td").first.inner_text()).split()[0]

        for trait, count in (("sort", 2), ("descending", 1)):
            for _ in range(count):
                tab.locator(".cgorl-sort", has_text="greedy").click()
                for name in ("sort", "descending"):
                    setattr(made, name, tab.evaluate("(k) => window.model.get(k)", name))
                assert first() == made.grid().problems[0].split()[0], trait
        tab.fill("input[type=search]", "bert")
        made.find = tab.evaluate("window.model.get('find')")
        assert tab.locator(".cgorl-grid tbody tr").count() == 1 and first() == "bert"
        tab.locator(".cgorl-methods label", has_text="greedy").click()
        made.hidden = tab.evaluate("window.model.get('hidden')")
        give = "(t) => window.model.set('picture', new DataView(Uint8Array.from(atob(t), (c) => c.charCodeAt(0)).buffer))"
        tab.evaluate(give, base64.b64encode(made.picture).decode())
        tab.wait_for_function("document.querySelectorAll('.cgorl-grid th').length === 3")
        tab.get_by_text("Markdown").click()
        for content in tab.evaluate("window.sent.splice(0)"):
            made._handle_custom_msg(content, [])
        with tab.expect_download() as loading:
            tab.evaluate("(c) => window.model.tell(c)", sent[-1])
        assert loading.value.suggested_filename == "comparison.md"
        assert Path(loading.value.path()).read_text() == made.export("markdown")
        tab.evaluate("window.end()")
        assert said == []
