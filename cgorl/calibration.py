"""Calibration: what measured prices foretell of whole models, against the models run; and which kernels the rule gets wrong."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from rich.console import Console
from rich.table import Table

from cgorl import config, gate, jobs
from cgorl.certificate.inputs import feeds
from cgorl.cost.anchor import steady
from cgorl.cost.kernels import written
from cgorl.cost.kernels.kernel import Kernel
from cgorl.cost.measure import Measured as Round
from cgorl.cost.measure import measure
from cgorl.cost.measured import Measured
from cgorl.ir.graph import Graph
from cgorl.ir.sizes import symbols
from cgorl.ir.tensor import Array
from cgorl.ir.to_proto import complete

SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Row:
    """One model: nodes that the runtime runs, how many of them the rule foretells, and the time in ms foretold and measured."""

    name: str
    nodes: int
    same: int
    foretold: int
    predicted_ms: float
    measured_ms: float
    estimated: int
    by_label: Mapping[str, tuple[float, float]]

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted_ms / self.measured_ms - 1


def chosen(arguments: Sequence[str]) -> Iterator[tuple[str, Graph, Measured, Mapping[str, int]]]:
    """Each model that `model=a,b` names, cleaned up, with its prices and the sizes of its symbols. Raises ConfigError."""
    if not any(a.startswith("model=") for a in arguments):
        raise config.ConfigError("'model' must be given, as model=...")
    given = next(a.partition("=")[2] for a in arguments if a.startswith("model="))
    rest = [a for a in arguments if not a.startswith("model=")]
    for name in config.several("model", given):
        cfg = config.load_config("optimize", ["cost=measured", f"cost.seconds={SECONDS}", *rest, f"model={name}"])
        prices = jobs.cost(cfg)
        if not isinstance(prices, Measured):
            raise config.ConfigError("only cost=measured has prices that are measured")
        options = config.plain(cfg)
        graph = jobs.simplified(cfg)
        yield Path(name).stem, graph, prices, {s: options["dims"].get(s, options["unbound"] or 1) for s in symbols(graph)}


def fill(arguments: Sequence[str], console: Console) -> None:
    """Measures the kernels of the models that `arguments` name into the table, with progress; an interrupt keeps what is done."""
    for name, graph, prices, _ in chosen(arguments):
        found = prices.kernels(graph)
        new = {k for k in found if prices.store.get(k.key) is None}
        console.print(f"{name}: {len(found)} kernels, {len(set(found))} distinct, {len(new)} not in the table", highlight=False)

        def tell(done: int, total: int, kernel: Kernel | None, prices: Measured = prices) -> None:
            entry = prices.store.get(kernel.key) if kernel is not None else None
            if entry is not None:
                console.print(f"  {done:4} of {total}  {1000 * entry.ms:9.1f} us  {kernel}", highlight=False, markup=False)

        went: Round = measure(found, prices.store, prices.seconds, tell)
        text = f"{went.done} priced, {len(went.failed)} cannot be run alone, {went.left} left"
        console.print(
            f"{name}: {text}; {100 * went.refused:.0f} % of the samples refused; {prices.store.path}", highlight=False, markup=False
        )


def calibrate(arguments: Sequence[str], console: Console, seconds: float = 6.0) -> list[Row]:
    """A row for each model, shown as they come, and the operators that are furthest off."""
    rows = []
    for name, graph, prices, sizes in chosen(arguments):
        rows.append(_row(name, graph, prices, sizes, seconds))
        r = rows[-1]
        text = f"{r.predicted_ms:.3f} ms foretold, {r.measured_ms:.3f} measured ({100 * r.error:+.1f} %); {r.same} of {r.nodes} kernels"
        console.print(f"{name}: {text}, {r.estimated} estimated", highlight=False)
    table = Table("model", "runtime's kernels", "foretold exactly", "foretold ms", "measured ms", "error", "worst: foretold - profiled ms")
    for r in rows:
        worst = sorted(r.by_label.items(), key=lambda kv: -abs(kv[1][0] - kv[1][1]))[:2]
        far = ", ".join(f"{label} {a - b:+.2f}" for label, (a, b) in worst)
        exact = "all" if r.same == r.nodes == r.foretold else f"{r.same} (of {r.foretold} foretold)"
        table.add_row(r.name, str(r.nodes), exact, f"{r.predicted_ms:.3f}", f"{r.measured_ms:.3f}", f"{100 * r.error:+.1f} %", far)
    console.print(table)
    if rows:
        errors = np.array([r.error for r in rows])
        factor = (
            [abs(np.exp(np.median(np.log1p(np.delete(errors, k)))) / (1 + e) - 1) for k, e in enumerate(errors)] if len(rows) > 2 else []
        )
        text = f"mean absolute error {100 * np.abs(errors).mean():.1f} %"
        text += f"; with one factor from the other models {100 * np.mean(factor):.1f} %" if factor else ""
        console.print(f"{text}; {prices.store.target}", highlight=False)
    return rows


def _row(name: str, graph: Graph, prices: Measured, sizes: Mapping[str, int], seconds: float) -> Row:
    given = feeds(graph, sizes, np.random.default_rng(0))
    predicted = prices.cost_ms(graph)
    ours = prices.kernels(graph)
    theirs = written.kernels_of(written.write(complete(graph)), given)
    same = sum((Counter(k.key for k in ours) & Counter(k.key for k in theirs)).values())
    runners, _ = gate.runners({gate.ORIGINAL: graph}, given, prices.level)
    run = runners[gate.ORIGINAL]
    measured = float(np.quantile(steady(lambda: run()[0], seconds, prices.store.pace_ms)[0], 0.25))  # as the prices are
    mine: dict[str, float] = {}
    for k in ours:
        mine[k.op] = mine.get(k.op, 0.0) + prices.kernel_ms(k)
    profiled = _profile(graph, given)
    labels = {label: (mine.get(label, 0.0), profiled.get(label, 0.0)) for label in {*mine, *profiled}}
    return Row(name, len(theirs), same, len(ours), predicted, measured, prices.estimated, labels)


def _profile(graph: Graph, given: Mapping[str, Array], runs: int = 12) -> dict[str, float]:
    """Median ms that onnxruntime's profiler says of each operator."""
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
            took.setdefault(e["name"], []).append(e["dur"] / 1000)
            ops[e["name"]] = e["args"]["op_name"]
    found: dict[str, float] = {}
    for name, times in took.items():
        found[ops[name]] = found.get(ops[name], 0.0) + float(np.quantile(times, 0.25))
    return found
