"""Greedy: always the rewrite that gains most, until none gains."""

from __future__ import annotations

from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchError, SearchResult
from cgorl.search.trace import Step


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
        initial = cost.cost_ms(graph)
        reached: tuple[Graph, tuple[Step, ...], float] = (graph, (), initial)  # one name, so that an interrupt finds it whole
        try:
            found = MatchSet(graph, rules)
            while not (stopped := meter.spent()):
                graph, trace, now = reached
                best: Match | None = None
                best_gain = self.least_ms
                for m in found:
                    gain = cost.gain(graph, m.edit)
                    meter.evaluations += 1
                    if gain > best_gain:
                        best, best_gain = m, gain
                    if stopped := meter.spent():
                        break
                meter.expansions += 1
                meter.tell(now, len(trace))
                if best is None:
                    stopped = stopped or "no rewrite gains"
                    break
                after = graph.replace(best.edit)
                step = Step(best, tuple(range(graph.next_id, after.next_id)), now, now - best_gain)
                reached = (after, (*trace, step), now - best_gain)
                found = found.after(after, best)
        except KeyboardInterrupt:
            stopped = "interrupted"
        graph, trace, _ = reached
        return SearchResult(graph, cost.cost_ms(graph), initial, trace, meter.expansions, meter.evaluations, meter.seconds, stopped)
