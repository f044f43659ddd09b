"""Lookahead: the best sequence of up to three rewrites, taken whole, again and again."""

from __future__ import annotations

from dataclasses import dataclass

from cgorl.cost.model import Price
from cgorl.rules.rule import Match
from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.searcher import check
from cgorl.search.state import State


@dataclass(frozen=True, slots=True)
class Lookahead(Method):
    """Tries every match, and behind it what it made possible or changed, up to `steps` deep; takes the best sequence.

    A later step that an earlier one did not touch is left out: its gain is its own, and another round takes it.
    Memory: the graphs of one sequence, and a number for each match.
    """

    steps: int = 3
    least_ms: float = 1e-9

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"steps": 1, "least_ms": 0.0}, whole=("steps",))

    def search(self, course: Course) -> str:
        """See `Method`."""

        def deepest(parent: State, state: State, left: int) -> State:
            """The cheapest state that up to `left` more steps lead to, each made possible or changed by the one before."""
            found = state
            for m in state.best_first() if left else ():
                if m not in parent.prices and not course.meter.spent():
                    child = state.after(m, course.meter)
                    course.offer(child)
                    found = min(found, deepest(state, child, left - 1), key=lambda s: s.cost_ms)
            return found

        at, told = course.at(), course.memory
        known: dict[Match, tuple[float, Price]] = {}  # what the best sequence behind a match gains, as long as all is as it was
        for m, gain in zip(at.best_first(), told.get("known", ()), strict=False):
            if gain is not None:
                known[m] = gain, at.prices[m]
        first, top, chosen = told.get("next", 0), told.get("top", self.least_ms), told.get("chosen", -1)

        def gain_of(m: Match) -> float | None:
            return known[m][0] if m in known and known[m][1] is at.prices[m] else None

        while True:
            order = at.best_first()
            for k in range(first, len(order)):
                m = order[k]
                if spent := course.pause(
                    lambda number: {
                        **{"at": number(at), "next": k, "top": top, "chosen": chosen},  # noqa: B023
                        "known": [gain_of(m) for m in order],  # noqa: B023
                    }
                ):
                    return spent
                if gain_of(m) is None:
                    child = at.after(m, course.meter)
                    course.offer(child)
                    known[m] = at.cost_ms - deepest(at, child, self.steps - 1).cost_ms, at.prices[m]
                if known[m][0] > top:
                    top, chosen = known[m][0], k
            if chosen < 0:
                return course.meter.spent() or "no sequence gains"
            at = deepest(at, at.after(order[chosen], course.meter), self.steps - 1)
            course.offer(at)
            known = {m: v for m, v in known.items() if m in at.prices}
            first, top, chosen = 0, self.least_ms, -1
