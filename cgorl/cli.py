"""The command line: arguments -> a job on the screen -> an exit code; every error is one clear line."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgorl.tracking import Tracker

CODES = {"optimized": 0, "already optimal": 0, "refused": 3, "proof failed": 4}
ERROR, INTERRUPTED, OPTIMAL_DETAILED = 1, 130, 10
_NOTHING = "interrupted before there was a proven result; nothing was written"


def optimize(argv: list[str], doc: str) -> int:
    """Runs conf/optimize.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    runs: list[Tracker] = []
    pressed: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)
        return _optimize(argv, doc, runs)
    except KeyboardInterrupt:
        return _say(_NOTHING, INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has gone; the job stops as a pipe's writer does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _say("error: nobody reads the output any more", ERROR)
    except MemoryError:
        return _say("error: there is not enough memory for this model", ERROR)
    except ValueError as e:
        if type(e).__module__.startswith("cgorl"):
            return _say(f"error: {e}", ERROR)
        return _fault(runs)
    except Exception as e:
        if pressed and isinstance(e, ImportError):  # what an interrupt becomes inside a compiled module's start
            return _say(_NOTHING, INTERRUPTED)
        return _fault(runs)


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
    from cgorl.tracking import Tracker

    console = Console()
    graph = jobs.load(cfg)
    tracker = Tracker(options["runs"], "optimize", Path(str(options["model"])).stem)
    runs.append(tracker)
    try:
        with Screen(console) as screen:
            done = jobs.optimize(cfg, graph, screen.tell, tracker)
    except Refused as e:
        tracker.write("summary.json", {"status": "refused", "why": str(e)})
        return _say(f"refused: {e}", CODES["refused"])
    show(done, console, tracker.folder)
    sys.stdout.flush()
    if done.status.value == "already optimal" and options["exit_codes"] == "detailed":
        return OPTIMAL_DETAILED
    return CODES[done.status.value]


def _say(text: str, code: int) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return code


def _fault(runs: list[Tracker]) -> int:
    """An error that is cgorl's own: the traceback goes to the run's folder, the screen gets one line."""
    text = traceback.format_exc()
    said = f"error: a fault of cgorl's: {text.strip().splitlines()[-1]}"
    try:
        return _say(f"{said} (details in {runs[0].write('error.txt', text)})" if runs else said, ERROR)
    except ValueError:  # the folder cannot be written to
        return _say(said, ERROR)
