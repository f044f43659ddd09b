"""evaluate.py: many jobs in one table, and the experiments that are named."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cgorl.cli.guard import CODES, ERROR, INTERRUPTED, guarded, heed_no_more, origin, say

if TYPE_CHECKING:
    from cgorl.tracking import Tracker


def evaluate(argv: list[str], doc: str) -> int:
    """Runs the jobs of conf/evaluate.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return guarded(lambda runs: _evaluate(argv, doc, runs))


def _evaluate(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('evaluate')}", flush=True)
        return 0 if argv else ERROR
    from pathlib import Path

    from rich.console import Console

    from cgorl.evaluation.plan import plan

    console = Console(width=None if sys.stdout.isatty() else 120)
    if chosen := [text.partition("=")[2] for text in argv if text.startswith("experiment=")]:
        return _experiment(chosen[-1], [text for text in argv if not text.startswith("experiment=")], console)
    todo = plan(argv)
    from cgorl.evaluation.run import evaluate, save  # from here on pandas and matplotlib: what was said is right
    from cgorl.report import tables
    from cgorl.tracking import Tracker

    tracker = Tracker(todo.jobs[0].cfg.runs, "evaluate", "_".join(dict.fromkeys(Path(str(j.keys["model"])).stem for j in todo.jobs)))
    runs.append(tracker)
    tracker.write("run.json", origin("evaluate", argv))
    tracker.write("config.yaml", "".join(f"--- # job {j.number}: {j.words}\n{config.yaml(j.cfg)}" for j in todo.jobs))
    with tables.Board(console, len(todo.jobs)) as board:
        done = evaluate(todo, _listening(board), tracker)
    heed_no_more()
    written = save(done, tracker.folder)
    tables.show_comparison(done.results, done.curves, console, todo.once)
    console.print(f"run       {tracker.folder}: {', '.join(p.name for p in written)}", highlight=False, markup=False, soft_wrap=True)
    if done.interrupted:
        console.print(f"interrupted: {len(done.results)} of {len(todo.jobs)} jobs are in the table", highlight=False)
        return INTERRUPTED
    statuses = set(done.results["status"])
    return ERROR if "failed" in statuses else CODES["proof failed"] if "proof failed" in statuses else 0


def _experiment(name: str, overrides: list[str], console: Any) -> int:
    from cgorl import config

    config.experiment(name, overrides)
    if name in ("thesis_main", "optimum"):
        return _thesis(name, overrides, console)
    if name in ("curiosity", "transfer"):
        raise config.ConfigError(f"experiment={name} trains: scripts/sweep.py runs it")
    from cgorl.evaluation.landscape import explore, landscape
    from cgorl.report import tables

    what = landscape(overrides)
    with tables.Board(console, sum(len(p.jobs) for p in what.problems)) as board:
        try:
            table = explore(what, _listening(board), board.say)
        except KeyboardInterrupt:
            return say(f"interrupted; problems that were done are in {what.keys['output']}", INTERRUPTED)
    tables.show_landscape(table, console)
    console.print(f"written   {what.keys['output']}/{name}.csv, {name}.md", highlight=False, markup=False, soft_wrap=True)
    return ERROR if table["error"].notna().any() else 0


def _thesis(name: str, overrides: list[str], console: Any) -> int:
    from cgorl.evaluation.thesis import explore, thesis
    from cgorl.report import tables

    what = thesis(name, overrides)
    with tables.Board(console, len(what.runs)) as board:
        try:
            table = explore(what, _listening(board), board.say)
        except KeyboardInterrupt:
            return say(f"interrupted; what was done is in {what.keys['output']}", INTERRUPTED)
    console.print(f"written   {what.keys['output']}/{name}.csv, {name}.md", highlight=False, markup=False, soft_wrap=True)
    return ERROR if table["error"].notna().any() else 0


def _listening(board: Any) -> Any:
    from cgorl.evaluation.run import Listening
    from cgorl.search.searcher import Budget

    def begin(job: Any) -> None:
        board.begin(job.number, job.words, Budget(job.cfg.seconds, job.cfg.expansions, job.cfg.evaluations))

    return Listening(begin, board.progress, lambda done: board.end(done.row))
