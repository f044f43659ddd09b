"""Tracker: one folder a run, with its configuration, metrics, trace and summary; never shared, never overwritten."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

METRICS = "metrics.jsonl"


class TrackError(ValueError):
    """A run folder that cannot be made or written to; the message says why."""


@contextmanager
def whole() -> Iterator[list[int]]:
    """Ctrl-C is not heard within, so that what belongs together is written whole; the list it gives has each one that came."""
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


class Tracker:
    """The folder of one run; metrics are appended as JSON lines, each flushed, so that a killed run keeps them."""

    def __init__(self, root: str | Path, kind: str, label: str) -> None:
        """Makes `root/kind/<time>_<label>`, with a number behind it if that is there. Raises TrackError."""
        stem = time.strftime("%Y-%m-%d_%H-%M-%S") + "_" + (re.sub(r"[^\w.-]+", "_", label)[:60] or "run")
        for k in range(1000):
            folder = Path(root) / kind / (stem if k == 0 else f"{stem}_{k}")
            try:
                folder.mkdir(parents=True)
                break
            except FileExistsError:
                if not folder.is_dir():
                    raise TrackError(f"cannot make the run folder '{folder}': a file is in the way") from None
            except OSError as e:
                raise TrackError(f"cannot make the run folder '{folder}': {e.strerror or e}") from None
        else:
            raise TrackError(f"too many runs called '{stem}' in '{root}'")
        self.folder = folder
        self._start = time.monotonic()

    def log(self, **metrics: Any) -> None:
        """Appends one line to metrics.jsonl, with the seconds since the run began unless they are given. Raises TrackError."""
        line = json.dumps({"seconds": round(time.monotonic() - self._start, 6), **metrics}, allow_nan=True)
        self._put(METRICS, line + "\n", "a")

    def append(self, name: str, data: Mapping[str, Any]) -> Path:
        """Appends a mapping as a line of JSON to the file `name` of the folder. Raises TrackError."""
        return self._put(name, json.dumps(data, default=str) + "\n", "a")

    def write(self, name: str, data: Mapping[str, Any] | str) -> Path:
        """Writes a mapping as JSON, or text as it is, to the file `name` of the folder. Raises TrackError."""
        return self._put(name, data if isinstance(data, str) else json.dumps(data, indent=1, default=str) + "\n", "w")

    def _put(self, name: str, text: str, mode: str) -> Path:
        path = self.folder / name
        try:
            with path.open(mode, encoding="utf-8", errors="surrogateescape") as f:
                f.write(text)
        except OSError as e:
            raise TrackError(f"cannot write '{path}': {e.strerror or e}") from None
        return path


def flat(config: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found.update(flat(value, f"{at}{key}."))
        else:
            found[f"{at}{key}"] = value
    return found
