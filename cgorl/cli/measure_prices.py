"""measure.py and calibrate.py: the table of measured prices, filled, or held against whole models."""

from __future__ import annotations

import sys

from cgorl.cli.guard import ERROR, INTERRUPTED, guarded, say


def calibrate(what: str, argv: list[str], doc: str) -> int:
    """Fills the table of measured prices (`fill`) or holds it against whole models (`calibrate`); returns the exit code."""
    return guarded(lambda runs: _calibrate(what, argv, doc))


def _calibrate(what: str, argv: list[str], doc: str) -> int:
    if not argv or {"-h", "--help"} & set(argv):
        print(doc, flush=True)
        return 0 if argv else ERROR
    from rich.console import Console

    from cgorl import calibration

    console = Console(width=None if sys.stdout.isatty() else 170)
    try:
        if what == "fill":
            calibration.fill(argv, console)
        else:
            calibration.calibrate(argv, console)
    except KeyboardInterrupt:
        return say("interrupted; what was measured is in the table", INTERRUPTED)
    return 0
