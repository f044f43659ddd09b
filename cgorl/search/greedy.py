"""Greedy: always the rewrite that gains most, until none gains."""

from __future__ import annotations

from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.trace import Step


@dataclass(frozen=True, slots=True)
class Greedy:
    """Takes the best rewrite again and again; ties go to the first match. Stops at a gain of `least_ms` or below."""

    least_ms: float = 1e-9

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter = Meter(budget, listen)
        initial = now = cost.cost_ms(graph)
        trace: list[Step] = []
        stopped = "no rewrite gains"
        try:
            found = MatchSet(graph, rules)
            while True:
                meter.expansions += 1
                best: Match | None = None
                best_gain = self.least_ms
                for m in found:
                    gain = cost.gain(graph, m.edit)
                    meter.evaluations += 1
                    if gain > best_gain:
                        best, best_gain = m, gain
                meter.tell(now, len(trace))
                if best is None:
                    break
                if stopped := meter.spent():
                    break
                after = graph.replace(best.edit)
                trace.append(Step(best, tuple(range(graph.next_id, after.next_id)), now, now - best_gain))
                found = found.after(after, best.edit)
                graph, now = after, now - best_gain
        except KeyboardInterrupt:
            stopped = "interrupted"
        total = cost.cost_ms(graph)
        return SearchResult(
            graph, total, initial, tuple(trace), meter.expansions, meter.evaluations, meter.seconds, stopped or "no rewrite gains"
        )
