"""Store: prices of kernels measured on one target, in a file that only grows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, NamedTuple

from cgorl.cost.model import CostError
from cgorl.cost.target import Target

try:
    import fcntl
except ImportError:  # not a POSIX system: one process at a time
    fcntl = None  # type: ignore[assignment]


class Entry(NamedTuple):
    """A price in ms, how far two pricings of it may lie apart (as a share of it), and the samples it rests on."""

    ms: float
    noise: float
    samples: int


class Store:
    """The table of one target: JSON lines, the first of which describes the target.

    An entry is one line, appended under a lock and flushed: processes that write at the same time do not mix, a killed one
    leaves at most one torn line, which readers pass over. Of two entries for one kernel the later counts. Files that are
    shipped are read, and never written.
    """

    def __init__(self, folder: str | Path, target: Target, shipped: str | Path | None = None) -> None:
        """Reads what there is for `target` in `shipped` and `folder`. Raises CostError for a table of another target."""
        self.target, self.path = target, Path(folder) / target.file_name
        self.entries: dict[str, Entry] = {}
        for path in (*([Path(shipped) / target.file_name] if shipped is not None else []), self.path):
            if path.is_file():
                self.entries.update(self._read(path))

    def get(self, key: str) -> Entry | None:
        """The price of the kernel with this key, if it has been measured."""
        return self.entries.get(key)

    def add(self, key: str, entry: Entry) -> None:
        """Keeps a price, at once also in the file. Raises CostError where that cannot be written."""
        self.entries[key] = entry
        line = json.dumps({"kernel": json.loads(key), **entry._asdict()}, separators=(",", ":"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as f, _locked(f):
                size = f.seek(0, 2)
                if size == 0:
                    f.write(self._head() + b"\n")
                elif (f.seek(size - 1), f.read(1))[1] != b"\n":  # a killed process left half a line
                    f.write(b"\n")
                f.write(line.encode() + b"\n")
        except OSError as e:
            raise CostError(f"cannot write the table '{self.path}': {e.strerror or e}") from None

    def _head(self) -> bytes:
        return json.dumps({"target": asdict(self.target)}, separators=(",", ":")).encode()

    def _read(self, path: Path) -> Mapping[str, Entry]:
        found: dict[str, Entry] = {}
        with path.open("rb") as f:
            lines = iter(f.read().split(b"\n"))
        head = next(lines, b"")
        if head and head != self._head():
            raise CostError(f"the table '{path}' is of another target: {head.decode(errors='replace')[:200]}")
        for line in lines:
            try:
                row = json.loads(line)
                key = json.dumps(row["kernel"], separators=(",", ":"))
                found[key] = Entry(float(row["ms"]), float(row["noise"]), int(row["samples"]))
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
