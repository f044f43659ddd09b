"""Runner: a graph or a file in an onnxruntime session of its own, made ready to be run and timed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnxruntime as ort

from cgorl.cost.target import LEVELS
from cgorl.gate.timing import Runner
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import ModelError, save
from cgorl.ir.run import RunError, short
from cgorl.ir.tensor import Array

SAMPLE_MS, MOST_TIMES = 0.5, 1000
"""A sample lasts so long at least: models that take microseconds are run several times for one."""


class Run:
    """One model's session; a call runs it `times` times and gives CPU and wall time of one run in ms."""

    def __init__(self, path: Path, feeds: Mapping[str, Array], level: str = "all", threads: int = 1) -> None:
        """Loads the file and runs it once; `made_ms` and `took_ms` are how long that took. Raises RunError."""
        begin = time.perf_counter()
        self._how = (path, feeds, level, threads)
        options = ort.SessionOptions()
        options.graph_optimization_level = LEVELS[level]
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 4
        # With one thread all work is done by the thread that asks; others (a progress bar's) are none of the model's time.
        self._clock: Callable[[], int] = time.thread_time_ns if threads == 1 else time.process_time_ns
        self.times = 1
        try:
            self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            self._given = {i.name: feeds[i.name] for i in self._session.get_inputs() if i.name in feeds}
            self._session.run(None, self._given)
            self.made_ms = 1000 * (time.perf_counter() - begin)
            self.took_ms = self()[1]
        except Exception as e:  # onnxruntime's exceptions share no base class
            raise RunError(short(e)) from None

    def __call__(self) -> tuple[float, float]:
        """CPU and wall time in ms."""
        run, given = self._session.run, self._given
        wall, cpu = time.perf_counter_ns(), self._clock()
        for _ in range(self.times):
            run(None, given)
        each = 1e6 * self.times
        return (self._clock() - cpu) / each, (time.perf_counter_ns() - wall) / each

    def again(self) -> Run:
        """The same model in a new session, as long as its file is there. Raises RunError."""
        made = Run(*self._how)
        made.times = self.times
        return made

    def outputs(self) -> list[Any]:
        """What one run gives."""
        return list(self._session.run(None, self._given))


def runner(graph: Graph, feeds: Mapping[str, Array], path: Path, level: str = "all", threads: int = 1) -> Run:
    """The graph, written to `path`, in a session of its own in this process. Raises RunError."""
    try:
        save(graph, path)
    except ModelError as e:  # no room for it
        raise RunError(str(e)) from None
    return Run(path, feeds, level, threads)


def runners(
    graphs: Mapping[str, Graph], feeds: Mapping[str, Array], level: str = "all", threads: int = 1
) -> tuple[dict[str, Runner], dict[str, str]]:
    """Those of `graphs` that run, each in a session of its own in this process, and what the runtime said of the others.

    All are run equally often for a sample.
    """
    found: dict[str, Run] = {}
    failed: dict[str, str] = {}
    for name, graph in graphs.items():
        try:
            with TemporaryDirectory(prefix="cgorl-") as folder:
                found[name] = runner(graph, feeds, Path(folder) / "model.onnx", level, threads)
        except RunError as e:
            failed[name] = str(e)
    even(found.values())
    return dict(found), failed


def even(runs: Iterable[Run]) -> None:
    """Has all run equally often for one sample, so that the quickest one's lasts SAMPLE_MS."""
    runs = list(runs)
    quickest = min((r.took_ms for r in runs), default=SAMPLE_MS)
    for r in runs:
        r.times = min(MOST_TIMES, max(1, math.ceil(SAMPLE_MS / max(quickest, 1e-6))))
