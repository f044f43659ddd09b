"""The gate: a graph is called faster only once it has been run against the original, and the best measured one is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import onnxruntime as ort

from cgorl.cost.target import LEVELS
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import save
from cgorl.ir.run import RunError, short
from cgorl.ir.tensor import Array

ORIGINAL, SIMPLIFIED = "original", "simplified"
LEAST, MOST = 15, 2000
"""Rounds: fewer give no interval that is worth its name, more are of no use."""

SLACK = 0.01
"""What a graph that is no faster may lose at most, by the lower end of its interval, to be kept nevertheless."""

_DRAWS = 2000
_TAIL = 0.005

Runner = Callable[[], tuple[float, float]]
"""Runs a model once; CPU and wall time in ms."""


class Ratio(NamedTuple):
    """The original's time over a candidate's (above 1: the candidate is faster), with a 99 % interval."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Timing:
    """A candidate as measured: median CPU and wall time in ms, the ratio of CPU times, and how often it was run."""

    name: str
    cpu_ms: float
    wall_ms: float
    ratio: Ratio
    runs: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate lets through: the name of the graph to keep, all that was measured, and under which session options."""

    kept: str
    timings: tuple[Timing, ...]
    options: str
    why: str = ""

    @property
    def faster(self) -> bool:
        """Whether the kept graph was measured to be faster than the original, beyond noise."""
        return self.kept != ORIGINAL and self.timing(self.kept).ratio.low > 1.0

    def timing(self, name: str) -> Timing:
        """The measurement of one candidate."""
        return next(t for t in self.timings if t.name == name)


def judge(candidates: Mapping[str, Runner], seconds: float, seed: int = 0, options: str = "") -> Verdict:
    """Which of `candidates`, the original among them, to keep.

    All are run in turn; the best of those that are faster beyond noise is run against the original once more, and has to be
    faster again: of several equal ones the luckiest looks fast. If none is, the simplified graph is kept if it is not slower.
    """
    rng = np.random.default_rng(seed)
    timings = compare(candidates, seconds * 0.6, rng)
    others = sorted((t for t in timings.values() if t.name != ORIGINAL), key=lambda t: -t.ratio.middle)
    kept = ORIGINAL
    for best in (t for t in others if t.ratio.low > 1.0):
        again = compare({ORIGINAL: candidates[ORIGINAL], best.name: candidates[best.name]}, seconds * 0.4, rng)
        timings |= again
        if again[best.name].ratio.low > 1.0:
            kept = best.name
            break
        if best.name == SIMPLIFIED or again[best.name].ratio.middle < 1.0:
            break
    simple = timings.get(SIMPLIFIED)
    if kept == ORIGINAL and simple is not None and simple.ratio.low >= 1 - SLACK:
        kept = SIMPLIFIED
    return Verdict(kept, tuple(timings.values()), options)


def compare(runners: Mapping[str, Runner], seconds: float, rng: np.random.Generator) -> dict[str, Timing]:
    """Each runner's timing against the original's: in every round each is run once, in an order drawn anew."""
    names = list(runners)
    for name in names:
        runners[name]()
    rounds: list[dict[str, tuple[float, float]]] = []
    end = time.monotonic() + seconds
    while len(rounds) < LEAST or (time.monotonic() < end and len(rounds) < MOST):
        row = {names[k]: runners[names[k]]() for k in rng.permutation(len(names))}
        rounds.append(row)
    base = np.array([row[ORIGINAL][0] for row in rounds])
    found = {}
    for name in names:
        cpu, wall = (np.array([row[name][k] for row in rounds]) for k in (0, 1))
        found[name] = Timing(name, float(np.median(cpu)), float(np.median(wall)), ratio(base, cpu, rng), len(rounds))
    return found


def ratio(before: Array, after: Array, rng: np.random.Generator) -> Ratio:
    """The median over rounds of before / after, which a slow phase of the machine meets alike, and its bootstrap interval."""
    each = before / np.maximum(after, 1e-9)
    drawn = np.median(rng.choice(each, (_DRAWS, len(each))), axis=1)
    low, high = np.quantile(drawn, [_TAIL, 1 - _TAIL])
    return Ratio(float(np.median(each)), float(low), float(high))


def runners(
    graphs: Mapping[str, Graph], feeds: Mapping[str, Array], level: str = "all", threads: int = 1
) -> tuple[dict[str, Runner], dict[str, str]]:
    """Those of `graphs` that run, each in a session of its own in this process, and what the runtime said of the others."""
    found: dict[str, Runner] = {}
    failed: dict[str, str] = {}
    for name, graph in graphs.items():
        try:
            found[name] = _runner(graph, feeds, level, threads)
        except RunError as e:
            failed[name] = str(e)
    return found, failed


def _runner(graph: Graph, feeds: Mapping[str, Array], level: str, threads: int) -> Runner:
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            save(graph, path)
            session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        given = {i.name: feeds[i.name] for i in session.get_inputs() if i.name in feeds}
        session.run(None, given)
    except Exception as e:  # onnxruntime's exceptions share no base class
        raise RunError(short(e)) from None

    def run() -> tuple[float, float]:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        session.run(None, given)
        return (time.process_time_ns() - cpu) / 1e6, (time.perf_counter_ns() - wall) / 1e6

    return run


def prefixes(gains: Sequence[float], most: int = 3) -> list[int]:
    """Lengths of those prefixes of a trace that are worth a run: the whole, and where a half and four fifths of the gain are reached."""
    whole = len(gains)
    if whole <= most:
        return list(range(whole, 0, -1))
    total, found, so_far = sum(gains), [whole], 0.0
    for n, gain in enumerate(gains, 1):
        so_far += gain
        for share in (0.5, 0.8):
            if so_far - gain < share * total <= so_far:
                found.append(n)
    return list(dict.fromkeys(found))[:most]
