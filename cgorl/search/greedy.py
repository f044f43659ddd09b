"""Greedy: always the rewrite that gains most, until none gains."""

from __future__ import annotations

from dataclasses import dataclass

from cgorl.rules.rule import Match
from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.searcher import check
from cgorl.search.state import State

LEAST_MS = 1e-9


@dataclass(frozen=True, slots=True)
class Greedy(Method):
    """Takes the best rewrite again and again; of equal gains the one that leaves fewer nodes, then the first.

    Stops when the best gains `least_ms` or less, unless it costs nothing and leaves fewer nodes. Memory: two graphs.
    """

    least_ms: float = LEAST_MS

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"least_ms": 0.0})

    def search(self, course: Course) -> str:
        """Where a limit cuts a listing short, the best of what was priced is taken."""
        state = course.at()
        while state.prices:
            match = greediest(state, self.least_ms)
            if match is None:
                break
            stopped = course.pause(lambda number: {"at": number(state)})  # noqa: B023
            state = state.step(match) if stopped else state.after(match, course.meter)
            course.offer(state)
            if stopped:
                return stopped
        return course.meter.spent() or "no rewrite gains"


def greediest(state: State, least_ms: float = LEAST_MS) -> Match | None:
    """The rewrite that greed takes from an expanded state; None where it stops (see `Greedy`)."""
    if not state.prices:
        return None
    match = state.best_first()[0]
    gain = state.gain(match)
    return match if gain > least_ms or (gain > -1e-12 and state.fewer(match) > 0) else None
