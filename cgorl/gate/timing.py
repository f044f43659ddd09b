"""Timing: models run in turn, and what one takes against another, with an interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cgorl.ir.tensor import Array

LEAST, MOST = 8, 2000
"""Rounds: of fewer than 8 not even the extremes hold a median in 99 of 100 cases (2 / 2^n), more are of no use."""

_DRAWS = 4000
_TAIL = 0.005

Runner = Callable[[], tuple[float, float]]
"""Runs a model; CPU and wall time in ms."""


class Ratio(NamedTuple):
    """The original's time over a candidate's (above 1: the candidate is faster), with a 99 % interval."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Timing:
    """A candidate as measured: median CPU and wall time in ms, CPU times' quartiles, their ratio, and how often it was run.

    `sessions`: in how many, each loaded anew.
    """

    name: str
    cpu_ms: float
    wall_ms: float
    ratio: Ratio
    runs: int
    quartiles_ms: tuple[float, float] = (0.0, 0.0)
    sessions: int = 1


class Rounds:
    """Models run in turn: in every round each once, in an order drawn anew, so that a slow phase of the machine meets all alike.

    `interrupted` tells of a Ctrl-C, which ends a round that is not whole yet and keeps those before it.
    """

    def __init__(self, runners: Mapping[str, Runner], rng: np.random.Generator) -> None:
        """Nothing is run yet."""
        self._runners, self._rng = dict(runners), rng
        self.cpu_ms: dict[str, list[float]] = {name: [] for name in runners}
        self.wall_ms: dict[str, list[float]] = {name: [] for name in runners}
        self.count = 0
        self.interrupted = False

    def run(self, seconds: float, tell: Callable[[float], None] | None = None, least: int | None = None, warm: bool = True) -> None:
        """Goes on for `seconds`; until there are `least` (LEAST) rounds in any case, and never past MOST. `tell` hears the share done.

        Unless it is not to `warm` up, each model is run once before the first round.
        """
        start = time.monotonic()
        least = LEAST if least is None else least
        try:
            if warm and not self.count:
                for run in self._runners.values():
                    run()
            while self.count < least or ((spent := time.monotonic() - start) < seconds and self.count < MOST):
                names = list(self._runners)
                row = {names[k]: self._runners[names[k]]() for k in self._rng.permutation(len(names))}
                for name, (cpu, wall) in row.items():
                    self.cpu_ms[name].append(cpu)
                    self.wall_ms[name].append(wall)
                self.count += 1
                if tell is not None:
                    tell(1.0 if seconds <= 0 else min(1.0, spent / seconds) if self.count > least else 0.0)
        except KeyboardInterrupt:
            self.interrupted = True
            for times in (*self.cpu_ms.values(), *self.wall_ms.values()):
                del times[self.count :]

    def drop(self, names: Iterable[str]) -> None:
        """Runs these no more; what was measured of them stays."""
        for name in names:
            self._runners.pop(name, None)

    def timings(self, base: str, rounds: slice = slice(None)) -> dict[str, Timing]:
        """Each model's timing against that of `base` over `rounds`; none where there are fewer than LEAST."""
        found = {}
        before = np.array(self.cpu_ms[base][rounds])
        for name in self.cpu_ms:
            cpu, wall = np.array(self.cpu_ms[name][rounds]), np.array(self.wall_ms[name][rounds])
            if len(cpu) >= LEAST:
                quartiles = float(np.quantile(cpu, 0.25)), float(np.quantile(cpu, 0.75))
                rate = ratio(before[: len(cpu)], cpu, self._rng)
                found[name] = Timing(name, float(np.median(cpu)), float(np.median(wall)), rate, len(cpu), quartiles)
        return found


def compare(runners: Mapping[str, Runner], seconds: float, rng: np.random.Generator, base: str = "original") -> dict[str, Timing]:
    """Each runner's timing against that of `base`, all run in turn for `seconds`. An interrupt is passed on."""
    rounds = Rounds(runners, rng)
    rounds.run(seconds)
    if rounds.interrupted:
        raise KeyboardInterrupt
    return rounds.timings(base)


def ratio(before: Array, after: Array, rng: np.random.Generator) -> Ratio:
    """The median over rounds of before / after, which a slow phase of the machine meets alike, and its bootstrap interval."""
    return interval(before / np.maximum(after, 1e-9), rng)


def interval(each: Array, rng: np.random.Generator) -> Ratio:
    """The median of `each` and its bootstrap interval.

    The middle one of n draws from n values is the value at a rank that follows a beta distribution, so ranks are drawn, not
    samples; where n is even, each of the two middle ones in turn.
    """
    ordered, n = np.sort(each), len(each)
    ranks = np.repeat([(n + 1) // 2, n // 2 + 1], _DRAWS // 2)
    drawn = ordered[np.minimum((n * rng.beta(ranks, n + 1 - ranks)).astype(int), n - 1)]
    low, high = np.quantile(drawn, [_TAIL, 1 - _TAIL])
    return Ratio(float(np.median(each)), float(low), float(high))


def affordable(took_ms: Mapping[str, float], seconds: float, least: int = 2) -> list[str]:
    """Those models, from the first on, that half of `seconds` is enough to run LEAST times each; none if not even the first `least`."""
    names: list[str] = []
    total = 0.0
    for name, ms in took_ms.items():
        total += LEAST * ms / 1000
        if total > seconds / 2:
            break
        names.append(name)
    return names if len(names) >= least else []
