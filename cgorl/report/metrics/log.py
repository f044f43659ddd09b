"""Log: the metrics of one run, read on from where the last reading ended; a run that was killed is read as far as it came."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

METRICS = "metrics.jsonl"
_SILENT = 60.0
_GAPS = 10


class RunError(ValueError):
    """A folder without a run; the message says which."""


class Log:
    """The columns of a run's metrics.jsonl, with nan where a line lacks one. `read` takes in what has been written since.

    A last line that is not yet whole waits for the next reading; one in the middle that cannot be read is counted in `unread`.
    """

    def __init__(self, folder: Path) -> None:
        """Reads nothing yet."""
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self.lines = self.unread = 0
        self._columns: dict[str, list[float]] = {}
        self._at = 0
        self._rest = b""

    def read(self) -> bool:
        """Takes in what is new; whether there was anything."""
        path = self.folder / METRICS
        try:
            with path.open("rb") as f:
                if f.seek(0, 2) < self._at:  # written anew
                    self._begin()
                f.seek(self._at)
                new = f.read()
        except OSError:
            return False
        self._at += len(new)
        *whole, self._rest = (self._rest + new).split(b"\n")
        for line in filter(None, whole):
            self._take(line)
        return bool(whole)

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, Mapping):
            self.unread += 1
            return
        for key, value in found.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._columns.setdefault(key, [math.nan] * self.lines).append(float(value))
        self.lines += 1
        for column in self._columns.values():
            if len(column) < self.lines:
                column.append(math.nan)

    @property
    def names(self) -> list[str]:
        """The columns that there are so far."""
        return list(self._columns)

    def column(self, name: str) -> NDArray[np.float64]:
        """The values of a column, nan where a line has none."""
        return np.array(self._columns.get(name, [math.nan] * self.lines))

    @property
    def over(self) -> bool:
        """Whether the run has said that it is over."""
        return any((self.folder / name).is_file() for name in ("summary.json", "error.txt"))

    def state(self) -> str:
        """How the run is, in a few words: a run that was killed says nothing, and is known by its silence."""
        if (self.folder / "error.txt").is_file():
            return "failed (see error.txt)"
        if (self.folder / "summary.json").is_file():
            return _ended(self.folder / "summary.json")
        try:
            silent = time.time() - (self.folder / METRICS).stat().st_mtime
        except OSError:
            return "no metrics yet"
        clock = self.column("seconds")
        usual = float(np.nanmedian(np.diff(clock))) if len(clock) > 2 else 0.0
        return "running" if silent < max(_SILENT, _GAPS * usual) else f"silent for {_ago(silent)}: killed, or stuck"


def _ended(path: Path) -> str:
    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError):
        return "ended"
    why = told.get("stopped") or told.get("status") if isinstance(told, Mapping) else None
    return f"ended: {why}" if why else "ended"


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def folders(path: Path) -> Iterator[Path]:
    """The runs at a path: itself, or those below it, the oldest first. Raises RunError where there is no such folder."""
    if not path.is_dir():
        raise RunError(f"there is no folder of a run at '{path}'")
    if any((path / name).is_file() for name in (METRICS, "config.yaml", "error.txt")):
        yield path
        return
    yield from sorted((f.parent for f in path.rglob(METRICS)), key=lambda p: (p.name, str(p)))
