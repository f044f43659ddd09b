"""The pictures of a job's result: graph before and after, and the trace as a film, as bytes for the page."""

from __future__ import annotations

from pathlib import Path

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.pipeline import Outcome
from cgorl.report import reel
from cgorl.report.film import Film
from cgorl.report.graphs.blocks import blocks
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import scene
from cgorl.web.names import DRAWN

BEFORE, AFTER, FILM, FOLDED = "before", "after", "film", "folded"
_MOST_STEPS = 1000
"""So many steps of a film are drawn one by one."""


def draw(done: Outcome, cost: CostModel, folder: Path) -> None:
    """Writes into `folder/drawn`, as assets/packed.js reads it: `before`, `after`, `film`, and of step k `k-before` and `k-after`.

    Where a graph repeats itself there is also one with each such block as one box: `before-folded`, `after-folded`.
    """
    to = folder / DRAWN
    to.mkdir()
    for name, graph in ((BEFORE, done.original), (AFTER, done.graph)):
        _draw(graph, cost, to / name)
    film = Film.of(done)
    if not film.steps:
        return
    (to / FILM).write_bytes(reel.whole(film, None))
    for k in range(min(len(film.steps), _MOST_STEPS)):
        for name, data in zip((BEFORE, AFTER), reel.step(film, k, None), strict=True):
            (to / f"{k}-{name}").write_bytes(data)


def _draw(graph: Graph, cost: CostModel, path: Path) -> None:
    found = blocks(graph)
    path.write_bytes(packed(scene(graph, cost, found), blocks=len(found)))
    if found:
        path.with_name(f"{path.name}-{FOLDED}").write_bytes(packed(scene(graph, cost, found, range(len(found))), blocks=len(found)))
