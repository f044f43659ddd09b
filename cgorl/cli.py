"""The command line: arguments -> a job on the screen -> an exit code; every error is one clear line."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cgorl.tracking import Tracker

CODES = {"optimized": 0, "already optimal": 0, "nothing found within the budget": 0, "refused": 3, "proof failed": 4}
DETAILED = {"already optimal": 10, "nothing found within the budget": 11}
ERROR, INTERRUPTED = 1, 130
_NOTHING = "interrupted before there was a proven result; nothing was written"


def optimize(argv: list[str], doc: str) -> int:
    """Runs conf/optimize.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _optimize(argv, doc, runs))


def rules(argv: list[str], doc: str) -> int:
    """Runs conf/rules.yaml with the words and overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _rules(argv, doc))


def _guarded(work: Callable[[list[Tracker]], int]) -> int:
    """The exit code of `work`, with every error in one line. `work` puts the run's tracker into the list it is given."""
    runs: list[Tracker] = []
    pressed: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)
        return work(runs)
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


def _heed_no_more() -> None:
    """From here on Ctrl-C is not heard: what is proven is written whole and said, so that no file appears behind a 'nothing was written'."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


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

            def tell(stage: str, progress: Any) -> None:
                if stage == "save":
                    _heed_no_more()
                screen.tell(stage, progress)

            done = jobs.optimize(cfg, graph, tell, tracker)
    except Refused as e:
        tracker.write("summary.json", {"status": "refused", "why": str(e)})
        return _say(f"refused: {e}", CODES["refused"])
    show(done, console, tracker.folder)
    sys.stdout.flush()
    if options["exit_codes"] == "detailed":
        return DETAILED.get(done.status.value, CODES[done.status.value])
    return CODES[done.status.value]


def _rules(argv: list[str], doc: str) -> int:
    from cgorl import config

    if {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('rules')}", flush=True)
        return 0
    words = [a for a in argv if "=" not in a]
    cfg = config.load_config("rules", [a for a in argv if "=" in a])
    options: dict[str, Any] = config.plain(cfg)
    config.check(options)
    command = words.pop(0) if words and words[0] in ("verify", "catalogue") else ""
    chosen = config.narrowed(config.rule_set(options["rules"]), [*words, *([options["rule"]] if options["rule"] else [])])
    from pathlib import Path

    from rich.console import Console

    from cgorl import jobs
    from cgorl.report.rules import listing, places
    from cgorl.report.rules.catalogue import catalogue

    console = Console()
    if command == "verify":
        from cgorl.rules.proof import verify_all

        proofs = verify_all(chosen, options["seed"], options["instances"])
        listing.show_proofs(proofs, console)
        return 0 if all(p.ok for p in proofs) else CODES["proof failed"]
    if command == "catalogue":
        entries = catalogue(jobs.models(cfg), chosen, jobs.cost(cfg), rounds=2)
        listing.show_catalogue(entries, console)
        if options["output"]:
            listing.write_catalogue(entries, Path(options["output"]), " ".join(["python scripts/rules.py", *argv]))
        return 0
    if options["model"]:
        graph, cost = jobs.simplified(cfg), jobs.cost(cfg)
        if options["why"]:
            listing.show_reasons(places.why_not(graph, chosen, str(options["why"])), console)
        else:
            listing.show_places(places.places(graph, chosen, cost), console, options["shown"])
    else:
        listing.show_rules(tuple(chosen), console)
    if options["output"]:
        try:
            written = listing.draw(chosen, Path(options["output"]))
        except OSError as e:
            raise config.ConfigError(f"cannot draw into the folder '{options['output']}': {e.strerror or e}") from None
        console.print(f"drawn     {len(written) - 1} pictures, {written[-1]}", highlight=False, soft_wrap=True)
    return 0


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
