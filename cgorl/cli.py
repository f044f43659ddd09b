"""The command line: arguments -> a job on the screen -> an exit code; every error is one clear line."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from cgorl import config

CODES = {"optimized": 0, "already optimal": 0, "refused": 3, "proof failed": 4}
ERROR, INTERRUPTED, OPTIMAL_DETAILED = 1, 130, 10


def optimize(argv: list[str], doc: str) -> int:
    """Runs conf/optimize.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('optimize')}")
        return 0 if argv else ERROR
    from cgorl.tracking import Tracker, TrackError

    tracker: Tracker | None = None
    try:
        cfg = config.load_config("optimize", argv)
        options: dict[str, Any] = config.plain(cfg)
        if options["exit_codes"] not in ("plain", "detailed"):
            raise config.ConfigError(f"exit_codes is '{options['exit_codes']}'; it may be plain or detailed")
        from pathlib import Path

        from rich.console import Console

        from cgorl import jobs
        from cgorl.pipeline import Refused
        from cgorl.report.screen import Screen, show

        console = Console()
        graph = jobs.load(options)
        tracker = Tracker(options["runs"], "optimize", Path(str(options["model"])).stem)
        try:
            with Screen(console) as screen:
                done = jobs.optimize(cfg, graph, screen.tell, tracker)
        except Refused as e:
            tracker.write("summary.json", {"status": "refused", "why": str(e)})
            return _say(f"refused: {e}", CODES["refused"])
        show(done, console, [Path(options["output"])] if options["output"] else [], tracker.folder)
        if done.status.value == "already optimal" and options["exit_codes"] == "detailed":
            return OPTIMAL_DETAILED
        return CODES[done.status.value]
    except KeyboardInterrupt:
        return _say("interrupted before there was anything to keep; nothing was written", INTERRUPTED)
    except MemoryError:
        return _say("error: there is not enough memory for this model", ERROR)
    except TrackError as e:
        return _say(f"error: {e}", ERROR)
    except ValueError as e:
        if type(e).__module__.startswith("cgorl"):
            return _say(f"error: {e}", ERROR)
        return _fault(tracker)
    except Exception:
        return _fault(tracker)


def _say(text: str, code: int) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return code


def _fault(tracker: Any) -> int:
    """An error that is cgorl's own: the traceback goes to the run's folder, the screen gets one line."""
    text = traceback.format_exc()
    last = text.strip().splitlines()[-1]
    if tracker is None:
        return _say(f"error: a fault of cgorl's: {last}", ERROR)
    return _say(f"error: a fault of cgorl's: {last} (details in {tracker.write('error.txt', text)})", ERROR)
