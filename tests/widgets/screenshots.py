"""Pictures of the widgets in light and dark, to look at: python -m tests.widgets.screenshots FOLDER [NAME ...]."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cgorl
from cgorl import config, training
from cgorl.tracking import Tracker
from cgorl.widgets import CompareTable, GraphView, OptimizePanel, RuleBrowser, RunView, TraceView
from cgorl.widgets.widget import Widget
from tests.widgets.page import browser, page, serve, serve_all

ROOT = Path(__file__).parents[2]


class Shot(NamedTuple):
    """A widget, what is done before the picture is taken, and how high the picture is."""

    make: Callable[[], Widget]
    act: Callable[[Any, Widget], None]
    height: int


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
    serve_all(tab, widget)
    tab.locator(".cgorl-slider").fill("30")
    serve_all(tab, widget)


def whatif(tab: Any, widget: Widget) -> None:
    """Branches at two steps, by the policy and by gain, and points at one of them."""
    serve_all(tab, widget)
    for step, row, by, steps in (("3", 2, "policy", "40"), ("6", 4, "gain", "30")):
        tab.locator(".cgorl-slider").fill(step)
        serve_all(tab, widget)
        tab.get_by_label("a branch goes on by").select_option(by)
        tab.get_by_label("rewrites at most").fill(steps)
        tab.locator(".cgorl-candidates tbody tr").nth(row).click()
        serve_all(tab, widget)
    tab.locator(".cgorl-branches tr[data-branch]").nth(1).click()
    serve_all(tab, widget)


def rules(tab: Any, widget: Widget) -> None:
    """Proves the rule and asks why it does not match at a node."""
    serve(tab, widget)
    tab.get_by_text("prove it on random graphs").click()
    cost(tab, widget)
    serve(tab, widget)
    tab.evaluate("document.querySelector('.cgorl-rule').scrollTop = 0")


def curves(tab: Any, _: Widget) -> None:
    """Points at the curves."""
    tab.wait_for_selector(".cgorl-lines[data-painted]")
    tab.mouse.move(700, 200)


def still(tab: Any, _: Widget) -> None:
    """Leaves it as it is."""


def trace() -> Widget:
    """A film of a price list."""
    return TraceView(cgorl.optimize("repvgg_a0", zoo={"image": 96}, prove=False))


def agents_trace() -> Widget:
    """What an agent did, with a policy and a curiosity module that were trained for a moment."""
    zoo = {"image": 64, "width": 0.25, "depth": [1, 2, 2, 1]}
    more = {"encoder.hidden": 32, "ppo.total_timesteps": 1024, "ppo.num_envs": 8, "tracking": "jsonl", "device": "v100"}
    folder = Path(tempfile.mkdtemp()) / "runs"
    tracker = Tracker(folder, "train", "repvgg")
    training.train(config.load_config("train", values={"model": "repvgg_a0", "zoo": zoo, **more}), tracker=tracker)
    return TraceView(tracker.folder)


def panel() -> Widget:
    """A panel whose work is done."""
    made = OptimizePanel("squeezenet1_1", runs=tempfile.mkdtemp(), seconds=8, search="backtracking", device="v100")
    made.start().wait()
    return made


def runs() -> Widget:
    """Trainings with and without curiosity."""
    folder = Path(tempfile.mkdtemp()) / "runs"
    zoo = {"image": 32, "width": 0.125, "depth": [1, 1, 1, 1]}
    for icm in ("none", "default"):
        for seed in (1, 2, 3):
            more = {"icm": icm, "seed": seed, "ppo.total_timesteps": 1024, "ppo.num_envs": 4, "tracking": "jsonl", "encoder.hidden": 16}
            training.train(
                config.load_config("train", values={"model": "repvgg_a0", "zoo": zoo, **more}), tracker=Tracker(folder, "train", "repvgg")
            )
    return RunView(folder, live=False, smooth=0.6)


def table() -> Widget:
    """Methods on models, with seeds."""
    which = ("model=squeezenet1_1,inception_v3,repvgg_a0", "search=greedy,backtracking,beam,annealing", "seed=1,2,3")
    return CompareTable(cgorl.evaluate(*which, "device=v100", "evaluations=6000", f"runs={tempfile.mkdtemp()}"))


SHOTS = {
    "graph": Shot(lambda: GraphView("inception_v3"), graph, 680),
    "cost": Shot(lambda: GraphView("nasnet_a", colour="cost", folded=True), cost, 680),
    "trace": Shot(trace, film, 880),
    "whatif": Shot(agents_trace, whatif, 1110),
    "rules": Shot(lambda: RuleBrowser("inception_v3", rule="conv-batchnorm"), rules, 880),
    "panel": Shot(panel, still, 600),
    "runs": Shot(runs, curves, 620),
    "compare": Shot(table, still, 290),
}


def main(folder: Path, names: list[str]) -> None:
    """Writes the pictures; with a word for each that complained."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as chromium:
        for name in names or SHOTS:
            shot = SHOTS[name]
            widget = shot.make()
            for dark in (False, True):
                if isinstance(widget, TraceView):
                    widget.step = 0
                    for branch in [b["number"] for b in widget.branches if b["number"] and not b["parent"]]:
                        widget.drop(branch)
                tab = chromium.new_page(viewport={"width": 1120, "height": shot.height})
                tab.on("pageerror", lambda e, name=name: print(name, e))
                tab.set_content(page(widget, dark))
                tab.wait_for_function("window.ready")
                shot.act(tab, widget)
                tab.wait_for_timeout(400)
                tab.screenshot(path=str(folder / f"{name}_{'dark' if dark else 'light'}.png"))
                tab.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
