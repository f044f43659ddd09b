"""Sessions: models loaded anew again and again, since what one session takes is not what the next one of the same file takes.

Where a session's weights and buffers lie in memory moves its time by a per cent or two for as long as it lives, and the one
that is loaded beside others tends to be the faster: of two sessions of one file, one may beat the other beyond all noise of
their rounds. So a claim rests on several sessions, each second block of which is loaded in the order that the one before was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cgorl.gate.timing import Ratio, Rounds, Runner, Timing, interval
from cgorl.ir.tensor import Array

FEWEST, MOST_SESSIONS = 6, 16
"""Sessions of each model: from fewer no interval is made."""

LUCK = 0.02
"""What the places of two sessions may make of equal models."""

ROUNDS = 3
"""In a block, at least: slow models must do with few, and others have time for more."""

_STUDENT = (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947)
"""Quantiles of Student's distribution for a two-sided interval of 99 %, for 1, 2, ... degrees of freedom."""


class Sessions:
    """Blocks of rounds, each in sessions of its own; the order of loading is drawn for one block and reversed for the next.

    `interrupted` tells of a Ctrl-C, which loses the block that it ends.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Runner]], rng: np.random.Generator) -> None:
        """`makers` load the models."""
        self._makers, self._rng = makers, rng
        self.blocks: list[Rounds] = []
        self.interrupted = False

    def run(self, seconds: float, tell: Callable[[float], None] | None = None) -> None:
        """Goes on for `seconds`, loading included; until there are FEWEST blocks in any case."""
        begin = time.monotonic()
        names: list[str] = []
        try:
            while len(self.blocks) < FEWEST or (time.monotonic() - begin < seconds and len(self.blocks) < MOST_SESSIONS):
                names = names[::-1] if len(self.blocks) % 2 else [list(self._makers)[k] for k in self._rng.permutation(len(self._makers))]
                rounds = Rounds({n: self._makers[n]() for n in names}, self._rng)
                rounds.run(seconds / MOST_SESSIONS, least=ROUNDS, warm=False)
                rounds.drop(names)  # their memory is free before the next ones are loaded
                if rounds.interrupted:
                    self.interrupted = True
                    return
                self.blocks.append(rounds)
                if tell is not None:
                    tell(min(1.0, (time.monotonic() - begin) / seconds) if seconds > 0 else 1.0)
        except KeyboardInterrupt:  # while models are loaded
            self.interrupted = True

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough for an interval."""
        return len(self.blocks) >= FEWEST

    def timings(self, base: str) -> dict[str, Timing]:
        """Each model's timing against that of `base`, by sessions; none where there are too few."""
        found: dict[str, Timing] = {}
        for name in self.blocks[0].cpu_ms if self.enough else ():
            cpu, wall = (
                np.concatenate([t[name] for t in times]) for times in ([b.cpu_ms for b in self.blocks], [b.wall_ms for b in self.blocks])
            )
            rate = self.value(lambda b, name=name: np.array(b.cpu_ms[base]) / np.maximum(b.cpu_ms[name], 1e-9))  # type: ignore[misc]
            quartiles = float(np.quantile(cpu, 0.25)), float(np.quantile(cpu, 0.75))
            found[name] = Timing(name, float(np.median(cpu)), float(np.median(wall)), rate, len(cpu), quartiles, len(self.blocks))
        return found

    def value(self, of: Callable[[Rounds], Array]) -> Ratio:
        """What `of` makes of the rounds of each block, with an interval over blocks."""
        return spread([of(b) for b in self.blocks], self._rng)


def spread(blocks: Sequence[Array], rng: np.random.Generator) -> Ratio:
    """The mean of the blocks' medians and its 99 % interval: Student's over blocks, and at least the bootstrap's over all rounds."""
    middles = np.array([np.median(b) for b in blocks])
    within = interval(np.concatenate([b - np.median(b) for b in blocks]), rng)
    mean, n = float(middles.mean()), len(middles)
    half = float(middles.std(ddof=1)) / n**0.5 * _STUDENT[min(n - 1, len(_STUDENT)) - 1]
    return Ratio(mean, mean + min(-half, within.low), mean + max(half, within.high))
