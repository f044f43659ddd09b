"""Way: how a graph came about, in a few words from which it can be made again."""

from __future__ import annotations

from collections.abc import Iterator

from cgorl.ir.graph import Graph
from cgorl.rules.match import matches
from cgorl.rules.rule import Match, Rule
from cgorl.search.trace import Step, TraceError


class Way:
    """One rewrite, by rule and nodes, after another way: all that is kept of a graph that is not at hand."""

    __slots__ = ("before", "cost_ms", "length", "nodes", "rule", "size")

    def __init__(self, cost_ms: float, size: int, before: Way | None = None, rule: Rule | None = None, nodes: tuple[int, ...] = ()) -> None:
        """The way to a graph that costs `cost_ms` and runs `size` nodes; without `before`, to the first graph."""
        self.cost_ms, self.size, self.before, self.rule, self.nodes = cost_ms, size, before, rule, nodes
        self.length: int = 0 if before is None else before.length + 1

    def better(self, other: Way) -> bool:
        """Whether its graph is cheaper than the other's, or as cheap and smaller."""
        return self.cost_ms < other.cost_ms - 1e-12 or (self.cost_ms < other.cost_ms + 1e-12 and self.size < other.size)

    def behind(self) -> Iterator[Way]:
        """The ways that it goes on from, itself first, the first graph's last."""
        at: Way | None = self
        while at is not None:
            yield at
            at = at.before

    def base(self) -> Way:
        """The best graph on the way, itself included; of equals the last."""
        best = at = self
        while at.before is not None:
            at = at.before
            if at.better(best):
                best = at
        return best

    def steps(self) -> list[Way]:
        """The ways from the first rewrite to this one."""
        found: list[Way] = []
        at: Way | None = self
        while at is not None and at.before is not None:
            found.append(at)
            at = at.before
        return found[::-1]

    def match(self, there: Iterator[Match] | list[Match] | tuple[Match, ...]) -> Match:
        """The last rewrite among the matches found before it. Raises TraceError."""
        found = next((m for m in there if m.nodes == self.nodes and m.rule is self.rule), None)
        if found is None:
            name = self.rule.name if self.rule is not None else "nothing"
            raise TraceError(f"{name} does not apply at nodes {list(self.nodes)}")
        return found

    def trace(self, graph: Graph) -> tuple[Step, ...]:
        """The rewrites from `graph`, the first of the search, to the end of the way."""
        found: list[Step] = []
        for way in self.steps():
            assert way.rule is not None and way.before is not None
            match = way.match(matches(way.rule, graph, way.nodes[0]))
            after = graph.replace(match.edit)
            found.append(Step(match, tuple(range(graph.next_id, after.next_id)), way.before.cost_ms, way.cost_ms))
            graph = after
        return tuple(found)
