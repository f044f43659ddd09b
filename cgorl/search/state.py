"""State: a graph on the way of a search, with its matches and what each would gain, inherited where an edit is far away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cgorl.cost.model import CostModel, Price
from cgorl.env.prices import Prices
from cgorl.ir.graph import Edit, Graph
from cgorl.rules.matches import MatchSet
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

    __slots__ = ("_from", "_moves", "_order", "_ranks", "cost", "expanded", "graph", "way")

    def __init__(self, graph: Graph, cost: CostModel, way: Way, origin: tuple[State, Match] | None = None) -> None:
        """A state that is not expanded: enough to know its graph and key. `origin` is what it came from."""
        self.graph, self.cost, self.way, self._from = graph, cost, way, origin
        self.expanded: Prices | None = None
        self._ranks: dict[Match, _Rank] = {}
        self._order: tuple[Match, ...] | None = None
        self._moves: frozenset[Move] | None = None

    @classmethod
    def start(cls, graph: Graph, rules: RuleSet, cost: CostModel, meter: Meter) -> State:
        """The state that a search begins with, expanded."""
        made = cls(graph, cost, Way(cost.cost_ms(graph), sum(1 for n in graph.nodes.values() if not n.constant)))
        made._price(MatchSet(graph, rules), meter, None)
        return made

    @property
    def cost_ms(self) -> float:
        """What the graph costs."""
        return self.way.cost_ms

    @property
    def prices(self) -> Mapping[Match, Price]:
        """The matches in order, with their prices: as many as the budget allowed, none before the state is expanded."""
        return {} if self.expanded is None else self.expanded

    @property
    def found(self) -> MatchSet:
        """All matches of an expanded state."""
        assert self.expanded is not None
        return self.expanded.found

    def step(self, match: Match) -> State:
        """The state after `match`, not expanded."""
        return self.passed(match, self.cost_ms - self.prices[match].gain)

    def passed(self, match: Match, cost_ms: float) -> State:
        """The same where it is known what it costs."""
        # nodes that the edit makes constant further on are counted still, not to look at the whole graph each time
        way = Way(cost_ms, self.way.size - self.fewer(match), self.way, match.rule, match.nodes)
        return State(self.graph.replace(match.edit), self.cost, way, (self, match))

    def expand(self, meter: Meter) -> State:
        """Itself with its matches listed and priced (as many as the budget allows); those far from the last edit keep their price."""
        if self._from is None or meter.spent():
            return self
        parent, match = self._from
        self._from = None  # so that the graphs passed through are not all kept
        self._price(parent.found.after(self.graph, match), meter, parent)
        return self

    def _price(self, found: MatchSet, meter: Meter, parent: State | None) -> None:
        if meter.spent():
            self.expanded = Prices(found, self.cost.price, 0)
            return
        limit = meter.budget.evaluations
        most = None if limit is None else limit - meter.evaluations
        meter.whole = meter.whole and (most is None or len(found) <= most)

        def price(graph: Graph, edit: Edit) -> Price | None:
            return None if meter.spent() else self.cost.price(graph, edit)

        before = None if parent is None else parent.expanded
        prices = self.expanded = Prices(found, price, most, before)
        meter.evaluations += len(prices)
        meter.expansions += 1
        if parent is not None:
            self._ranks = parent._ranks.copy()
            for m in (*found.listing.gone, *found.barred, *prices.renewed):
                self._ranks.pop(m, None)
            if len(prices) < len(found):
                self._ranks = {m: r for m, r in self._ranks.items() if m in prices}

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
            for m in self.prices:
                if m not in self._ranks:
                    gain = round(self.prices[m].gain, 12)
                    self._ranks[m] = _Rank((-gain, -self.fewer(m)), (m.rule.name, m.nodes, gain))
        return self._ranks
