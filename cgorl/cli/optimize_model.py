"""optimize.py: one model, on the screen, and what came of it as an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cgorl.cli.guard import CODES, DETAILED, ERROR, guarded, heed_no_more, origin, say

if TYPE_CHECKING:
    from cgorl.tracking import Tracker


def optimize(argv: list[str], doc: str) -> int:
    """Runs conf/optimize.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return guarded(lambda runs: _optimize(argv, doc, runs))


def _optimize(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('optimize')}", flush=True)
        return 0 if argv else ERROR
    cfg = config.load_config("optimize", argv)
    options: dict[str, Any] = config.plain(cfg)
    config.check(options)
    from pathlib import Path

    from rich.console import Console

    from cgorl import jobs
    from cgorl.pipeline import Refused
    from cgorl.report.screen import Screen, show
    from cgorl.search.searcher import Budget
    from cgorl.tracking import Tracker

    console = Console()
    graph = jobs.load(cfg)
    tracker = Tracker(options["runs"], "optimize", Path(str(options["model"])).stem)
    runs.append(tracker)
    tracker.write("run.json", origin("optimize", argv))
    try:
        with Screen(console, Budget(options["seconds"], options["expansions"], options["evaluations"])) as screen:

            def tell(stage: str, progress: Any) -> None:
                if stage == "save":
                    heed_no_more()
                screen.tell(stage, progress)

            done = jobs.optimize(cfg, graph, tell, tracker)
    except Refused as e:
        tracker.write("summary.json", {"status": "refused", "why": str(e)})
        return say(f"refused: {e}", CODES["refused"])
    show(done, console, tracker.folder)
    sys.stdout.flush()
    if options["exit_codes"] == "detailed":
        return DETAILED.get(done.status.value, CODES[done.status.value])
    return CODES[done.status.value]
