"""State: a graph on the way of a search, with its matches and what each would gain, inherited where an edit is far away."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

from cgorl.cost.model import CostModel, neighbourhood
from cgorl.ir.graph import OUTPUT, Edit, Graph
from cgorl.rules.matches import MatchSet, touched_by
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Meter, SearchResult
from cgorl.search.trace import Step

Price: TypeAlias = tuple[float, frozenset[int]]
"""What a match gains, and the nodes that this depends on."""


class State:
    """One distinct graph: its matches priced, its cost, and the match that led to it from `parent`."""

    __slots__ = ("_cost", "cost_ms", "depth", "found", "graph", "match", "parent", "prices")

    depth: int

    def __init__(self, found: MatchSet, cost: CostModel, cost_ms: float, parent: State | None, match: Match | None) -> None:
        """A state whose matches are not priced yet."""
        self.graph, self.found, self._cost, self.cost_ms = found.graph, found, cost, cost_ms
        self.parent, self.match = parent, match
        self.depth = 0 if parent is None else parent.depth + 1
        self.prices: dict[Match, Price] = {}

    @classmethod
    def start(cls, graph: Graph, rules: RuleSet, cost: CostModel, meter: Meter) -> State:
        """The state that a search begins with, priced."""
        return cls(MatchSet(graph, rules), cost, cost.cost_ms(graph), None, None).expand(meter)

    def step(self, match: Match) -> State:
        """The state after `match`, not priced yet: enough to know its graph and key."""
        graph = self.graph.replace(match.edit)
        return State(self.found.after(graph, match), self._cost, self.cost_ms - self.prices[match][0], self, match)

    def expand(self, meter: Meter) -> State:
        """Itself with its matches priced (as many as the budget allows); those far from the last edit keep their price."""
        if meter.spent():
            return self
        old: dict[Match, Price] = {}
        touched: set[int] = set()
        if self.parent is not None and self.match is not None:
            old, edit = self.parent.prices, self.match.edit
            touched = touched_by(self.parent.graph, self.graph, edit) | set(edit.removed)
        for m in self.found:
            if meter.spent():
                break
            known = old.get(m)
            self.prices[m] = known if known is not None and touched.isdisjoint(known[1]) else self._price(m.edit)
            meter.evaluations += 1
        meter.expansions += 1
        return self

    def after(self, match: Match, meter: Meter) -> State:
        """The state after `match`, priced."""
        return self.step(match).expand(meter)

    def gain(self, match: Match) -> float:
        """What `match` saves, in ms."""
        return self.prices[match][0]

    def best_first(self) -> list[Match]:
        """The matches, largest gain first; equal gains in the order of the listing."""
        return sorted(self.prices, key=lambda m: -self.prices[m][0])

    def _price(self, edit: Edit) -> Price:
        near, _ = neighbourhood(self.graph, edit)
        nodes, users = self.graph.nodes, self.graph.users
        wide = set(near)
        for i in near:
            wide.update(v.node for v in nodes[i].reads())
            wide.update(u.node for u in users[i])
        wide.discard(OUTPUT)
        return self._cost.gain(self.graph, edit), frozenset(wide)

    def path(self) -> list[State]:
        """The states from the start to this one."""
        found: list[State] = []
        at: State | None = self
        while at is not None:
            found.append(at)
            at = at.parent
        return found[::-1]

    def trace(self) -> tuple[Step, ...]:
        """The rewrites that lead here."""
        path = self.path()
        return tuple(
            Step(b.match, tuple(range(a.graph.next_id, b.graph.next_id)), a.cost_ms, b.cost_ms)
            for a, b in pairwise(path)
            if b.match is not None
        )


class Best:
    """The best state so far, kept through interrupts."""

    def __init__(self, state: State, meter: Meter) -> None:
        """Begins with `state`."""
        self.state, self._meter = state, meter

    def offer(self, state: State) -> bool:
        """Takes `state` if it is better; tells the listener either way."""
        better = state.cost_ms < self.state.cost_ms - 1e-12 or (
            state.cost_ms < self.state.cost_ms + 1e-12 and len(state.graph.nodes) < len(self.state.graph.nodes)
        )
        if better:
            self.state = state
        self._meter.tell(self.state.cost_ms, self.state.depth)
        return better


def anytime(graph: Graph, rules: RuleSet, cost: CostModel, meter: Meter, work: Callable[[State, Best], str]) -> SearchResult:
    """The result of a search from `graph`: `work` offers states to the best and says what stopped it; an interrupt keeps the best."""
    initial = cost.cost_ms(graph)
    best: Best | None = None
    try:
        start = State.start(graph, rules, cost, meter)
        best = Best(start, meter)
        best.offer(start)
        stopped = work(start, best)
    except KeyboardInterrupt:
        stopped = "interrupted"
    if best is None:
        return SearchResult(graph, initial, initial, (), meter.expansions, meter.evaluations, meter.seconds, stopped)
    end = best.state
    return SearchResult(
        end.graph, cost.cost_ms(end.graph), initial, end.trace(), meter.expansions, meter.evaluations, meter.seconds, stopped
    )
