"""train.py and sweep.py: one agent, or many, one after another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cgorl.cli.guard import ERROR, INTERRUPTED, command, guarded, heed_no_more, origin, say

if TYPE_CHECKING:
    from cgorl.tracking import Tracker


def train(argv: list[str], doc: str) -> int:
    """Runs conf/train.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return guarded(lambda runs: _train(argv, doc, runs))


def sweep(argv: list[str], doc: str) -> int:
    """Trains once for each combination of the values in `argv`; returns the exit code. `doc` is the script's own help."""
    return guarded(lambda runs: _sweep(argv, doc, runs))


def _train(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('train')}", flush=True)
        return 0 if argv else ERROR
    from pathlib import Path

    from rich.console import Console

    cfg = config.load_config("train", argv)
    config.check(config.plain(cfg))
    from cgorl import training  # torch
    from cgorl.report import trained
    from cgorl.tracking import Tracker

    console = Console()
    tracker = Tracker(cfg.runs, "train", Path(str(cfg.model or "families")).stem)
    runs.append(tracker)
    tracker.write("run.json", origin("train", argv))
    with trained.Progress(console) as progress:
        done = training.train(cfg, progress, tracker)
    heed_no_more()
    trained.show(done, console, tracker.folder)
    return INTERRUPTED if done.stopped == "interrupted" else 0


def _sweep(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    words = [a for a in argv if a not in ("-m", "--multirun")]
    if not words or {"-h", "--help"} & set(words):
        print(f"{doc}\n{config.usage('sweep')}", flush=True)
        return 0 if words else ERROR
    from rich.console import Console

    from cgorl import sweep
    from cgorl.report import trained

    if chosen := [w.partition("=")[2] for w in words if w.startswith("experiment=")]:
        return _study(chosen[-1], [w for w in words if not w.startswith("experiment=")])
    launcher = sorted(w for w in words if w.lstrip("+").startswith(("hydra/launcher=", "hydra.launcher.")))[::-1]  # which one, then how
    jobs = sweep.jobs([w for w in words if w not in launcher])
    console = Console(width=None if sys.stdout.isatty() else 120)
    place = sweep.begin(jobs, command("sweep", argv))
    if launcher:
        console.print(f"{len(jobs)} jobs by {' '.join(launcher)}; the table comes when all have ended", highlight=False, markup=False)
        done = sweep.launched(jobs, place, launcher)
    else:
        done = sweep.run(jobs, place, lambda number, words: console.print(f"{number}/{len(jobs)}  {words}", highlight=False), runs)
    trained.show_sweep(done, console, place)
    if any(d.error == "interrupted" for d in done):
        return INTERRUPTED
    return ERROR if any(d.error for d in done) else 0


def _study(name: str, overrides: list[str]) -> int:
    from rich.console import Console

    from cgorl import studies

    console = Console(width=None if sys.stdout.isatty() else 120)
    study = studies.study(name, overrides)
    try:
        failed = study.run(lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True))
    except KeyboardInterrupt:
        return say(f"interrupted; what was done is in {study.output}", INTERRUPTED)
    console.print(f"written   {study.output}/{name}.csv, {name}.md", highlight=False, markup=False, soft_wrap=True)
    return ERROR if failed else 0
