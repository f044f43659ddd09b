"""OptimizePanel: what it starts, stops, tells and keeps; and all of it in JupyterLab, as a person does it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cgorl
from cgorl import config
from cgorl.search.agent import GENERAL
from cgorl.widgets import OptimizePanel
from cgorl.widgets.inbox import LARGEST, PIECE, Inbox
from cgorl.widgets.optimize_panel import PanelError
from cgorl.widgets.sizes import sizes
from tests.unpacked import unpacked
from tests.widgets.lab import lab, notebook, opened, run_all, shut_down, watch
from tests.widgets.page import browser


def panel(tmp_path: Path, **choices: Any) -> OptimizePanel:
    return OptimizePanel("squeezenet1_1", runs=tmp_path, zoo_parameters={"image": 64}, **choices)


def answers(shown: OptimizePanel, *asked: Mapping[str, Any]) -> list[tuple[dict[str, Any], list[bytes]]]:
    """What the widget sends when a browser asks for something."""
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    shown.send = lambda content, buffers=None: sent.append((content, buffers or []))
    for content in asked:
        shown._handle_custom_msg(content, [])
    return sent


def test_two_panels_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = panel(tmp_path, seconds=20), panel(tmp_path, search="beam", seconds=2)
    first.start()
    second.start()
    assert first.wait(200) and second.wait(200), (first.state, second.state)
    assert first.folder != second.folder and first.state["at"] == second.state["at"] == "done"
    before = first.folder
    assert first.run() is first and first.folder == before, "what was started is waited for, not started again"
    assert first.original.key == cgorl.load("squeezenet1_1", image=64).key
    for one in (first, second):
        [file] = one.files
        assert cgorl.verify(cgorl.load("squeezenet1_1", image=64), file)
        assert one.result["proven"].startswith("equal on") and one.result["headline"].startswith("optimized")
        assert [r[0] for r in one.result["rows"]] == ["estimated cost, ms", "nodes", "weights, MB"]
    told = first.picture_html()
    assert "data:image/svg+xml" in told
    assert first._points[0][1] > first._points[-1][1] == pytest.approx(float(first.result["rows"][0][2]), rel=1e-3)
    assert first.result["headline"].partition(":")[0] in repr(first) and "proof" in told and len(told) < 40_000
    assert first.film().picture and len(first.film().film().steps) == first.result["rewrites"]

    size = first.result["files"][0][1]
    got, at = b"", 0
    while at < size:
        [(content, [part])] = answers(first, {"kind": "download", "file": 0, "at": at})
        assert content["at"] == at and 0 < len(part) <= 1 << 20
        got, at = got + part, at + len(part)
    assert got == first.files[0].read_bytes()


def test_what_is_wrong_is_a_sentence_and_never_a_traceback(tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model at all")
    shown = OptimizePanel(bad, runs=tmp_path / "runs").start()
    assert not shown.wait(100)
    assert shown.state["at"] == "failed" and "bad.onnx" in shown.state["text"] and "Traceback" not in shown.state["text"]
    assert shown.state["text"] in repr(shown)
    with pytest.raises(PanelError, match=r"bad\.onnx"):
        shown.run()
    sent = answers(
        shown,
        {"kind": "start", "form": {"model": " "}},
        {"kind": "start", "form": {"model": "bert", "sizes": "batch=x"}},
        {"kind": "start", "form": {"model": "bert", "sizes": "", "seconds": ""}},
        {"kind": "download", "file": 0, "at": 0},
        {"kind": "film"},
    )
    assert [c["text"] for c, _ in sent] == [
        "choose a model: a name of the zoo, a path, or a file to upload",
        "sizes should read like 'batch=8, seq=128', or '1' for all: 'batch=x' does not",
        "the seconds of the search must be a number of at least 0, not ''",
        "there is no result yet",
        "there is no result yet",
    ]
    with pytest.raises(PanelError, match="there is no search=bream"):
        OptimizePanel("bert", search="bream")
    with pytest.raises(PanelError, match="there is no choice 'colour'"):
        OptimizePanel("bert", colour="red")
    with pytest.raises(PanelError, match="nothing was started"):
        OptimizePanel().wait()
    with pytest.raises(PanelError, match="nothing was started"):
        _ = OptimizePanel().original


def test_measured_prices_are_kept_with_the_runs(tmp_path: Path) -> None:
    assert panel(tmp_path, cost="measured")._values()["cost.table"] == str(tmp_path / "costs")
    assert "cost.table" not in panel(tmp_path)._values()


def test_a_panel_that_works_is_not_started_again_and_can_be_dropped(tmp_path: Path) -> None:
    shown = panel(tmp_path).start()
    with pytest.raises(PanelError, match="is working: stop it first"):
        shown.start()
    shown.stop()
    assert shown.state["at"] == "stopping"
    shown.close()
    assert shown.wait(100) is False


def test_sizes_are_read_as_people_write_them() -> None:
    assert sizes("batch=8, seq=128") == ({"batch": 8, "seq": 128}, None)
    assert sizes(" x:0=2;1") == ({"x:0": 2}, 1) and sizes("") == ({}, None)
    for wrong in ("batch", "=3", "a=0", "a=-1"):
        with pytest.raises(ValueError, match="sizes should read like"):
            sizes(wrong)


def test_a_level_stretch_of_the_course_costs_two_points(tmp_path: Path) -> None:
    shown = panel(tmp_path)
    for k in range(300):
        shown._note(k / 10, 10.0 - k // 100)
    assert len(shown._points) == 6 and shown._points[-1] == pytest.approx((29.9, 8.0))
    for k in range(600):
        shown._note(30 + k, 7.0 - k / 600)
    data = unpacked(shown.picture)
    assert len(shown.picture) < 3000 and data["lines"][0][3] <= 304
    assert data["points"][0] == 0 and data["points"][data["lines"][0][3] - 1] == np.float32(629)


def test_uploads_arrive_whole_or_say_why() -> None:
    box = Inbox()
    about = {"name": "../../m.onnx", "size": 5}
    assert box.take({**about, "at": 0}, b"abc") == {"kind": "upload", "name": "m.onnx", "next": 3, "path": ""}
    assert "was lost on the way" in box.take({**about, "at": 4}, b"e")["why"]
    done = Path(box.take({**about, "at": 3}, b"de")["path"])
    assert done.read_bytes() == b"abcde" and done.name == "m.onnx" and "cgorl-upload" in done.parent.name
    assert Path(box.take({**about, "at": 0}, b"fghij")["path"]).read_bytes() == b"fghij"
    assert "given by their path" in box.take({"name": "l.onnx", "size": LARGEST + 1, "at": 0}, b"")["why"]


def test_the_agents_policy_is_a_file_or_the_one_that_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    policy = tmp_path / "mine.pt"
    shutil.copy(GENERAL, policy)
    shown = panel(tmp_path / "runs", search="agent", policy=str(policy), seconds=2).start()
    assert shown.wait(200), shown.state
    assert config.plain(config.kept(shown.folder / "config.yaml"))["search"]["checkpoint"] == str(policy)
    assert shown.film().guides == ["policy", "gain"]  # what it thought can be looked at
    start = {"kind": "start", "form": {"policy": "no/such.pt"}}
    [(why, _)] = answers(shown, start)
    assert why["text"].startswith("there is no policy 'no/such.pt'")
    assert "search.checkpoint" not in panel(tmp_path, search="agent")._values()
    assert "search.checkpoint" not in panel(tmp_path, search="beam", policy="no/such.pt")._values()
    monkeypatch.setattr("cgorl.widgets.optimize_panel.find_spec", lambda name: None)
    [(why, _)] = answers(shown, start)
    assert "needs the agent's packages" in why["text"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path, str]]:
    """A browser, and JupyterLab on a folder."""
    pytest.importorskip("jupyterlab", reason="jupyterlab is not installed (pip install -e '.[dev]')")
    folder = tmp_path_factory.mktemp("lab")
    with browser() as chromium, lab(folder) as address:
        yield chromium, folder, address


@contextmanager
def page_of(server: tuple[Any, Path, str], name: str, cells: Sequence[str]) -> Iterator[Any]:
    """A notebook of these cells, run; nothing on its page complains or asks elsewhere, and it stays small."""
    chromium, folder, address = server
    notebook(folder / name, cells)
    tab = chromium.new_page(viewport={"width": 1300, "height": 1400})
    said, asked = list[str](), list[str]()
    watch(tab, said, asked)
    opened(tab, address, name)
    run_all(tab)
    yield tab
    assert said == []
    assert [u for u in asked if not u.startswith((address, address.replace("http", "ws"), "blob:", "data:"))] == []
    tab.keyboard.press("Control+s")
    tab.wait_for_function("!document.querySelector('.jp-mod-dirty')", timeout=30_000)
    assert (folder / name).stat().st_size < 1_000_000
    tab.close()
    shut_down(address)


LINES = """() => {
    const row = [...document.querySelectorAll(".cgorl-states tbody tr")].find((r) => r.cells[2].innerText.startsWith("running"));
    return row ? Number(row.cells[3].innerText.replaceAll(",", "")) : 0;
}"""
NOTE = """() => {
    const told = document.querySelector(".cgorl-told");
    window.noted = [];
    new MutationObserver(() => window.noted.push(told.textContent)).observe(told, { childList: true, characterData: true, subtree: true });
}"""


def test_in_jupyterlab_one_uploads_optimizes_downloads_and_looks(server: tuple[Any, Path, str], tmp_path: Path) -> None:
    given = tmp_path / "mine.onnx"
    cgorl.save(cgorl.load("squeezenet1_1", image=64, classes=4000), given)
    assert given.stat().st_size > 10_000_000  # goes in pieces, each of a size that the connection takes
    cells = ("from cgorl.widgets import OptimizePanel\nOptimizePanel(seconds=5)",)
    with page_of(server, "upload.ipynb", cells) as tab:
        tab.wait_for_selector(".cgorl-panel[data-at='ready']", timeout=60_000)
        tab.get_by_role("button", name="optimize", exact=True).click()
        tab.get_by_text("choose a model: a name of the zoo").wait_for(timeout=30_000)
        tab.evaluate(NOTE)
        tab.set_input_files(".cgorl-panel input[type=file]", str(given))
        tab.wait_for_function("document.querySelector('.cgorl-wide input').value.endsWith('mine.onnx')", timeout=60_000)
        assert Path(tab.locator(".cgorl-wide input").first.input_value()).read_bytes() == given.read_bytes()
        pieces = -(-given.stat().st_size // PIECE)
        assert any(f"in {pieces} pieces (if it lies" in text for text in tab.evaluate("window.noted"))
        assert tab.get_by_label("policy of the agent").is_hidden()
        tab.get_by_label("search", exact=True).select_option("agent")
        assert tab.get_by_label("policy of the agent").is_visible()
        tab.get_by_label("search", exact=True).select_option("greedy")
        tab.get_by_role("button", name="optimize", exact=True).click()
        tab.wait_for_selector(".cgorl-panel[data-at='done']", timeout=120_000)
        with tab.expect_download(timeout=60_000) as loading:
            tab.get_by_role("button", name="download mine_optimized.onnx").click()
        loading.value.save_as(tmp_path / "got.onnx")
        assert cgorl.verify(given, tmp_path / "got.onnx")
        assert cgorl.load(tmp_path / "got.onnx").key != cgorl.load(given).key
        tab.get_by_role("button", name="in TraceView").click()
        tab.wait_for_selector(".cgorl-film .cgorl-trace[data-shown='0']", timeout=60_000)
        tab.wait_for_selector(".cgorl-film .cgorl-candidates[data-shown='0/0']", timeout=60_000)


def test_in_jupyterlab_two_panels_work_side_by_side_and_a_run_is_watched(server: tuple[Any, Path, str]) -> None:
    """One is stopped while it searches, and keeps its best; the other never hears of it."""
    (server[1] / "two").mkdir()
    made = "OptimizePanel('inception_v3', zoo_parameters={'image': 75, 'width': 0.125}, device='v100', runs='two', "
    cells = (
        f"from cgorl.widgets import OptimizePanel, RunView\n{made}search='backtracking', seconds=600)",
        f"{made}search='greedy', seconds=60)",
        "RunView('two')",
    )
    with page_of(server, "two.ipynb", cells) as tab:
        tab.wait_for_selector(".cgorl-runs", timeout=60_000)
        tab.wait_for_function("document.querySelectorAll(\".cgorl-panel[data-at='ready']\").length === 2", timeout=60_000)
        one, other = tab.locator(".cgorl-panel").nth(0), tab.locator(".cgorl-panel").nth(1)
        for panel_ in (one, other):
            panel_.get_by_role("button", name="optimize", exact=True).click()
        one.locator(".cgorl-lines[data-painted='1']").wait_for(timeout=90_000)
        tab.wait_for_function("document.querySelectorAll(\".cgorl-panel[data-at='done']\").length === 1", timeout=120_000)
        assert (one.get_attribute("data-at"), other.get_attribute("data-at")) == ("running", "done")
        assert "search stopped: no rewrite gains" in str(other.locator(".cgorl-result pre").text_content())
        tab.wait_for_function(f"({LINES})() > 0", timeout=60_000)
        lines = tab.evaluate(f"({LINES})()")
        tab.wait_for_function(f"({LINES})() > {lines}", timeout=60_000)
        one.get_by_role("button", name="stop", exact=True).click()
        tab.wait_for_function("document.querySelectorAll(\".cgorl-panel[data-at='done']\").length === 2", timeout=120_000)
        assert "search stopped: interrupted" in str(one.locator(".cgorl-result pre").text_content())
        tab.wait_for_function("!document.querySelector('.cgorl-states').innerText.includes('running')", timeout=60_000)
    costs = {}
    for summary in (server[1] / "two" / "optimize").glob("*/summary.json"):
        told = json.loads(summary.read_text())
        costs[told["search"]["stopped"]] = told["cost_ms"]
        assert told["proof"]["whole"]["ok"] and told["cost_ms"]["final"] <= told["search"]["found_ms"] * (1 + 1e-9)
    assert costs["interrupted"]["final"] <= costs["no rewrite gains"]["final"] < costs["interrupted"]["initial"]
