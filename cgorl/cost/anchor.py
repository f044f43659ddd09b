"""Bench models run and timed, and the anchor: a small kernel that tells at which pace the machine runs meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort

from cgorl.cost.bench_model import bench_model
from cgorl.cost.kernels.kernel import Kernel, float_slot
from cgorl.cost.store import PACE
from cgorl.ir.tensor import Array

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # not Linux: nobody tells
    getrusage = None  # type: ignore[assignment]

SPIKE = 1.10
"""An anchor that takes so many times what it usually does has met something else on the machine."""

ANCHOR = Kernel("Conv", "", (), (float_slot((1, 32, 28, 28)), float_slot((64, 32, 1, 1), True)), (float_slot((1, 64, 28, 28)),), 17)

_LINE = 64


def session(model: bytes) -> Any:
    """A session that runs a model as it is, node by node in the order of its file, at one thread."""
    options = ort.SessionOptions()
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class Runner:
    """A bench model in a session of its own; a call runs it once and gives its CPU time in ns."""

    def __init__(self, kernel: Kernel, copies: int, held: int = 1) -> None:
        """Builds the model; see `bench_model`. Raises what onnxruntime raises for a kernel that it cannot run."""
        model, feeds = bench_model(kernel, copies, held)
        self._session = session(model.SerializeToString())
        self._names = [self._session.get_outputs()[0].name]
        self._feeds = {name: aligned(array) for name, array in feeds.items()}
        self()

    def __call__(self) -> int:
        """Runs it."""
        start = time.thread_time_ns()
        self._session.run(self._names, self._feeds)
        return time.thread_time_ns() - start


def aligned(array: Array) -> Array:
    """A copy that begins where a cache line does, as all values within a graph do; one that does not is read up to twice as long."""
    room = np.empty(array.nbytes + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


class Anchor:
    """A small convolution, run around each sample."""

    def __init__(self) -> None:
        """Runs it some times, to know what it usually takes."""
        self._run = Runner(ANCHOR, 1)
        self._late = [self() for _ in range(20)]
        self._usual = 0.0

    def __call__(self) -> int:
        """Its time in ns, the better of two, data and code at hand: the first runs find them gone, whatever ran before."""
        self._run()
        self._run()
        return min(self._run(), self._run())

    def steady(self, before: int, after: int) -> bool:
        """Whether nothing came between two runs of the anchor, by what it took of late."""
        self._late.append(min(before, after))
        if len(self._late) % 20 == 1:
            self._late = self._late[-200:]
            self._usual = float(np.quantile(self._late, 0.25))
        return max(before, after) <= SPIKE * self._usual


@lru_cache(maxsize=1)
def anchor() -> Anchor:
    """The anchor of this process."""
    return Anchor()


@lru_cache(maxsize=1)
def flatten_ns() -> float:
    """The time of a Flatten between two copies of a kernel of the usual size."""
    runs = [Runner(ANCHOR, 9, held) for held in (1, 9)]
    one, many = np.quantile([[run() for run in runs] for _ in range(100)], 0.25, axis=0)
    return max(0.0, float(many - one)) / 64


def interruptions() -> int:
    """How often another process has taken this thread's place so far; each time costs about 0.1 ms to find the caches' contents again."""
    return getrusage(RUSAGE_THREAD).ru_nivcsw if getrusage is not None else 0


def least_interrupted(counts: Sequence[int] | Array, least: int) -> Array:
    """Which of the samples with so many interruptions to look at: those with the fewest, `least` of them at any rate."""
    counted = np.asarray(counts)
    limit = np.sort(counted)[min(least, len(counted)) - 1]
    chosen: Array = counted <= limit
    return chosen


class Steady(NamedTuple):
    """Times of what was run again and again, what the anchor took meanwhile in ms, and interruptions by the first of the times."""

    times: tuple[Array, ...]
    pace_ms: float
    interruptions: float


def steady(run: Callable[[], Sequence[tuple[float, int]]], seconds: float, pace_ms: float = 0.0, least: int = 15) -> Steady:
    """What `run` says of itself, again and again, while the machine is steady and at a pace; a row a time that it tells.

    It tells times, each with the interruptions meanwhile; of each those with the fewest count. `pace_ms` is the pace (0: any).
    All runs count where the machine hardly ever is steady, with the anchor to tell.
    """
    every, paces, good = list[Sequence[tuple[float, int]]](), list[int](), list[bool]()
    end = time.monotonic() + seconds
    mark = anchor()
    limit = pace_ms * PACE * 1e6 or math.inf
    while time.monotonic() < end or len(every) < least:
        before = mark()
        every.append(run())
        after = mark()
        paces.append(min(before, after))
        good.append(mark.steady(before, after) and min(before, after) <= limit)
    told = np.array(every, float)  # runs, times, (time, interruptions)
    if sum(good) >= least:
        told = told[good]
    kept = [told[least_interrupted(told[:, k, 1], least), k] for k in range(told.shape[1])]
    return Steady(tuple(k[:, 0] for k in kept), float(np.quantile(paces, 0.25)) / 1e6, float(kept[0][:, 1].mean()))
