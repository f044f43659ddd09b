"""JupyterLab in a real browser: a newcomer's way through the quickstart; widgets drawn, used, saved, and read without a kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import cgorl
from tests.test_notebooks import FOLDER, quickened
from tests.widgets.lab import lab, listening, notebook, opened, run_all, shut_down, started, watch
from tests.widgets.page import browser

CELLS = (
    "import cgorl\nfrom cgorl.widgets import GraphView, RuleBrowser, TraceView\nGraphView('squeezenet1_1', image=64, height=300)",
    "result = cgorl.optimize('repvgg_a0', zoo={'image': 32}, prove=False, expansions=6)\nfilm = TraceView(result, cost='roofline')\nfilm",
    "RuleBrowser('squeezenet1_1', image=64)",
)


def test_the_widgets_live_in_jupyterlab_and_stay_as_pictures(tmp_path: Path) -> None:
    notebook(tmp_path / "look.ipynb", CELLS)
    with browser() as chromium, lab(tmp_path, dark=True) as address:
        tab = chromium.new_page(viewport={"width": 1300, "height": 1000})
        said: list[str] = []
        asked: list[str] = []
        watch(tab, said, asked)
        opened(tab, address, "look.ipynb")
        run_all(tab)
        tab.wait_for_selector(".cgorl-graph.cgorl-dark .cgorl-canvas[data-painted]", timeout=60_000)
        tab.wait_for_selector(".cgorl-trace[data-shown='0']", timeout=60_000)
        tab.locator(".cgorl-slider").fill("2")  # answered by the kernel
        tab.wait_for_selector(".cgorl-trace[data-shown='2']", timeout=30_000)
        tab.wait_for_selector(".cgorl-candidates[data-shown='0/2']", timeout=30_000)
        tab.locator(".cgorl-candidates tbody tr").nth(2).click()  # what if
        tab.wait_for_selector(".cgorl-trace[data-branch='1'][data-shown='2'][data-walks='false']", timeout=60_000)
        parted = tab.inner_text(".cgorl-branches tr[data-branch='1'] td >> nth=1")
        tab.locator(".cgorl-branches tr[data-branch='0']").click()
        tab.wait_for_selector(".cgorl-trace[data-branch='0'][data-shown='2']", timeout=30_000)
        assert parted.startswith("3: ")
        tab.wait_for_selector(".cgorl-rules .cgorl-item.now", timeout=60_000)
        tab.wait_for_selector(".cgorl-rules .cgorl-terms dt", timeout=30_000)
        tab.locator(".cgorl-rules .cgorl-main").focus()
        tab.keyboard.press("End")  # why not there
        tab.get_by_text("it is an output of the model, no node").wait_for(timeout=30_000)
        assert tab.locator("[data-cgorl]:visible").count() == 0
        tab.keyboard.press("Control+s")
        tab.wait_for_function("!document.querySelector('.jp-mod-dirty')", timeout=30_000)
        assert said == []
        assert [u for u in asked if not u.startswith((address, address.replace("http", "ws"), "blob:", "data:"))] == []
        tab.close()
        shut_down(address)
        assert (tmp_path / "look.ipynb").stat().st_size < 1_000_000
        tab = chromium.new_page(viewport={"width": 1300, "height": 1000})
        opened(tab, address, "look.ipynb")
        tab.wait_for_selector("[data-cgorl] img", timeout=30_000)
        assert tab.evaluate("document.querySelector('[data-cgorl] img').naturalWidth") > 100
        assert tab.get_by_text("Error displaying widget").first.is_hidden()
        film = tab.locator("[data-cgorl]").nth(1)
        assert "branch 1" in film.inner_text()


def outputs(file: Path, x: Any) -> list[Any]:
    """What a model of one input gives in onnxruntime."""
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: x}))


def test_a_newcomer_goes_from_the_launcher_through_the_quickstart(tmp_path: Path) -> None:
    import nbformat

    work = tmp_path / "work" / "notebooks"
    work.mkdir(parents=True)
    for path in (FOLDER / "00_start.ipynb", FOLDER / "01_quickstart.ipynb"):
        nbformat.write(quickened(path, tmp_path / "runs"), work / path.name)
    given = tmp_path / "mine.onnx"
    cgorl.save(cgorl.load("repvgg_a0", image=32, width=0.25), given)
    [opens_on] = re.findall(r"--LabApp\.default_url=\S+", (FOLDER.parent / "Makefile").read_text())
    with browser() as chromium, lab(work.parent, options=[opens_on]) as address:
        tab = chromium.new_page(viewport={"width": 1300, "height": 1400})
        said: list[str] = []
        asked: list[str] = []
        watch(tab, said, asked)
        started(tab, address)
        tab.get_by_role("link", name="01 Quickstart").click(timeout=60_000)
        tab.get_by_role("heading", name="Quickstart: drop a file").click(timeout=60_000)
        listening(tab, address, 2)
        for _ in range(5):  # down to the panel
            tab.keyboard.press("Shift+Enter")
        tab.wait_for_selector(".cgorl-panel[data-at='ready']", timeout=60_000)
        tab.set_input_files(".cgorl-panel input[type=file]", str(given))
        tab.wait_for_function("document.querySelector('.cgorl-wide input').value.endsWith('mine.onnx')", timeout=60_000)
        tab.get_by_role("button", name="optimize", exact=True).click()
        tab.wait_for_selector(".cgorl-panel[data-at='done']", timeout=120_000)
        with tab.expect_download(timeout=60_000) as loading:
            tab.get_by_role("button", name="download mine_optimized.onnx").click()
        loading.value.save_as(tmp_path / "got.onnx")
        tab.get_by_role("paragraph").filter(has_text="This waits for the panel").click()
        tab.get_by_role("menuitem", name="Run", exact=True).click()
        tab.get_by_text("Run Selected Cell and All Below", exact=True).click()
        tab.get_by_text("Equivalence(equal on 3 random inputs").wait_for(timeout=60_000)
        tab.locator("pre", has_text="/mine_optimized.onnx").first.wait_for()  # the cells speak of the file that was uploaded
        tab.wait_for_selector(".cgorl-trace[data-shown='0']", timeout=60_000)
        tab.get_by_text("Outcome(optimized: ").wait_for(timeout=120_000)
        assert said == []
        assert [u for u in asked if not u.startswith((address, address.replace("http", "ws"), "blob:", "data:"))] == []
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)
    for one, other in zip(outputs(given, x), outputs(tmp_path / "got.onnx", x), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4 * float(np.abs(one).max()))
    before, after = cgorl.load(given), cgorl.load(tmp_path / "got.onnx")
    assert after.key != before.key and len(after.nodes) < len(before.nodes)
