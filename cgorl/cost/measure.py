"""Measuring kernels: the time of several copies less that of one, at a quarter of the samples, between steady anchors.

The protocol, its facts and its dead ends: one thread, its own CPU time; every kernel in turn, so that a slow phase of the
machine meets all alike; a small convolution before and after each sample, which must be as fast as ever, or the sample is
refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort

from cgorl.cost.bench_model import bench_model, chained, weight_bytes
from cgorl.cost.kernels.kernel import Kernel, float_slot
from cgorl.cost.store import Entry, Store

PASSES, LEAST = 30, 7
"""Samples that are taken of each kernel, and how many there must be at least for a price."""

STEADY = 1.06
"""Anchors may be this much slower than the best of late."""

_TRIES = 6
_SAMPLE_NS, _MOST_COPIES = 200_000, 16
_GROUP_BYTES = 384 << 20
_NOISE = ((0.005, 0.17), (0.020, 0.07), (0.100, 0.045), (1.0, 0.025), (math.inf, 0.014))
"""How far two pricings of one kernel lie apart (median), by its price in ms."""

Tell = Callable[[int, int, Kernel | None], None]
"""Told of kernels done, kernels in all, and the kernel just priced."""


class Measured(NamedTuple):
    """How a round of measuring went: kernels priced, those that cannot be run, those that the time was too short for."""

    done: int
    failed: tuple[Kernel, ...]
    left: int
    refused: float


def noise(ms: float) -> float:
    """How far two pricings of a kernel of this price lie apart, as a share of it."""
    return next(share for limit, share in _NOISE if ms <= limit)


def measure(kernels: Iterable[Kernel], store: Store, seconds: float, tell: Tell | None = None) -> Measured:
    """Prices those kernels that `store` has none of, as far as the time goes; each is kept at once when it is done.

    An interrupt leaves those in the table that have samples enough.
    """
    todo = [k for k in dict.fromkeys(kernels) if store.get(k.key) is None]
    end = time.monotonic() + seconds
    failed: list[Kernel] = []
    tally = [0, 0, 0]  # priced, samples taken, samples refused
    for group in _groups(todo):
        if time.monotonic() >= end:
            break
        benches = []
        try:
            for kernel in group:
                if time.monotonic() >= end:
                    break
                try:
                    benches.append(_Bench(kernel))
                except Exception:  # onnxruntime's exceptions share no base class
                    failed.append(kernel)
            _sample(benches, end, tally)
        finally:
            for b in benches:
                if len(b.many) >= LEAST:
                    ms = b.price_ms()
                    store.add(b.kernel.key, Entry(ms, noise(ms), len(b.many)))
                    tally[0] += 1
                    if tell is not None:
                        tell(tally[0], len(todo), b.kernel)
    return Measured(tally[0], tuple(failed), len(todo) - tally[0] - len(failed), tally[2] / max(1, tally[1]))


def _sample(benches: list[_Bench], end: float, tally: list[int]) -> None:
    """Takes samples of all in turn until each has enough; refused ones are tried again, to a limit."""
    for _ in range(_TRIES * PASSES):
        open_ = [b for b in benches if len(b.many) < b.passes]
        if not open_:
            return
        for b in open_:
            if time.monotonic() >= end:
                return
            good = b.sample(_anchor())
            tally[1] += 1
            tally[2] += not good


def steady(run: Callable[[], float], seconds: float, least: int = 15) -> list[float]:
    """What `run` says of itself, again and again, whenever the machine is steady around it; all of it where it hardly ever is."""
    kept, every = list[float](), list[float]()
    end = time.monotonic() + seconds
    anchor = _anchor()
    while time.monotonic() < end or len(every) < least:
        before = anchor()
        every.append(run())
        if anchor.steady(before, anchor()):
            kept.append(every[-1])
    return kept if len(kept) >= least else every


def _groups(kernels: list[Kernel]) -> Iterable[list[Kernel]]:
    """Kernels that are measured in turn: as many as fit into memory, at most 24."""
    group: list[Kernel] = []
    size = 0
    for k in kernels:
        more = 4 * weight_bytes(k)
        if group and (size + more > _GROUP_BYTES or len(group) >= 24):
            yield group
            group, size = [], 0
        group.append(k)
        size += more
    if group:
        yield group


class _Runner:
    """A bench model in a session of its own; a call runs it once and gives its CPU time in ns."""

    def __init__(self, kernel: Kernel, copies: int, held: int = 1) -> None:
        model, feeds = bench_model(kernel, copies, held)
        self._session = session(model.SerializeToString())
        self._names = [self._session.get_outputs()[0].name]
        self._feeds = feeds
        self()

    def __call__(self) -> int:
        start = time.thread_time_ns()
        self._session.run(self._names, self._feeds)
        return time.thread_time_ns() - start


def session(model: bytes) -> Any:
    """A session that runs a model as it is, node by node in the order of its file, at one thread."""
    options = ort.SessionOptions()
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class _Bench:
    def __init__(self, kernel: Kernel) -> None:
        if not kernel.stands_alone:
            raise ValueError(f"{kernel} cannot be run by itself")
        self.kernel, self.one, self.many = kernel, list[int](), list[int]()
        self._single = _Runner(kernel, 1)
        rough = max(1, min(self._single() for _ in range(3)))
        most = max(2, (96 << 20) // max(1, weight_bytes(kernel)))
        self.more = min(max(2, math.ceil(_SAMPLE_NS / rough)), _MOST_COPIES, most)
        self._several = _Runner(kernel, self.more + 1)
        self.passes = PASSES if rough < 1e5 else PASSES * 2 // 3 if rough < 1e6 else PASSES * 2 // 5

    def sample(self, anchor: _Anchor) -> bool:
        """Takes a sample if the machine is steady around it; whether it was."""
        before = anchor()
        several = self._several()
        single = self._single()
        if not anchor.steady(before, anchor()):
            return False
        self.many.append(several)
        self.one.append(single)
        return True

    def price_ms(self) -> float:
        """What one more copy takes at a quarter of the samples."""
        ns = (np.quantile(self.many, 0.25) - np.quantile(self.one, 0.25)) / self.more
        ns -= 0.0 if chained(self.kernel) else _flatten_ns()
        return max(float(ns), 100.0) / 1e6


_ANCHOR = Kernel("Conv", "", (), (float_slot((1, 32, 28, 28)), float_slot((64, 32, 1, 1), True)), (float_slot((1, 64, 28, 28)),), 17)


class _Anchor:
    """A small convolution that tells whether the machine runs at its usual speed."""

    def __init__(self) -> None:
        self._run = _Runner(_ANCHOR, 1)
        self.best = min(self() for _ in range(20))
        self._late: list[int] = []

    def __call__(self) -> int:
        self._run()  # the first finds its data cold, after whatever ran before
        return self._run()

    def steady(self, before: int, after: int) -> bool:
        """Whether two runs were near the lower end of those of late."""
        self._late = [*self._late[-199:], min(before, after)]
        usual = max(self.best, float(np.quantile(self._late, 0.1)))
        return max(before, after) <= STEADY * usual


@lru_cache(maxsize=1)
def _anchor() -> _Anchor:
    return _Anchor()


@lru_cache(maxsize=1)
def _flatten_ns() -> float:
    """The time of a Flatten between two copies of a kernel of the usual size."""
    runs = [_Runner(_ANCHOR, 9, held) for held in (1, 9)]
    one, many = np.quantile([[run() for run in runs] for _ in range(100)], 0.25, axis=0)
    return max(0.0, float(many - one)) / 64
