"""The promise that no slower graph is handed back, put to the test: the whole tool run again and again, each result measured afresh.

Usage: bench.py promise [model=FILE_OR_NAME,...] [models=FOLDER] [count=50] [timing=12] [timeout=600] [least=0.99] [seed=0] [runs=runs]
       [dims.NAME=n] [unbound=n] [key=value ...: further keys of optimize.py]

Runs go over the models in turn until there are `count`, each with a seed of its own; then the file written and the original are
run in turn in a new process, at one thread, for `timing` seconds. A job that hands the original back counts as 1 and is not run.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from cgorl.gate import ORIGINAL
from cgorl.report.bench.peers import about
from cgorl.report.files import models, options, sizes, tool
from cgorl.report.side import Seen, side_by_side
from cgorl.tracking import Tracker

_DEFAULTS = {"model": "", "models": "", "count": "50", "timing": "12", "timeout": "600", "least": "0.99", "seed": "0", "runs": "runs"}


@dataclass(frozen=True, slots=True)
class Row:
    """One run of the tool: which graph its gate kept and what that claimed, and the ratio measured afresh with its interval."""

    model: str
    seed: int
    seconds: float
    kept: str
    claimed: float | None
    ratio: float | None
    low: float | None
    high: float | None
    error: float
    why: str


def main(arguments: Sequence[str]) -> None:
    """Prints a line a run, then how many fell below `least`; all of it goes to promise.csv in a run's folder.

    Exits with 1 where a run failed or fell below it beyond noise.
    """
    words = options(arguments, _DEFAULTS, (__doc__ or "").split("\n\n")[1])
    own = words.own
    if not own["model"] and not own["models"]:
        sys.exit((__doc__ or "").strip())
    tracker = Tracker(own["runs"], "bench", "promise")
    console = Console(width=None if sys.stdout.isatty() else 150)
    rows: list[Row] = []
    with TemporaryDirectory(prefix="cgorl-") as folder:
        try:
            chosen = list(models(own["model"], own["models"], Path(folder)))
            for k in range(int(own["count"])):
                name, path = chosen[k % len(chosen)]
                seed = int(own["seed"]) + k
                limits = float(own["timing"]), float(own["timeout"])
                rows.append(one(name, path, seed, words.dims, words.rest, limits, Path(folder), tracker))
                write(rows, tracker)
                console.print(f"{k + 1:3}  {line(rows[-1])}", highlight=False, markup=False, soft_wrap=True)
        except KeyboardInterrupt:
            console.print("interrupted; what is done counts", highlight=False)
    for text in (*verdict(rows, float(own["least"])), about(), f"run       {tracker.folder}: promise.csv"):
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    if any(r.ratio is None or r.why or (r.high is not None and r.high < float(own["least"])) for r in rows):
        sys.exit(1)


def one(
    name: str,
    path: Path,
    seed: int,
    dims: Mapping[str, int],
    rest: Sequence[str],
    limits: tuple[float, float],
    folder: Path,
    tracker: Tracker,
) -> Row:
    """One run and its measurement; `limits` are the seconds of timing and those that the tool may take."""
    here, out = sizes(path, dims), folder / f"{name}.{seed}.onnx"
    ended, told = tool(path, out, here, [*rest, f"seed={seed}"], tracker.folder / f"{seed:03}_{name}", limits[1])
    if ended.why:
        return Row(name, seed, ended.seconds, "", None, None, None, None, 0.0, ended.why)
    gate = told.get("gate") or {}
    kept, claim = gate.get("kept", ""), (gate.get("after") or {}).get("times_as_fast")
    if kept == ORIGINAL or (not gate and told.get("status") in ("already optimal", "nothing found within the budget")):
        return Row(name, seed, ended.seconds, ORIGINAL, 1.0, 1.0, 1.0, 1.0, 0.0, "")
    seen = side_by_side(path, {"written": out}, here, limits[0], seed=seed + 1)["written"]
    for extra in folder.glob(f"{name}.{seed}.onnx*"):
        extra.unlink()
    return _row(name, seed, ended.seconds, kept, claim, seen)


def _row(name: str, seed: int, seconds: float, kept: str, claim: float | None, seen: Seen) -> Row:
    middle, low, high = seen.ratio or (None, None, None)
    return Row(name, seed, seconds, kept, claim, middle, low, high, seen.error, seen.why)


def line(row: Row) -> str:
    """One run in words."""
    if row.ratio is None:
        return f"{row.model}: FAILED after {row.seconds:.0f} s: {row.why}"
    text = f"{row.model}: {row.kept} kept after {row.seconds:.0f} s, {row.ratio:.3f} times ({row.low:.3f} to {row.high:.3f}) as fast"
    text += f", claimed {row.claimed:.3f}" if row.claimed is not None else ""
    return text + (f"; WRONG: {row.why}" if row.why else "")


def verdict(rows: Sequence[Row], least: float) -> list[str]:
    """How the promise held: runs below `least`, those of them that are so beyond noise, runs that failed, and the means."""
    good = [r for r in rows if r.ratio is not None and not r.why]
    ratios = [r.ratio for r in good if r.ratio is not None]
    failed = f", {len(rows) - len(good)} failed" if len(good) < len(rows) else ""
    if not ratios:
        return [f"{len(rows)} runs{failed}"]
    below = [r for r in good if r.ratio is not None and r.ratio < least]
    sure = sum(1 for r in below if r.high is not None and r.high < least)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    kept = sum(1 for r in good if r.kept == ORIGINAL)
    found = [f"{len(rows)} runs{failed}: {len(below)} below {least:g} of the original's speed, {sure} of them beyond noise"]
    found.append(f"worst {min(ratios):.3f}, geometric mean {mean:.4f}; the original was handed back {kept} times")
    each: dict[str, list[float]] = {}
    for r in good:
        each.setdefault(r.model, []).append(r.ratio or 1.0)
    found += [f"  {model}: {min(v):.3f} to {max(v):.3f} in {len(v)} runs" for model, v in each.items()]
    return found


def write(rows: Sequence[Row], tracker: Tracker) -> None:
    """Writes promise.csv into the run's folder."""
    text = io.StringIO()
    table = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(r) for r in rows)
    tracker.write("promise.csv", text.getvalue())
