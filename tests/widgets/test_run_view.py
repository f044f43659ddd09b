"""RunView: runs as they grow, what goes to a browser for them, and how it is used there."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cgorl.report.metrics.log import METRICS, RunError
from cgorl.widgets import RunView
from tests.unpacked import unpacked
from tests.widgets.page import browser, page


def grow(folder: Path, first: int, count: int, slope: float = 1.0) -> None:
    """Lines of a training."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(first)
    with (folder / METRICS).open("a") as f:
        for k in range(first, first + count):
            line = {"seconds": 0.1 * k, "global_step": 64 * k, "losses/entropy": 1 / (k + 1), "rules": {"merge": k}}
            f.write(json.dumps({**line, "charts/episodic_return": slope * k + float(rng.standard_normal())}) + "\n")


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    for beta in (1, 2):
        for seed in (1, 2):
            folder = tmp_path / f"b{beta}_s{seed}"
            grow(folder, 0, 30, beta + 0.1 * seed)
            (folder / "config.yaml").write_text(f"model: bert\nseed: {seed}\nicm: {{beta: 0.{beta}}}\n")
    return tmp_path


def test_runs_are_overlaid_by_configuration(sweep: Path) -> None:
    view = RunView(sweep, live=False)
    assert view.metrics == ["charts/episodic_return", "losses/entropy"] and view.axes == ["global_step", "seconds"]
    assert (view.metric, view.axis) == ("charts/episodic_return", "global_step")
    data = unpacked(view.picture)
    assert [row[:3] for row in data["rows"]] == [
        [0, "icm.beta=0.1 (2 seeds)", "1"],
        [0, "icm.beta=0.1 (2 seeds)", "2"],
        [1, "icm.beta=0.2 (2 seeds)", "1"],
        [1, "icm.beta=0.2 (2 seeds)", "2"],
    ]
    assert sum(line[4] for line in data["lines"]) == 2 and "with 2 seeds" in data["note"]
    view.band = False
    assert len(unpacked(view.picture)["lines"]) == 4
    view.metric = "losses/entropy"
    assert unpacked(view.picture)["y_name"] == "losses/entropy"


def test_it_reads_on_while_a_run_writes_and_finds_new_ones(tmp_path: Path) -> None:
    view = RunView(tmp_path, live=False)
    assert view.metric == "" and unpacked(view.picture)["rows"] == []
    grow(tmp_path / "a", 0, 3)
    assert view.read() and not view.read()
    assert view.metric == "charts/episodic_return" and list(view.chart().lines[0].x) == [0, 64, 128]
    grow(tmp_path / "a", 3, 2)
    grow(tmp_path / "b", 0, 1)
    assert view.read() and [row[5] for row in unpacked(view.picture)["rows"]] == [5, 1]


def test_a_live_view_is_told_of_lines_and_of_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgorl.widgets.run_view._PAUSE", 0.02)
    folder = tmp_path / "a"
    grow(folder, 0, 3)
    view = RunView(folder)
    shown: list[str] = []
    monkeypatch.setattr("cgorl.widgets.widget.display", lambda data, **_: shown.append(data.get("text/html", "")))
    monkeypatch.setattr("cgorl.widgets.widget.update_display", lambda data, **_: shown.append(data["text/html"]))
    view._ipython_display_()
    [watcher] = [t for t in threading.enumerate() if t.name == "RunView"]
    grow(folder, 3, 7)
    (folder / "summary.json").write_text('{"stopped": "all steps trained"}')
    watcher.join(30)
    assert not watcher.is_alive()
    assert [row[4:6] for row in unpacked(view.picture)["rows"]] == [["ended: all steps trained", 10]]
    assert "all steps trained" in shown[-1] and "all steps trained" not in shown[1]  # what a saved notebook shows
    assert RunView(folder)._over()


def test_closing_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgorl.widgets.run_view._PAUSE", 0.02)
    view = RunView(tmp_path)
    [watcher] = [t for t in threading.enumerate() if t.name == "RunView"]
    view.close()
    watcher.join(30)
    assert not watcher.is_alive()


def test_what_goes_to_a_browser_does_not_grow_with_the_run(tmp_path: Path) -> None:
    for k in range(8):
        grow(tmp_path / str(k), 0, 20_000 if k < 2 else 500)
    view = RunView(tmp_path, band=False, live=False)
    assert len(view.picture) < 24_000 and len(view.static()) < 60_000


def test_without_a_browser_it_shows_a_picture_and_the_runs(sweep: Path) -> None:
    text = RunView(sweep, live=False, smooth=0.5).picture_html()
    assert "data:image/svg+xml" in text and text.count("<tr>") == 5 and "running" in text
    assert len(text) < 40_000


def test_bad_input_is_told_in_a_sentence(sweep: Path) -> None:
    with pytest.raises(RunError, match="there is no folder of a run at"):
        RunView(sweep / "none")
    with pytest.raises(RunError, match="there is no metric 'loss' in these runs; there is charts/episodic_return, losses/entropy"):
        RunView(sweep, metric="loss", live=False)
    with pytest.raises(RunError, match="must be given"):
        RunView()


def test_in_a_browser_one_chooses_smooths_and_watches(sweep: Path) -> None:
    view = RunView(sweep, live=False)
    with browser() as opened:
        tab = opened.new_page(viewport={"width": 1000, "height": 700})
        said: list[str] = []
        tab.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda e: said.append(str(e)))
        tab.set_content(page(view))
        tab.wait_for_selector(".cgorl-lines[data-painted='6']")
        assert tab.locator(".cgorl-states tbody tr").count() == 4

        def sync() -> None:
            """What the kernel does when a trait changes there."""
            for trait in ("metric", "axis", "smooth", "band"):
                setattr(view, trait, tab.evaluate("(k) => window.model.get(k)", trait))
            show(tab, view)

        tab.get_by_text("seeds as one line").click()
        sync()
        tab.wait_for_selector(".cgorl-lines[data-painted='4']")
        tab.locator("select").first.select_option("losses/entropy")
        sync()
        tab.wait_for_function("document.querySelector('.cgorl-states').innerText.includes('last losses/entropy')")
        tab.locator("input[type=range]").fill("0.9")
        tab.wait_for_function("window.model.get('smooth') === 0.9")
        grow(sweep / "b1_s1", 30, 5)
        assert view.read()
        show(tab, view)
        tab.wait_for_function("document.querySelector('.cgorl-states').innerText.includes('35')")
        tab.mouse.move(500, 200)
        tab.wait_for_function("document.querySelector('.cgorl-tip').innerText.includes('icm.beta=0.1')")
        tab.evaluate("window.end()")
        assert said == []


def show(tab: Any, view: RunView) -> None:
    """Sends the picture, as the kernel would."""
    give = "(t) => window.model.set('picture', new DataView(Uint8Array.from(atob(t), (c) => c.charCodeAt(0)).buffer))"
    tab.evaluate(give, base64.b64encode(view.picture).decode())
