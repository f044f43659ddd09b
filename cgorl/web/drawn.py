"""The pictures of a job's result: graph before and after, and the trace as a film, as bytes for the page."""

from __future__ import annotations

from pathlib import Path

from cgorl.pipeline import Outcome
from cgorl.report import reel
from cgorl.report.film import Film
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import scene

BEFORE, AFTER, FILM = "before", "after", "film"
_MOST_STEPS = 1000
"""So many steps of a film are drawn one by one."""


def draw(done: Outcome, folder: Path) -> None:
    """Writes `before`, `after` and `film` into `folder/drawn`, and of step k `k-before` and `k-after`, as assets/packed.js reads them."""
    to = folder / "drawn"
    to.mkdir()
    film = Film.of(done)
    (to / BEFORE).write_bytes(packed(scene(done.original)))
    (to / AFTER).write_bytes(packed(scene(done.graph)))
    if not film.steps:
        return
    (to / FILM).write_bytes(reel.whole(film, None))
    for k in range(min(len(film.steps), _MOST_STEPS)):
        for name, data in zip((BEFORE, AFTER), reel.step(film, k, None), strict=True):
            (to / f"{k}-{name}").write_bytes(data)
