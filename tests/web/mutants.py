"""Models with something wrong in them, drawn by chance: `python -m tests.web.mutants SECONDS [SEED]` looks for what harms.

Each is uploaded to a cell, looked at and optimized. What ends in a fault, a signal, too much time or memory is printed and kept.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.web.hostile import STRANGE, WRONG
from tests.web.models import small
from tests.web.serving import ROOT

_MEMORY = 600 << 20
_EXTREMES = [
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff" * 9 + b"\x01",
    b"\x80\x80\x80\x80\x08",
    b"\x00",
    b"\x7f",
    b"\xff\xff\xff\xff\x0f",
]
_OPERATORS = [b"Conv", b"Relu", b"Loop", b"Pad", b"Tile", b"If", b"Add", b"Gemm", b"Split", b"Resize", b"Reshape", b"Einsum", b"TopK"]


def mutant(draw: random.Random, seeds: list[bytes]) -> bytes:
    """A model with up to four things done to it."""
    found = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(found) + 1)
        to = min(len(found), at + draw.choice([1, 1, 2, 4, 16, 64]))
        kind = draw.randrange(7)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del found[at:to]
        elif kind == 2:
            found[at:at] = found[at:to] * draw.choice([1, 2, 50])
        elif kind == 3:
            found[at:to] = draw.choice(_EXTREMES)
        elif kind == 4:
            other = draw.choice(seeds)
            start = draw.randrange(len(other))
            found[at:to] = other[start : start + draw.choice([8, 64, 512])]
        elif kind == 5:
            found = bytearray(found.replace(draw.choice(_OPERATORS), draw.choice(_OPERATORS)))
        else:
            found[at:to] = bytes(draw.randrange(256) for _ in range(to - at))
    return bytes(found)


def seeds() -> list[bytes]:
    """What mutants come from."""
    corpus = [make()["model.onnx"] for make in (*STRANGE.values(), *WRONG.values())]
    return [small(), small(), small(), *(m for m in corpus if 0 < len(m) < 20_000)]


def harm(root: Path, count: int, seed: int, kind: str) -> Iterator[dict[str, Any]]:
    """What of so many mutants did harm."""
    draw, from_ = random.Random(seed), seeds()
    for k in range(count):
        (root / f"{k:04}").mkdir(parents=True)
        (root / f"{k:04}" / "model.onnx").write_bytes(mutant(draw, from_))
    command = [sys.executable, "-m", "tests.web.cells", str(root), kind]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == count, done.stderr
    for each in found:
        said = each["said"]
        tame = said.get("kind") == "end" or (said.get("kind") == "error" and (said["refused"] or "enough memory" in said["text"]))
        if not tame or each["signal"] or each["memory"] > _MEMORY:
            yield each


def main() -> None:
    """Looks for harm until the time is over."""
    end, seed = time.monotonic() + float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    kept, tried = Path(tempfile.mkdtemp(prefix="cgorl-mutants-")), 0
    while time.monotonic() < end:
        root = kept / str(seed)
        for each in harm(root, 50, seed, "optimize"):
            print(
                root / each["name"],
                each["signal"],
                each["seconds"],
                each["memory"] >> 20,
                each["said"].get("text", each["stderr"]),
                flush=True,
            )
        tried, seed = tried + 50, seed + 1
    print(f"{tried} tried")


if __name__ == "__main__":
    main()
