"""Pictures of the widgets in light and dark, to look at: python -m tests.widgets.screenshots FOLDER."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cgorl
from cgorl.widgets import GraphView, RuleBrowser, TraceView
from cgorl.widgets.widget import Widget
from tests.widgets.page import browser, page, serve


def graph(tab: Any, _: Widget) -> None:
    """Finds something."""
    tab.fill("input[type=search]", "concat")
    tab.press("input[type=search]", "Enter")


def cost(tab: Any, _: Widget) -> None:
    """Walks to a node."""
    tab.locator(".cgorl-main").focus()
    for _step in range(4):
        tab.keyboard.press("ArrowDown")


def film(tab: Any, widget: Widget) -> None:
    """Goes into the middle."""
    serve(tab, widget)
    tab.locator(".cgorl-slider").fill("30")
    serve(tab, widget)


def rules(tab: Any, widget: Widget) -> None:
    """Proves the rule and asks why it does not match at a node."""
    serve(tab, widget)
    tab.get_by_text("prove it on random graphs").click()
    cost(tab, widget)
    serve(tab, widget)


def widgets() -> dict[str, tuple[Widget, Callable[[Any, Widget], None]]]:
    """Widgets by name, each with what is done before the picture is taken."""
    result = cgorl.optimize("repvgg_a0", zoo={"image": 96}, prove=False)
    return {
        "graph": (GraphView("inception_v3"), graph),
        "cost": (GraphView("nasnet_a", colour="cost", folded=True), cost),
        "trace": (TraceView(result, cost="roofline"), film),
        "rules": (RuleBrowser("inception_v3", rule="conv-batchnorm"), rules),
    }


def main(folder: Path) -> None:
    """Writes the pictures; with a word for each that complained."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        for name, (widget, act) in widgets().items():
            for dark in (False, True):
                tab = chromium.new_page(viewport={"width": 1120, "height": 880 if name in ("trace", "rules") else 680})
                tab.on("pageerror", lambda e, name=name: print(name, e))
                tab.set_content(page(widget, dark))
                tab.wait_for_selector(".cgorl-canvas[data-painted], .cgorl-trace")
                act(tab, widget)
                tab.wait_for_timeout(300)
                tab.screenshot(path=str(folder / f"{name}_{'dark' if dark else 'light'}.png"))
                tab.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
