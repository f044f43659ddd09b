"""Measuring kernels: the time of many copies less that of a few, at a quarter of the samples, at the pace of the table.

One thread, its own CPU time; some kernels in turn, so that what comes and goes on the machine meets all alike. A small
convolution before and after each sample tells whether anything came between; and at which pace the machine ran: samples
from a slow phase are refused, not scaled.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from cgorl.cost.anchor import Anchor, Runner, anchor, flatten_ns, interruptions, least_interrupted
from cgorl.cost.bench_model import flattens, weight_bytes
from cgorl.cost.kernels.kernel import Kernel
from cgorl.cost.store import PACE, Entry, Store

PASSES, LEAST = 30, 7
"""Samples that are taken of each kernel, and how many there must be at least for a price."""

_FEW = 2
"""Copies that are subtracted. Three results are alive at once: with two, one of them goes to memory that was not at hand, as some
do in a real model. Over five models, errors are +2 % on average with one, -2 % with two and -5 % with three for a model that
finds its weights in memory, and +5, +2 and -2 % for one that is run again at once."""

_LARGE = 64 << 20
"""Weights of so many bytes are nowhere but in memory, and few copies of them are enough."""

_TRIES = 6
_SAMPLE_NS, _MOST_COPIES = 200_000, 16
_IN_TURN, _BYTES_IN_TURN = 12, 384 << 20
_NOISE = ((0.005, 0.17), (0.020, 0.07), (0.100, 0.045), (1.0, 0.025), (math.inf, 0.014))
"""How far two pricings of one kernel lie apart (median), by its price in ms."""

Tell = Callable[[int, int, Kernel | None], None]
"""Told of kernels done, kernels in all, and the kernel just priced."""


class Measured(NamedTuple):
    """How a round of measuring went: kernels priced, those that cannot be run, those left without a price.

    `refused` is the share of samples that something came between or that were taken at too slow a pace.
    """

    done: int
    failed: tuple[Kernel, ...]
    left: int
    refused: float


def noise(ms: float) -> float:
    """How far two pricings of a kernel of this price lie apart, as a share of it."""
    return next(share for limit, share in _NOISE if ms <= limit)


def measure(kernels: Iterable[Kernel], store: Store, seconds: float, tell: Tell | None = None) -> Measured:
    """Prices those kernels that `store` has none of, as far as the time goes; each is kept at once when it is done.

    What another process prices meanwhile is taken over. An interrupt leaves those in the table that have samples enough.
    """
    todo = deque(k for k in dict.fromkeys(kernels) if store.get(k.key) is None)
    total, end = len(todo), time.monotonic() + seconds
    failed: list[Kernel] = []
    open_: list[_Bench] = []
    done = taken = refused = 0

    def close(bench: _Bench) -> None:
        nonlocal done
        open_.remove(bench)
        if not bench.slow(store.pace_ms) and (entry := bench.entry()) is not None:
            store.add(bench.kernel.key, entry)
            done += 1
            if tell is not None:
                tell(done, total, bench.kernel)

    try:
        while (todo or open_) and time.monotonic() < end:
            if todo and _room(open_, todo[0]):  # one more at a time, so that they are not done all at once
                kernel = todo.popleft()
                store.refresh()
                try:
                    if store.get(kernel.key) is None:
                        open_.append(_Bench(kernel))
                    else:
                        total -= 1
                except Exception:  # onnxruntime's exceptions share no base class
                    failed.append(kernel)
            for bench in list(open_):
                if time.monotonic() >= end:
                    break
                taken += 1
                refused += not bench.sample(anchor())
                if bench.full and bench.slow(store.pace_ms):
                    refused += len(bench.many)
                    bench.drop()
                if bench.full:
                    close(bench)
    finally:
        for bench in list(open_):
            close(bench)
    return Measured(done, tuple(failed), total - done - len(failed), refused / max(1, taken))


def _room(open_: list[_Bench], kernel: Kernel) -> bool:
    """Whether one more kernel can be measured in turn with others: by their number, and so that they fit into memory."""
    held = sum(weight_bytes(b.kernel) * (b.more + 2 * _FEW) for b in open_)
    return not open_ or (len(open_) < _IN_TURN and held + 8 * weight_bytes(kernel) <= _BYTES_IN_TURN)


class _Bench:
    """A kernel and its samples: ns of many copies and of a few, and of the anchor by them."""

    def __init__(self, kernel: Kernel) -> None:
        if not kernel.stands_alone:
            raise ValueError(f"{kernel} cannot be run by itself")
        self.kernel, self.few, self.many, self.paces, self.counts = kernel, list[int](), list[int](), list[int](), list[int]()
        self.tries = 0
        copies = _FEW if weight_bytes(kernel) <= _LARGE else 1
        self._run_few = Runner(kernel, copies)
        rough = max(1, min(self._run_few() for _ in range(3)) / copies)
        most = max(1, (96 << 20) // max(1, weight_bytes(kernel)))
        self.more = min(max(2, math.ceil(_SAMPLE_NS / rough)), _MOST_COPIES, most)
        self._run_many = Runner(kernel, self.more + copies)
        self.passes = PASSES if rough < 1e5 else PASSES * 2 // 3 if rough < 1e6 else PASSES * 2 // 5

    @property
    def full(self) -> bool:
        """Whether there are samples enough, or were tries enough."""
        return len(self.many) >= self.passes or self.tries >= _TRIES * self.passes

    def sample(self, mark: Anchor) -> bool:
        """Takes a sample; keeps it, and is true, if nothing came between."""
        self.tries += 1
        before, count = mark(), interruptions()
        many = self._run_many()
        few = self._run_few()
        count = interruptions() - count
        after = mark()
        if not mark.steady(before, after):
            return False
        self.many.append(many)
        self.few.append(few)
        self.counts.append(count)
        self.paces.append(min(before, after))
        return True

    def slow(self, pace_ms: float) -> bool:
        """Whether the samples were taken at a slower pace than that of the table (0: it has none yet)."""
        return bool(self.paces) and 0 < PACE * pace_ms < self._pace_ms()

    def drop(self) -> None:
        """Forgets the samples; the tries stay counted."""
        self.few, self.many, self.paces, self.counts = [], [], [], []

    def entry(self) -> Entry | None:
        """What one more copy takes at a quarter of the least interrupted samples; None where there are too few."""
        if len(self.many) < LEAST:
            return None
        quiet = least_interrupted(self.counts, LEAST)
        many, few = (np.quantile(np.array(samples)[quiet], 0.25) for samples in (self.many, self.few))
        ns = float(many - few) / self.more
        ms = max(ns - flattens(self.kernel) * flatten_ns(), 100.0) / 1e6
        return Entry(ms, noise(ms), len(self.many), round(self._pace_ms(), 6))

    def _pace_ms(self) -> float:
        return float(np.quantile(self.paces, 0.25)) / 1e6
