"""Searcher: the one protocol of all methods, what they may spend, and what they return."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.trace import Step
from cgorl.search.way import Way

LIMITS = ("seconds", "expansions", "evaluations", "interrupted")
"""What a search says that stopped it when it did not end by itself."""


OPEN = (*LIMITS, "cooled down", "all walks walked", "no better graph")
"""What it says where there may be more to find: limits, and ends that a method sets itself."""


class SearchError(ValueError):
    """A searcher that cannot be; the message names the parameter."""


ABOVE_0 = 1e-300


def check(searcher: object, least: Mapping[str, float], whole: Collection[str] = ()) -> None:
    """Raises SearchError for a parameter that is no number, below its least value, or not whole if it must be."""
    for name, low in least.items():
        value = getattr(searcher, name)
        right = isinstance(value, int if name in whole else int | float) and not isinstance(value, bool)
        if not right or not low <= value:
            kind = "a whole number" if name in whole else "a number"
            bound = "above 0" if low == ABOVE_0 else f"of at least {low:g}"
            raise SearchError(f"search.{name} must be {kind} {bound}, not {value!r}")


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may spend; None is no limit.

    An expansion is a distinct graph whose matches were listed, an evaluation one match priced for one graph.
    """

    seconds: float | None = None
    expansions: int | None = None
    evaluations: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """A searcher's word on how it goes: called after each expansion."""

    expansions: int
    evaluations: int
    seconds: float
    best_ms: float
    rewrites: int


Listener = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """The best graph found and how it came about; `stopped` says what ended the search.

    `runners_up` are the ways to the next best graphs, the cheapest first (see `cgorl.search.runners_up`).
    """

    graph: Graph
    cost_ms: float
    initial_cost_ms: float
    trace: tuple[Step, ...]
    expansions: int
    evaluations: int
    seconds: float
    stopped: str
    runners_up: tuple[Way, ...] = ()


class Searcher(Protocol):
    """graph -> the best equivalent graph found within the budget; anytime: an interrupt gives the best so far."""

    def __call__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel,
        budget: Budget,
        listen: Listener | None = None,
        checkpoint: Path | None = None,
    ) -> SearchResult:
        """Runs the search; with a checkpoint, goes on from there if the file exists (what was spent counts), and keeps it up to date."""
        ...


class Meter:
    """Counts what a search spends and says when a budget is used up; what `waited` tells of, in seconds, is not spent by it.

    `whole`: nothing has been left out for want of it yet. `patient`: what has begun ends whatever the clock says, so that
    there is something whole to keep. `asked`: somebody wants it to stop.
    """

    def __init__(self, budget: Budget, listen: Listener | None, waited: Callable[[], float] = float) -> None:
        """Starts the clock."""
        self.budget, self._listen, self._waited = budget, listen, waited
        self._start = time.monotonic() - waited()
        self.expansions = self.evaluations = 0
        self.whole = True
        self.patient = False
        self.asked = False

    def resume(self, expansions: int, evaluations: int, seconds: float) -> None:
        """Counts on from what was spent before."""
        self.expansions, self.evaluations = expansions, evaluations
        self._start = time.monotonic() - self._waited() - seconds

    @property
    def seconds(self) -> float:
        """Seconds since the search began, without those waited for prices."""
        return time.monotonic() - self._start - self._waited()

    def spent(self) -> str:
        """As `limit`, asked by who leaves something out if there is one."""
        limit = self._limit(not self.patient)
        self.whole = self.whole and not limit
        return limit

    def limit(self) -> str:
        """The name of the limit that is reached; empty while there is room."""
        return "interrupted" if self.asked else self._limit(True)

    def _limit(self, clock: bool) -> str:
        b = self.budget
        if clock and b.seconds is not None and self.seconds >= b.seconds:
            return "seconds"
        if b.expansions is not None and self.expansions >= b.expansions:
            return "expansions"
        if b.evaluations is not None and self.evaluations >= b.evaluations:
            return "evaluations"
        return ""

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return any(x is not None for x in (self.budget.seconds, self.budget.expansions, self.budget.evaluations))

    def used(self, more: int = 0) -> float:
        """The largest share of a limit that is used up, once an expansion of `more` evaluations is paid for; 0 without a limit."""
        b = self.budget
        spent = ((self.seconds, b.seconds), (self.expansions + 1, b.expansions), (self.evaluations + more, b.evaluations))
        return max([x / limit if limit else float("inf") for x, limit in spent if limit is not None], default=0.0)

    def tell(self, best_ms: float, rewrites: int) -> None:
        """Reports to the listener."""
        if self._listen is not None:
            self._listen(Progress(self.expansions, self.evaluations, self.seconds, best_ms, rewrites))
