"""The widgets in JupyterLab, in a real browser: drawn, used, saved, and read again without a kernel."""

from __future__ import annotations

from pathlib import Path

from tests.widgets.lab import lab, notebook, opened, run_all, shut_down, watch
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
