"""Packed: a scene as bytes for a browser, arrays as they lie in memory and each text once."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgorl.report.graphs.colours import FAMILIES, MARKS, family
from cgorl.report.graphs.scene import Scene

_ALIGN = 8


def pack(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """JSON data and arrays in one piece, compressed; assets/packed.js reads it.

    Four bytes of length, the JSON text (with `arrays`: name, dtype and place of each), then the arrays, each at a multiple of 8.
    """
    places, at, parts = [], 0, []
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        places.append({"name": name, "dtype": array.dtype.name, "at": at, "length": int(array.size)})
        raw += bytes(-len(raw) % _ALIGN)
        parts.append(raw)
        at += len(raw)
    head = json.dumps({**data, "arrays": places}, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-(len(head) + 4) % _ALIGN)
    return zlib.compress(len(head).to_bytes(4, "little") + head + b"".join(parts), 6)


def packed(scene: Scene, marks: Mapping[int, int] | None = None, **more: Any) -> bytes:
    """The scene in one piece; `marks` are marks (see `colours`) by node id, `more` is JSON data beside it."""
    boxes = scene.boxes
    texts, data, arrays = _Texts(), dict(more), dict[str, NDArray[Any]]()
    for name in ("op", "label", "name", "about"):
        arrays[name] = np.array([texts.number(getattr(b, name)) for b in boxes], np.uint32)
    families = {op: FAMILIES.index(family(op)) for op in {b.op for b in boxes}}
    marked = marks or {}
    arrays["family"] = np.array([families[b.op] for b in boxes], np.uint8)
    arrays["mark"] = np.array([max((marked.get(i, 0) for i in b.nodes), default=0) for b in boxes], np.uint8)
    arrays["cost"] = np.array([b.cost_ms for b in boxes], np.float32)
    arrays["width"] = np.array([b.width for b in boxes], np.float32)
    arrays["block"] = np.array([b.block for b in boxes], np.int32)
    arrays |= {"x": scene.layout.x, "y": scene.layout.y, "links": scene.layout.links}
    data |= {"texts": texts.all, "families": FAMILIES, "marks": list(MARKS.values()), "total": scene.total_ms}
    return pack(data, arrays)


class _Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.setdefault(text, len(self.all))
        if found == len(self.all):
            self.all.append(text)
        return found
