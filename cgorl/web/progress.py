"""What a job's process has said so far, as it is kept for those who watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

_POINTS = 300
READING = ("start", "load")
"""Stages in which nothing is known of a model."""


class Heard:
    """Takes the messages of a process, in its thread; `progress` is asked for in another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stage: dict[str, Any] = {"stage": "start", "text": "", "share": None}
        self._points: list[tuple[float, float]] = []
        self._counts: dict[str, int] = {}
        self._heard = time.monotonic()

    @property
    def silent(self) -> float:
        """Seconds since the last message."""
        return time.monotonic() - self._heard

    @property
    def stage(self) -> str:
        """The stage it is in."""
        return str(self._stage["stage"])

    def take(self, message: Mapping[str, Any]) -> None:
        """Takes one message."""
        self._heard = time.monotonic()
        if message.get("kind") != "stage":
            return
        with self._lock:
            self._stage = {k: message.get(k) for k in ("stage", "text", "share")}
            self._counts = message.get("counts", self._counts)
            if "point" in message:
                self._note(*message["point"])

    def progress(self) -> dict[str, Any]:
        """Stage, its text, the share done (None: not known), counts, and points of the curve: seconds and the best cost in ms."""
        with self._lock:
            return {**self._stage, **self._counts, "points": list(self._points)}

    @property
    def points(self) -> list[tuple[float, float]]:
        """The curve so far, of a few hundred points at most."""
        with self._lock:
            return list(self._points)

    def _note(self, seconds: float, best_ms: float) -> None:
        points = self._points
        points.append((round(seconds, 3), best_ms))
        if len(points) > 2 and points[-3][1] == points[-2][1] == best_ms:
            del points[-2]  # a level stretch needs its ends alone
        if len(points) > _POINTS:
            del points[1:-1:2]
