"""Store: prices of kernels measured on one target, in a file that only grows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from cgorl.cost.model import CostError
from cgorl.cost.target import Target

try:
    import fcntl
except ImportError:  # not a POSIX system: one process at a time
    fcntl = None  # type: ignore[assignment]

PACE = 1.06
"""How much slower than the table's the machine's pace may be: what is measured meanwhile is no price of the table."""

_ENOUGH = 8
"""As many entries tell the pace of a table."""


class Entry(NamedTuple):
    """A price in ms, how far two pricings of it may lie apart (as a share of it), and the samples it rests on.

    `pace_ms` is what the anchor took meanwhile (0: not known): the table's prices are of one pace.
    """

    ms: float
    noise: float
    samples: int
    pace_ms: float = 0.0


class Store:
    """The table of one target: JSON lines, the first of which describes the target.

    An entry is one line, appended under a lock and flushed: processes that write at the same time do not mix, a killed one
    leaves at most one torn line, which readers pass over. Of two entries for one kernel the later counts. Entries from a
    slow phase of the machine, by the pace of the others, are passed over like torn ones.

    Tables that are shipped are read and never written. One of the same target holds as long as this machine is found to run
    at its pace; else, and for other targets, it serves estimates.
    """

    def __init__(self, folder: str | Path, target: Target, shipped: str | Path | None = None) -> None:
        """Reads what there is for `target` in `shipped` and `folder`. Raises CostError for a table of another target."""
        self.target, self.path = target, Path(folder) / target.file_name
        self._shipped = Path(shipped) if shipped is not None else None
        self._read_to = 0
        self._pace: float | None = None
        self._own: dict[str, Entry] = {}
        self._given: dict[str, Entry] = {}
        if self._shipped is not None and (path := self._shipped / target.file_name).is_file():
            self._given.update(_entries(_lines(path, 0, _head(target))[0]))
        self.refresh()

    @property
    def pace_ms(self) -> float:
        """What the anchor took when the table's prices were measured: a quarter of them are below; 0 while there are too few."""
        if self._pace is None:
            self._pace = _pace(self._own)
        return self._pace

    def __len__(self) -> int:
        """How many entries were read or added, those that do not hold among them."""
        return len(self._own) + len(self._given)

    @property
    def entries(self) -> dict[str, Entry]:
        """The prices that hold, by key."""
        return {key: e for key in (*self._given, *self._own) if (e := self.get(key)) is not None}

    @property
    def foreign(self) -> dict[str, Entry]:
        """The prices of other targets, or of another pace, that were shipped: no prices here, but what an estimate may go by."""
        return self._elsewhere if self._fits() else self._elsewhere | self._given

    @cached_property
    def _elsewhere(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        paths = sorted(self._shipped.glob("*.jsonl")) if self._shipped is not None else []
        for path in paths:
            if path.name != self.path.name:
                found.update(_entries(_lines(path, 0, None)[0]))
        return found

    @cached_property
    def _given_pace(self) -> float:
        return _pace(self._given)

    def _fits(self) -> bool:
        """Whether the shipped table is of this machine's pace, as far as that is known."""
        ours, theirs = self.pace_ms, self._given_pace
        return ours == 0 or theirs == 0 or 1 / PACE <= ours / theirs <= PACE

    def get(self, key: str) -> Entry | None:
        """The price of the kernel with this key, if it has been measured."""
        found = self._own.get(key)
        if found is not None and (found.pace_ms == 0 or self.pace_ms == 0 or found.pace_ms <= PACE * self.pace_ms):
            return found
        return self._given.get(key) if self._fits() else None

    def refresh(self) -> None:
        """Reads what other processes have added. Raises CostError for a table of another target."""
        if self.path.is_file() and self.path.stat().st_size > self._read_to:
            lines, self._read_to = _lines(self.path, self._read_to, _head(self.target))
            self._own.update(_entries(lines))
            self._pace = None

    def add(self, key: str, entry: Entry) -> None:
        """Keeps a price, at once also in the file. Raises CostError where that cannot be written."""
        self._own[key], self._pace = entry, None
        head, line = _head(self.target), json.dumps({"kernel": json.loads(key), **entry._asdict()}, separators=(",", ":"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as f, _locked(f):
                size = f.seek(0, 2)
                if size <= len(head):  # nothing, or what a killed process left of the first line
                    f.truncate(0)
                    f.write(head + b"\n")
                elif (f.seek(size - 1), f.read(1))[1] != b"\n":  # a killed process left half a line
                    f.write(b"\n")
                f.write(line.encode() + b"\n")
        except OSError as e:
            raise CostError(f"cannot write the table '{self.path}': {e.strerror or e}") from None


def _pace(entries: Mapping[str, Entry]) -> float:
    paces = [e.pace_ms for e in entries.values() if e.pace_ms > 0]
    return float(np.quantile(paces, 0.25)) if len(paces) >= _ENOUGH else 0.0


def _head(target: Target) -> bytes:
    return json.dumps({"target": asdict(target)}, separators=(",", ":")).encode()


def _lines(path: Path, start: int, head: bytes | None) -> tuple[list[bytes], int]:
    """Whole lines behind byte `start` of a table, its first line left out, and where they end; `head` is what that must be."""
    with path.open("rb") as f:
        f.seek(start)
        text = f.read()
    end = text.rfind(b"\n") + 1
    lines = text[:end].split(b"\n")[:-1]
    if start == 0 and lines:
        first = lines.pop(0)
        if head is not None and first != head:
            raise CostError(f"the table '{path}' is of another target: {first.decode(errors='replace')[:200]}")
    return lines, start + end


def _entries(lines: list[bytes]) -> Mapping[str, Entry]:
    found: dict[str, Entry] = {}
    for line in lines:
        try:
            row = json.loads(line)
            key = json.dumps(row["kernel"], separators=(",", ":"))
            found[key] = Entry(float(row["ms"]), float(row["noise"]), int(row["samples"]), float(row.get("pace_ms", 0.0)))
        except (ValueError, KeyError, TypeError):
            continue
    return found


@contextmanager
def _locked(f: IO[bytes]) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    fcntl.flock(f, fcntl.LOCK_EX)
    try:
        yield
        f.flush()
    finally:
        fcntl.flock(f, fcntl.LOCK_UN)
