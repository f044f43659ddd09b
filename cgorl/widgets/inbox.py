"""Inbox and outbox: files that come from a browser and go to it, in pieces that a notebook's connection takes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PIECE = 1 << 20
"""Bytes of one piece: a connection of Jupyter's breaks at 10 MB."""
LARGEST = 500_000_000
"""Bytes of the largest file that goes through a browser; larger ones are named by their path."""


class Inbox:
    """A folder for what is uploaded, gone with the kernel."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cgorl-upload-")
        self._sizes: dict[str, int] = {}

    def take(self, content: Mapping[str, Any], piece: bytes) -> dict[str, Any]:
        """Writes a piece; what to answer: the next place, and with the last piece where the file is.

        A piece that does not follow on the one before it is not taken, and the answer says why.
        """
        name, at, size = Path(str(content["name"])).name, int(content["at"]), int(content["size"])
        about = {"kind": "upload", "name": name}
        if not name or size > LARGEST:
            return {**about, "why": f"files above {LARGEST / 1e6:.0f} MB are given by their path"}
        if at not in (0, self._sizes.get(name, 0)):
            return {**about, "why": f"a piece of '{name}' was lost on the way: try again, or give the file by its path"}
        path = Path(self._folder.name) / name
        try:
            with path.open("wb" if at == 0 else "ab") as f:
                f.write(piece)
        except OSError as e:
            return {**about, "why": f"'{name}' cannot be kept here: {e.strerror or e}"}
        self._sizes[name] = at + len(piece)
        done = self._sizes[name] >= size
        return {**about, "next": self._sizes[name], "path": str(path) if done else ""}


def piece(path: Path, at: int) -> bytes:
    """The piece of a file that begins at a place."""
    with path.open("rb") as f:
        f.seek(at)
        return f.read(PIECE)
