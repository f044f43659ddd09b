"""Greedy: always the rewrite that gains most, until none gains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.checkpoint import Checkpoint
from cgorl.search.course import Course, anytime
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult, check


@dataclass(frozen=True, slots=True)
class Greedy:
    """Takes the best rewrite again and again; of equal gains the one that leaves fewer nodes, then the first.

    Stops when the best gains `least_ms` or less, unless it costs nothing and leaves fewer nodes. Memory: two graphs.
    """

    least_ms: float = 1e-9

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"least_ms": 0.0})

    def __call__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel,
        budget: Budget,
        listen: Listener | None = None,
        checkpoint: Path | None = None,
    ) -> SearchResult:
        """Runs the search; see `Searcher`. Where a limit cuts a listing short, the best of what was priced is taken."""
        meter, kept = Meter(budget, listen), Checkpoint(checkpoint, self) if checkpoint else None

        def work(course: Course) -> str:
            state = course.at()
            while state.prices:
                match = state.best_first()[0]
                if state.gain(match) <= self.least_ms and not (state.gain(match) > -1e-12 and state.fewer(match) > 0):
                    break
                stopped = course.pause(lambda number: {"at": number(state)})  # noqa: B023
                state = state.step(match) if stopped else state.after(match, meter)
                course.offer(state)
                if stopped:
                    return stopped
            return meter.spent() or "no rewrite gains"

        return anytime(graph, rules, cost, meter, work, kept)
