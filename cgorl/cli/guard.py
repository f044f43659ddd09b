"""What every command shares: its exit codes, each error in one clear line, and when Ctrl-C is heard."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cgorl.tracking import Tracker

CODES = {"optimized": 0, "already optimal": 0, "nothing found within the budget": 0, "refused": 3, "proof failed": 4}
DETAILED = {"already optimal": 10, "nothing found within the budget": 11}
ERROR, INTERRUPTED = 1, 130
NOTHING = "interrupted before there was a proven result; nothing was written"


def guarded(work: Callable[[list[Tracker]], int]) -> int:
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
        return say(NOTHING, INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has gone; the job stops as a pipe's writer does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return say("error: nobody reads the output any more", ERROR)
    except MemoryError:
        return say("error: there is not enough memory for this model", ERROR)
    except ValueError as e:
        if type(e).__module__.startswith("cgorl"):
            return say(f"error: {e}", ERROR)
        return _fault(runs)
    except Exception as e:
        if pressed and isinstance(e, ImportError):  # what an interrupt becomes inside a compiled module's start
            return say(NOTHING, INTERRUPTED)
        return _fault(runs)


def heed_no_more() -> None:
    """From here on Ctrl-C is not heard: what is there is written whole and said, so that no file appears behind a 'nothing was written'."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def command(script: str, argv: Sequence[str]) -> str:
    """How a script was called, to be called again."""
    return shlex.join(["python", f"scripts/{script}.py", *argv])


def origin(script: str, argv: Sequence[str]) -> dict[str, str]:
    """What a run's folder says of where it comes from: the command, the commit, the machine and the date."""
    from cgorl.report.provenance import provenance

    return {"command": command(script, argv), **provenance()}


def say(text: str, code: int) -> int:
    """Prints one line on standard error; returns `code`."""
    print(" ".join(text.split()), file=sys.stderr)
    return code


def _fault(runs: list[Tracker]) -> int:
    """An error that is cgorl's own: the traceback goes to the run's folder, the screen gets one line."""
    text = traceback.format_exc()
    said = f"error: a fault of cgorl's: {text.strip().splitlines()[-1]}"
    try:
        return say(f"{said} (details in {runs[0].write('error.txt', text)})" if runs else said, ERROR)
    except ValueError:  # the folder cannot be written to
        return say(said, ERROR)
