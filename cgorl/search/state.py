"""State: a graph on the way of a search, with its matches and what each would gain, inherited where an edit is far away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from cgorl.cost.model import CostModel, Price
from cgorl.ir.graph import Graph
from cgorl.rules.matches import MatchSet, touched_by
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Meter
from cgorl.search.way import Way

Move = tuple[str, tuple[int, ...], float]


class _Rank(NamedTuple):
    """What a match is ordered and known by, as long as its price stands."""

    order: tuple[float, int]
    move: Move


class State:
    """One graph, its cost, the way that led to it and, once it is expanded, its matches priced."""

    __slots__ = ("_from", "_moves", "_order", "_ranks", "cost", "found", "graph", "prices", "way")

    found: MatchSet

    def __init__(self, graph: Graph, cost: CostModel, way: Way, origin: tuple[State, Match] | None = None) -> None:
        """A state that is not expanded: enough to know its graph and key. `origin` is what it came from."""
        self.graph, self.cost, self.way, self._from = graph, cost, way, origin
        self.prices: dict[Match, Price] = {}
        self._ranks: dict[Match, _Rank] = {}
        self._order: tuple[Match, ...] | None = None
        self._moves: frozenset[Move] | None = None

    @classmethod
    def start(cls, graph: Graph, rules: RuleSet, cost: CostModel, meter: Meter) -> State:
        """The state that a search begins with, expanded."""
        made = cls(graph, cost, Way(cost.cost_ms(graph), sum(1 for n in graph.nodes.values() if not n.constant)))
        made.found = MatchSet(graph, rules)
        return made._priced(meter, {}, {}, set())

    @property
    def cost_ms(self) -> float:
        """What the graph costs."""
        return self.way.cost_ms

    def step(self, match: Match) -> State:
        """The state after `match`, not expanded."""
        # nodes that the edit makes constant further on are counted still, not to look at the whole graph each time
        way = Way(self.cost_ms - self.prices[match].gain, self.way.size - self.fewer(match), self.way, match.rule, match.nodes)
        return State(self.graph.replace(match.edit), self.cost, way, (self, match))

    def expand(self, meter: Meter) -> State:
        """Itself with its matches listed and priced (as many as the budget allows); those far from the last edit keep their price."""
        if self._from is None or meter.spent():
            return self
        parent, match = self._from
        self._from = None  # so that the graphs passed through are not all kept
        self.found = parent.found.after(self.graph, match)
        touched = touched_by(parent.graph, self.graph, match.edit) | set(match.edit.removed)
        return self._priced(meter, parent.prices, parent._ranks, touched)

    def _priced(self, meter: Meter, old: Mapping[Match, Price], ranks: Mapping[Match, _Rank], touched: set[int]) -> State:
        if meter.spent():
            return self
        limit = math.inf if meter.budget.evaluations is None else meter.budget.evaluations
        for m in self.found:
            if meter.evaluations >= limit:
                meter.whole = False
                break
            known = old.get(m)
            if known is None or not touched.isdisjoint(known.rests):
                if meter.spent():
                    break
                known = self.cost.price(self.graph, m.edit)
            elif m in ranks:
                self._ranks[m] = ranks[m]
            self.prices[m] = known
            meter.evaluations += 1
        meter.expansions += 1
        return self

    def after(self, match: Match, meter: Meter) -> State:
        """The state after `match`, priced."""
        return self.step(match).expand(meter)

    def gain(self, match: Match) -> float:
        """What `match` saves, in ms."""
        return self.prices[match].gain

    def fewer(self, match: Match) -> int:
        """By how many nodes that run the rewrite makes the graph smaller."""
        nodes = self.graph.nodes
        return sum([not nodes[i].constant for i in match.edit.removed]) - sum([not n.constant for n in match.edit.added])

    def best_first(self) -> tuple[Match, ...]:
        """The matches, largest gain first; of equal gains the one that leaves fewer nodes, then the first of the listing."""
        if self._order is None:
            ranks = self._ranked()
            self._order = tuple(sorted(self.prices, key=lambda m: ranks[m].order))
        return self._order

    def move(self, match: Match) -> Move:
        """What tells a match from those of another graph: the same rewrite, gaining the same."""
        return self._ranked()[match].move

    def moves(self) -> frozenset[Move]:
        """All that can be done here."""
        if self._moves is None:
            self._moves = frozenset([r.move for r in self._ranked().values()])
        return self._moves

    def _ranked(self) -> Mapping[Match, _Rank]:
        """The ranks of all matches; those inherited with their prices are kept."""
        if len(self._ranks) < len(self.prices):
            for m in self.prices.keys() - self._ranks.keys():
                gain = round(self.prices[m].gain, 12)
                self._ranks[m] = _Rank((-gain, -self.fewer(m)), (m.rule.name, m.nodes, gain))
        return self._ranks
