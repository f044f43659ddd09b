"""The page and the report of W&B: the same numbers, no network, and a page that fits a phone and a dark room."""

from __future__ import annotations

import json
import re
import socket
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cgorl.report.experiment import read
from cgorl.report.experiment.compose import compose
from cgorl.report.experiment.content import Report, Table
from cgorl.report.experiment.page import page
from cgorl.report.experiment.spec import markdown, spec
from cgorl.tracking import workspaces
from tests.report.experiment.made import sweep, training, two_by_three

with_workspaces = pytest.mark.skipif(find_spec("wandb_workspaces") is None, reason="wandb-workspaces is not installed")


class Cells(HTMLParser):
    """The tables of a page as text."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._in = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in = True

    def handle_endtag(self, tag: str) -> None:
        self._in = self._in and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in:
            self.tables[-1][-1][-1] += data


def of_page(text: str) -> list[list[list[str]]]:
    read_ = Cells()
    read_.feed(text)
    return read_.tables


def of_markdown(texts: list[str]) -> list[list[list[str]]]:
    """The tables in Markdown, as they read."""
    found = []
    for text in texts:
        rows = [line for line in text.splitlines() if line.startswith("|")]
        cells = [
            [c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]]
            for row in rows
            if not re.fullmatch(r"[|\s:-]+", row.replace("|  |  |", "x"))
        ]
        if rows:
            found.append([[re.sub(r"\\(.)", r"\1", re.sub(r"^\*\*(.*)\*\*$", r"\1", c)) for c in row] for row in cells])
    return found


@pytest.fixture(name="report", scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return compose(read(two_by_three(tmp_path_factory.mktemp("page") / "a_sweep")))


def test_one_job_is_one_job(tmp_path: Path) -> None:
    training(tmp_path / "a_run")
    assert "1 job, which ended." in page(compose(read(tmp_path / "a_run")))


def test_a_page_says_what_was_run_and_what_came_of_it(report: Report) -> None:
    text = page(report)
    for part in (
        *("python scripts/sweep.py -m model=net.onnx", "abc1234", "a machine, 2 cores", "7 jobs, of which 1 failed."),
        *("net: lowest cost by icm.beta=0.2, -14.00 %", "icm.beta must be at most 1, not 7", "job 1 (icm.beta=0.1, seed 1)"),
    ):
        assert part in text, part
    titles = [s.title for s in report.sections]
    assert titles == [
        "In short",
        "What was run",
        "Comparison",
        "Returns",
        "Cost over time",
        "Rules",
        "Best graphs",
        "Failed jobs",
        "All jobs",
    ]
    assert text.count("<svg") >= 7 and text.count("data:image/svg+xml;base64,") == 5  # two came to the same graph


def test_a_page_asks_for_nothing(report: Report) -> None:
    text = re.sub(r"data:image/svg\+xml;base64,[\w+/=]+", "", page(report))
    assert not re.search(r'(?:href|src)="(?!#|data:|")', text) and "<script" not in text and "@import" not in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_what_is_not_text_of_ours_does_no_harm(tmp_path: Path) -> None:
    told = compose(
        read(sweep(tmp_path / "s", [("seed=1", {"error": "<script>alert(1)</script> | *x*"})], command="python '<b>'")), title="a <i> b"
    )
    text = page(told)
    assert "<script>" not in text and "<b>'" not in text and "a &lt;i&gt; b" in text
    assert "\\<script\\>alert(1)\\</script\\> \\| \\*x\\*" in "".join(map(markdown, told.tables()))


@with_workspaces
def test_both_tell_the_same_numbers(report: Report) -> None:
    kept = json.loads(workspaces.to_json(workspaces.build(report.title, spec(report), "cgorl")))
    texts = [b["content"] for b in kept["spec"]["blocks"] if b["type"] == "markdown-block"]
    there, here = of_markdown(texts), of_page(page(report))
    for tables in (there, here):
        assert len(tables) == len(report.tables()) == 6
    for table, mine, theirs in zip(report.tables(), here, there, strict=True):
        rows = [list(r) for r in (table.head, *table.rows)]
        assert theirs == rows and mine == (rows if any(table.head) else rows[1:])
    numbers = [row[:4] for row in here[2]]
    assert numbers == [
        ["method", "n", "change, %", "interval"],
        ["icm.beta=0.1", "3", "-12.00", "[-13.00, -11.00]"],
        ["icm.beta=0.2", "3", "-14.00", "[-15.00, -13.00]"],
    ]
    curves = [b for b in kept["spec"]["blocks"] if b["type"] == "panel-grid"]
    assert len(curves) == 2 and '"a_sweep"' in json.dumps(curves[0])  # the runs of the sweep, by their group


@with_workspaces
def test_runs_of_no_sweep_are_found_by_their_names(tmp_path: Path) -> None:
    told = compose(read(training(tmp_path / "a_run")))
    kept = json.loads(workspaces.to_json(workspaces.build(told.title, spec(told), "cgorl")))
    [grid, *_] = [b for b in kept["spec"]["blocks"] if b["type"] == "panel-grid"]
    [chosen] = grid["metadata"]["runSets"][0]["filters"]["filters"]
    assert (chosen["key"]["name"], chosen["value"]) == ("displayName", ["a_run"])


@with_workspaces
def test_a_report_of_wandb_needs_no_network_and_reads_back(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*args: object) -> None:
        raise AssertionError(f"the network was asked for {args}")

    monkeypatch.setattr(socket.socket, "connect", called)
    monkeypatch.setattr(socket, "getaddrinfo", called)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    text = workspaces.to_json(workspaces.build(report.title, spec(report), "cgorl"))
    from wandb_workspaces.reports.v2 import Report as Theirs
    from wandb_workspaces.reports.v2.internal import ReportViewspec

    back = Theirs._from_model(ReportViewspec.model_validate_json(text))
    assert back.title == report.title and len(back.blocks) > 20


def test_rows_that_say_nothing_are_no_table() -> None:
    assert markdown(Table("", ("a", "b"), (("1|2", "*"),), (1,), (0,))) == "| a | b |\n| --- | ---: |\n| **1\\|2** | **\\*** |"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("wide", [1200, 400])
def test_a_page_fits_a_browser(report: Report, wide: int, dark: bool, tmp_path: Path) -> None:
    browser = pytest.importorskip("tests.widgets.page", reason="widgets are not installed").browser
    (tmp_path / "r.html").write_text(page(report), encoding="utf-8")
    asked: list[str] = []
    with browser() as chromium:
        tab = chromium.new_page(viewport={"width": wide, "height": 900}, color_scheme="dark" if dark else "light")
        tab.on("request", lambda r: asked.append(r.url))
        tab.on("console", lambda m: asked.append(m.text))
        tab.goto((tmp_path / "r.html").as_uri())
        for details in tab.query_selector_all("summary"):
            details.click()
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        paper, ink = (tab.evaluate(f"getComputedStyle(document.body).{k}") for k in ("backgroundColor", "color"))
        lightness = [sum(map(int, re.findall(r"\d+", c)[:3])) for c in (paper, ink)]
        assert (lightness[0] < lightness[1]) == dark
        label = "getComputedStyle(document.querySelector('figure svg text')).fill"
        assert tab.evaluate(label) == ink  # text of pictures is of the page's colour
        assert all(tab.evaluate("[...document.images].map((i) => i.complete && i.naturalWidth > 0)"))
    assert [u for u in asked if not u.startswith(("file:", "data:"))] == []
