"""Greedy: always the rewrite that gains most, until none gains."""

from __future__ import annotations

from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchError, SearchResult
from cgorl.search.state import Best, State, anytime


@dataclass(frozen=True, slots=True)
class Greedy:
    """Takes the best rewrite again and again; ties go to the first match. Stops at a gain of `least_ms` or below."""

    least_ms: float = 1e-9

    def __post_init__(self) -> None:
        """Raises SearchError for what is no number."""
        if not isinstance(self.least_ms, int | float) or self.least_ms < 0:
            raise SearchError(f"least_ms must be a number of at least 0, not {self.least_ms!r}")

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`. Where a limit cuts a listing short, the best of what was priced is taken."""
        meter = Meter(budget, listen)

        def work(start: State, best: Best) -> str:
            state = start
            while state.prices:
                match = max(state.prices, key=state.gain)  # the first of equals
                if state.gain(match) <= self.least_ms:
                    break
                stopped = meter.spent()
                state = state.step(match) if stopped else state.after(match, meter)
                best.offer(state)
                if stopped:
                    return stopped
            return meter.spent() or "no rewrite gains"

        return anytime(graph, rules, cost, meter, work)
