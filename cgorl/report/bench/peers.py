"""Other optimizers of ONNX files beside cgorl, on onnxruntime: nodes, time taken, speed against the original, agreement, crashes.

Usage: bench.py peers [model=FILE_OR_NAME,...] [models=FOLDER] [peers=onnxsim,...] [timing=20] [timeout=180] [runs=runs]
       [dims.NAME=n] [unbound=n] [key=value ...: further keys of optimize.py, for cgorl]

Each optimizer runs in a process of its own; then all files of a model are run in turn in one process, at one thread, for
`timing` seconds. OpenVINO, where it is installed, runs the original as another runtime, for reference.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import onnxruntime
from rich.console import Console

from cgorl.gate import ORIGINAL
from cgorl.report.files import models, nodes, options, sizes, tool
from cgorl.report.provenance import provenance
from cgorl.report.side import OPENVINO, Ended, Seen, apart, side_by_side
from cgorl.tracking import Tracker

CGORL = "cgorl"
_DEFAULTS = {"model": "", "models": "", "peers": "", "timing": "20", "timeout": "180", "runs": "runs"}
_COLUMNS = (
    "model",
    "tool",
    "nodes",
    "optimize_s",
    "cpu_ms",
    "wall_ms",
    "times_as_fast",
    "low",
    "high",
    "runs",
    "agrees",
    "error",
    "why",
    "interface",
)


class Peer(NamedTuple):
    """Another optimizer: the package that it needs, and the code that reads the file sys.argv[1] and writes sys.argv[2]."""

    package: str
    code: str


PEERS: dict[str, Peer] = {
    "onnxsim": Peer("onnxsim", "import onnx, onnxsim; onnx.save(onnxsim.simplify(onnx.load(sys.argv[1]))[0], sys.argv[2])"),
    "onnxslim": Peer("onnxslim", "import onnxslim; onnxslim.slim(sys.argv[1], sys.argv[2])"),
    "onnxoptimizer": Peer(
        "onnxoptimizer", "import onnx, onnxoptimizer; onnx.save(onnxoptimizer.optimize(onnx.load(sys.argv[1])), sys.argv[2])"
    ),
    "onnxscript": Peer("onnxscript", "import onnx, onnxscript.optimizer as o; onnx.save(o.optimize(onnx.load(sys.argv[1])), sys.argv[2])"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One tool on one model."""

    model: str
    tool: str
    nodes: int | None
    optimize_s: float | None
    seen: Seen

    @property
    def cells(self) -> dict[str, object]:
        """The row as plain values, by column."""
        s = self.seen
        rate = s.ratio or (None, None, None)
        agrees = None if s.ratio is None else not s.why
        times = (s.cpu_ms, s.wall_ms) if s.ratio else (None, None)
        values = (self.model, self.tool, self.nodes, self.optimize_s, *times, *rate, s.runs, agrees, s.error, s.why, s.note)
        return dict(zip(_COLUMNS, values, strict=True))


def main(arguments: Sequence[str]) -> None:
    """Prints a table for each model as it is done, then all ratios; both go to a run's folder, as CSV and as Markdown."""
    words = options(arguments, _DEFAULTS, (__doc__ or "").split("\n\n")[1])
    own = words.own
    if not own["model"] and not own["models"]:
        sys.exit((__doc__ or "").strip())
    chosen = own["peers"].split(",") if own["peers"] else list(PEERS)
    if wrong := [p for p in chosen if p not in PEERS]:
        sys.exit(f"bench.py peers knows no '{wrong[0]}'; there are {', '.join(PEERS)}")
    tracker = Tracker(own["runs"], "bench", "peers")
    console = Console(width=None if sys.stdout.isatty() else 150)
    rows: list[Row] = []
    with TemporaryDirectory(prefix="cgorl-") as folder:
        for name, path in models(own["model"], own["models"], Path(folder)):
            rows += one(name, path, chosen, words.dims, words.rest, (float(own["timing"]), float(own["timeout"])), Path(folder), tracker)
            write(rows, tracker)
            for line in lines([r for r in rows if r.model == name]):
                console.print(line, highlight=False, markup=False, soft_wrap=True)
    for line in (*matrix(rows), "", *behind(rows), about()):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"run       {tracker.folder}: peers.csv, peers.md", highlight=False, markup=False, soft_wrap=True)


def one(
    name: str,
    path: Path,
    peers: Sequence[str],
    dims: Mapping[str, int],
    rest: Sequence[str],
    limits: tuple[float, float],
    folder: Path,
    tracker: Tracker,
) -> list[Row]:
    """The rows of one model; `limits` are the seconds of timing, and those that an optimizer may take (cgorl: ten times as many)."""
    here = sizes(path, dims)
    ended: dict[str, Ended] = {}
    made: dict[str, Path] = {}
    for peer in peers:
        out = folder / f"{name}.{peer}.onnx"
        if importlib.util.find_spec(PEERS[peer].package) is None:
            ended[peer] = Ended("", 0.0, "not installed (pip install -c constraints.txt -e '.[bench]')")
        else:
            ended[peer] = apart([sys.executable, "-c", "import sys; " + PEERS[peer].code, str(path), str(out)], limits[1])
        if not ended[peer].why:
            made[peer] = out
    out = folder / f"{name}.cgorl.onnx"
    ended[CGORL], _ = tool(path, out, here, rest, tracker.folder / name, 10 * limits[1])
    if not ended[CGORL].why:
        made[CGORL] = out
    installed = importlib.util.find_spec("openvino") is not None
    seen = side_by_side(path, made, here, limits[0], installed)
    rows = [Row(name, ORIGINAL, nodes(path), None, seen[ORIGINAL])]
    for key, end in ended.items():
        if key in made:
            rows.append(Row(name, key, nodes(made[key]), end.seconds, seen[key]))
        else:
            rows.append(Row(name, key, None, end.seconds or None, Seen(why=end.why)))
    rows.append(Row(name, OPENVINO, None, None, seen.get(OPENVINO, Seen(why="not installed"))))
    for extra in folder.glob(f"{name}.*.onnx*"):
        extra.unlink()
    return rows


def lines(rows: Sequence[Row]) -> list[str]:
    """The rows of one model as a Markdown table under its name."""
    found = [f"### {rows[0].model}", "", "| tool | nodes | s to optimize | ms of CPU | times as fast as the original | outputs |"]
    found.append("|---|---:|---:|---:|---|---|")
    for r in rows:
        s = r.seen
        ms = f"{s.cpu_ms:.3f}" if s.ratio else ""
        agrees = s.why if s.why else "" if r.tool == ORIGINAL else f"agree ({s.error:.0e})" + (f"; {s.note}"[:90] if s.note else "")
        took = "" if r.optimize_s is None else f"{r.optimize_s:.1f}"
        count = "" if r.nodes is None else str(r.nodes)
        found.append(f"| {r.tool} | {count} | {took} | {ms} | {_rate(s) if r.tool != ORIGINAL else ''} | {agrees.replace('|', '/')} |")
    return [*found, ""]


def _rate(s: Seen) -> str:
    return "" if s.ratio is None else f"{s.ratio[0]:.3f} ({s.ratio[1]:.3f} to {s.ratio[2]:.3f})"


def matrix(rows: Sequence[Row]) -> list[str]:
    """All ratios as a Markdown table, a row a model; the last holds geometric means, a tool that failed counting as 1."""
    tools = [t for t in dict.fromkeys(r.tool for r in rows) if t != ORIGINAL]
    found = ["| model | ms | " + " | ".join(tools) + " |", "|---|---:|" + "---:|" * len(tools)]
    logs: dict[str, list[float]] = {t: [] for t in tools}
    for model in dict.fromkeys(r.model for r in rows):
        mine = {r.tool: r.seen for r in rows if r.model == model}
        cells = []
        for t in tools:
            s = mine[t]
            good = s.ratio is not None and not s.why
            cells.append(f"{s.ratio[0]:.3f}" if s.ratio is not None and good else "differs" if s.ratio is not None else _brief(s.why))
            logs[t].append(math.log(s.ratio[0]) if s.ratio is not None and good else 0.0)
        found.append(f"| {model} | {mine[ORIGINAL].cpu_ms:.2f} | " + " | ".join(cells) + " |")
    means = [f"{math.exp(sum(logs[t]) / len(logs[t])):.3f}" if logs[t] else "" for t in tools]
    return [*found, "| geometric mean | | " + " | ".join(means) + " |"]


def _brief(why: str) -> str:
    return "not installed" if why.startswith("not installed") else "crash" if "crash" in why or "exit code" in why else "fails"


def behind(rows: Sequence[Row]) -> list[str]:
    """Where cgorl is slower than the best peer that gives the right outputs, beyond noise."""
    found = []
    for model in dict.fromkeys(r.model for r in rows):
        mine = {r.tool: r.seen for r in rows if r.model == model}
        right = {t for t, s in mine.items() if t in PEERS and s.ratio is not None and not s.why}
        over = {t: r for t, r in (mine[CGORL].over or {}).items() if t in right}
        worst = min(over.items(), key=lambda kv: kv[1][0], default=None)
        if worst is not None and worst[1][2] < 1.0:
            t, (middle, low, high) = worst
            found.append(f"behind {t} on {model}: {middle:.3f} times ({low:.3f} to {high:.3f}) as fast")
    return found or ["on no model behind the best peer beyond noise (99 % intervals of the two run in turn)"]


def about() -> str:
    """Where this was measured, and when."""
    said = provenance()
    how = f"onnxruntime {onnxruntime.__version__} at ORT_ENABLE_ALL, 1 thread, CPU time"
    return f"{said['machine']}, {how}, {said['date']}, cgorl {said['commit']}"


def write(rows: Sequence[Row], tracker: Tracker) -> None:
    """Writes peers.csv and peers.md into the run's folder, so that an interrupt keeps the models that are done."""
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(r.cells for r in rows)
    tracker.write("peers.csv", text.getvalue())
    each = [line for m in dict.fromkeys(r.model for r in rows) for line in lines([r for r in rows if r.model == m])]
    tracker.write("peers.md", "\n".join([*matrix(rows), "", *behind(rows), "", about(), "", *each]) + "\n")
