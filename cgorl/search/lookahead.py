"""Lookahead: the best sequence of up to three rewrites, taken whole, again and again."""

from __future__ import annotations

from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.state import Best, Price, State, anytime


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Tries every match, and behind it what it made possible or changed, up to `steps` deep; takes the best sequence.

    A later step that an earlier one did not touch is left out: its gain is its own, and another round takes it.
    """

    steps: int = 3
    least_ms: float = 1e-9

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter = Meter(budget, listen)

        def deepest(state: State, left: int, best: Best) -> State:
            """The cheapest state that up to `left` more steps lead to, each made possible or changed by the one before."""
            found = state
            assert state.parent is not None
            for m in state.best_first() if left else ():
                if m not in state.parent.prices and not meter.spent():
                    child = state.after(m, meter)
                    best.offer(child)
                    found = min(found, deepest(child, left - 1, best), key=lambda s: s.cost_ms)
            return found

        def work(start: State, best: Best) -> str:
            at = start
            known: dict[Match, tuple[float, Price]] = {}  # what the best sequence behind a match gains, as long as all is as it was
            while True:
                top, chosen = self.least_ms, None
                for m in at.best_first():
                    if spent := meter.spent():
                        return spent
                    if m not in known or known[m][1] is not at.prices[m]:
                        child = at.after(m, meter)
                        best.offer(child)
                        known[m] = at.cost_ms - deepest(child, self.steps - 1, best).cost_ms, at.prices[m]
                    if known[m][0] > top:
                        top, chosen = known[m][0], m
                if chosen is None:
                    return "no sequence gains"
                at = deepest(at.after(chosen, meter), self.steps - 1, best)

        return anytime(graph, rules, cost, meter, work)
