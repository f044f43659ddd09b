"""Whole models: what measured prices foretell of them, against the models run; and which kernels the rule gets wrong."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from rich.console import Console
from rich.table import Table

from cgorl import gate
from cgorl.calibration.filling import Chosen
from cgorl.certificate.inputs import feeds
from cgorl.cost.anchor import interruptions, steady
from cgorl.cost.kernels import written
from cgorl.cost.store import PACE
from cgorl.ir.graph import Graph
from cgorl.ir.run import RunError
from cgorl.ir.tensor import Array
from cgorl.ir.to_proto import complete

_STROLL = np.zeros(12 << 20, np.float32)
"""48 MB that are written between two runs, so that a model finds nothing in the caches, as after other work."""


@dataclass(frozen=True, slots=True)
class Row:
    """One model: nodes that the runtime runs, how many of them the rule foretells, and the time in ms foretold and measured.

    `measured_ms` is that of a run right after another, which finds in the caches what fits into them; `cold_ms` that of one
    that finds all in memory. `pace` is the machine's time for the anchor over that of the table, `interruptions` how often
    other processes came between.
    """

    name: str
    nodes: int
    same: int
    foretold: int
    predicted_ms: float
    measured_ms: float
    cold_ms: float
    estimated: int
    pace: float
    interruptions: float
    by_label: Mapping[str, tuple[float, float]]

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_ms / self.measured_ms - 1

    @property
    def error_cold(self) -> float:
        """The same of a run that finds all in memory."""
        return self.predicted_ms / self.cold_ms - 1


def run(model: Chosen, seconds: float) -> Row:
    """The row of a model; missing prices are measured first. Raises RunError for a model that does not run."""
    graph, prices = model.graph, model.prices
    given = feeds(graph, model.sizes, np.random.default_rng(0))
    predicted = prices.cost_ms(graph)
    ours = prices.kernels(graph)
    theirs = written.kernels_of(written.write(complete(graph)), given)
    same = sum((Counter(k.key for k in ours) & Counter(k.key for k in theirs)).values())
    runners, failed = gate.runners({gate.ORIGINAL: graph}, given, prices.level)
    if failed:
        raise RunError(f"{model.name} does not run: {failed[gate.ORIGINAL]}")
    once = runners[gate.ORIGINAL]

    def told() -> tuple[float, int]:
        count = interruptions()
        ms = once()[0]
        return ms, interruptions() - count

    def both() -> tuple[tuple[float, int], tuple[float, int]]:
        once()
        again = told()
        _STROLL[:] = again[0]
        return again, told()

    went = steady(both, seconds, prices.store.pace_ms)
    measured, cold = (float(np.quantile(t, 0.25)) for t in went.times)  # as the prices are
    mine: dict[str, float] = {}
    for k in ours:
        mine[k.op] = mine.get(k.op, 0.0) + prices.kernel_ms(k)
    profiled = _profile(graph, given)
    labels = {label: (mine.get(label, 0.0), profiled.get(label, 0.0)) for label in {*mine, *profiled}}
    pace = went.pace_ms / (prices.store.pace_ms or went.pace_ms)
    counted = prices.estimated, pace, went.interruptions
    return Row(model.name, len(theirs), same, len(ours), predicted, measured, cold, *counted, labels)


def tell(row: Row, console: Console) -> None:
    """Prints one in a line."""
    times = f"{row.predicted_ms:.3f} ms foretold, {row.measured_ms:.3f} measured ({100 * row.error:+.1f} %)"
    console.print(f"{row.name}: {times}; {row.same} of {row.nodes} kernels, {row.estimated} estimated", highlight=False)


def show(rows: Sequence[Row], console: Console) -> None:
    """Prints a table of them, and how far off they are."""
    columns = "kernels", "foretold exactly", "foretold", "measured", "error", "cold", "error", "pace", "interrupted", "worst"
    table = Table("model", *columns, caption="times in ms")
    for r in rows:
        worst = sorted(r.by_label.items(), key=lambda kv: -abs(kv[1][0] - kv[1][1]))[:2]
        far = ", ".join(f"{label} {a - b:+.2f}" for label, (a, b) in worst)
        exact = "all" if r.same == r.nodes == r.foretold else f"{r.same} (of {r.foretold} foretold)"
        times = f"{r.predicted_ms:.3f}", f"{r.measured_ms:.3f}", f"{100 * r.error:+.1f} %"
        cold = f"{r.cold_ms:.3f}", f"{100 * r.error_cold:+.1f} %"
        table.add_row(r.name, str(r.nodes), exact, *times, *cold, f"{r.pace:.2f}", f"{r.interruptions:.1f}", far)
    console.print(table)
    for what, errors in (("run after run", [r.error for r in rows]), ("all in memory", [r.error_cold for r in rows])):
        console.print(f"mean absolute error, {what}: {_errors(np.array(errors))}", highlight=False)
    if slow := [r.name for r in rows if r.pace > PACE]:
        console.print(f"the machine ran slower than when the table was filled: {', '.join(slow)}", highlight=False)


def _errors(errors: Array) -> str:
    text = f"{100 * np.abs(errors).mean():.1f} %"
    if len(errors) < 3:
        return text
    left = [abs((1 + e) / np.exp(np.median(np.log1p(np.delete(errors, k)))) - 1) for k, e in enumerate(errors)]
    return f"{text}; with one factor from the other models {100 * np.mean(left):.1f} %"


def _profile(graph: Graph, given: Mapping[str, Array], runs: int = 12) -> dict[str, float]:
    """Ms that onnxruntime's profiler says of each operator, at a quarter of the runs."""
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder) / "profile")
        options.log_severity_level = 4
        session = ort.InferenceSession(complete(graph).SerializeToString(), options, providers=["CPUExecutionProvider"])
        for _ in range(runs):
            session.run(None, {i.name: given[i.name] for i in session.get_inputs() if i.name in given})
        events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text())
    took: dict[str, list[float]] = {}
    ops: dict[str, str] = {}
    for e in events:
        if e.get("cat") == "Node" and e["name"].endswith("_kernel_time"):
            node = e["args"]["node_index"]
            took.setdefault(node, []).append(e["dur"] / 1000)
            ops[node] = e["args"]["op_name"]
    found: dict[str, float] = {}
    for node, times in took.items():
        found[ops[node]] = found.get(ops[node], 0.0) + min(times)
    return found
