"""Priced: a graph with its matches, what each would gain, and what an agent sees of it; all inherited where an edit is far away."""

from __future__ import annotations

from collections import OrderedDict

from cgorl.cost.model import CostModel
from cgorl.env.match_table import MatchTable
from cgorl.env.nodes import NodeTable
from cgorl.env.prices import Prices
from cgorl.ir.graph import Graph
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet


class Priced:
    """One graph of an episode, immutable. `touched` are its nodes that the edit which led to it changed."""

    __slots__ = ("_cost", "cost_ms", "found", "graph", "prices", "seen", "table", "touched")

    def __init__(self, graph: Graph, rules: RuleSet, cost: CostModel) -> None:
        """Lists and prices all matches of the first graph of an episode."""
        self.graph, self._cost, self.cost_ms = graph, cost, cost.cost_ms(graph)
        self.found = MatchSet(graph, rules)
        self.prices = Prices(self.found, cost.price)
        self.table = NodeTable(graph, cost, 100 / self.cost_ms if self.cost_ms else 0.0)
        self.seen = MatchTable(self.prices, self.cost_ms)
        self.touched: frozenset[int] = frozenset()

    def after(self, match: Match) -> Priced:
        """The graph after `match`."""
        made = object.__new__(Priced)
        made._cost, made.cost_ms = self._cost, self.cost_ms - self.prices[match].gain
        made.graph = self.graph.replace(match.edit)
        made.found = self.found.after(made.graph, match)
        made.prices = Prices(made.found, self._cost.price, before=self.prices)
        made.touched = frozenset(made.found.touched)
        made.table = self.table.after(made.graph, made.touched)
        made.seen = self.seen.after(made.prices)
        return made

    def gain(self, match: Match) -> float:
        """What `match` saves, in ms."""
        return self.prices[match].gain


class Recall:
    """Performs rewrites and remembers what came of the latest: episodes that begin alike need the engine once."""

    def __init__(self, size: int = 1000) -> None:
        """Remembers so many graphs."""
        self._size = size
        self._known: OrderedDict[tuple[Priced, Match], Priced] = OrderedDict()

    def after(self, at: Priced, match: Match) -> Priced:
        """As `at.after(match)`."""
        found = self._known.get((at, match))
        if found is None:
            found = self._known[at, match] = at.after(match)
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end((at, match))
        return found
