"""Signs: whether prices foretell which of two blocks is the faster one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from cgorl import gate
from cgorl.calibration.pairs import build, pairs
from cgorl.certificate.inputs import feeds
from cgorl.cost.measured import Measured
from cgorl.ir.from_proto import from_proto
from cgorl.ir.simplify import simplify

CLOSE = (0.97, 1.03)
"""Measured ratios that say neither."""


class Sign(NamedTuple):
    """A substitution: time before over time after, foretold and measured, with the interval of the latter.

    `counts` is false where the gain foretold is within the noise of its kernels, so that a search would not take it.
    """

    name: str
    foretold: float
    measured: gate.Ratio
    counts: bool

    @property
    def right(self) -> bool | None:
        """Whether the sign is foretold; None where the measured ratio says neither."""
        if CLOSE[0] <= self.measured.middle <= CLOSE[1]:
            return None
        return (self.foretold > 1) == (self.measured.middle > 1)


def signs(prices: Measured, seconds: float) -> Iterator[Sign]:
    """Each pair, run in turn for so many seconds."""
    for pair in pairs():
        graphs = {
            name: simplify(from_proto(build(draw, name))).graph for name, draw in ((gate.ORIGINAL, pair.before), ("after", pair.after))
        }
        before, after = (prices.cost_ms(g) for g in graphs.values())
        doubt = prices.doubt_ms(*graphs.values())
        runners, _ = gate.runners(graphs, feeds(graphs[gate.ORIGINAL], {}, np.random.default_rng(0)), prices.level)
        timings = gate.compare(runners, seconds, np.random.default_rng(0))
        yield Sign(pair.name, before / after, timings["after"].ratio, abs(before - after) > doubt)


def show(found: Sequence[Sign], console: Console) -> None:
    """Prints a table of them, and how many are right."""
    table = Table("substitution", "foretold", "measured", "99 %", "sign")
    for s in found:
        said = {True: "right", False: "WRONG", None: "too close to call"}[s.right] + ("" if s.counts else ", within noise")
        table.add_row(s.name, f"{s.foretold:.2f}", f"{s.measured.middle:.2f}", f"{s.measured.low:.2f}-{s.measured.high:.2f}", said)
    console.print(table)
    told = [s for s in found if s.right is not None]
    taken = [s for s in found if s.foretold > 1 and s.counts]
    false = sum(s.measured.middle < CLOSE[0] for s in taken)
    text = f"signs: {sum(bool(s.right) for s in told)} of {len(told)} right, {len(found) - len(told)} too close to call"
    console.print(f"{text}; a search would take {len(taken)}, {false} of them slower", highlight=False)
