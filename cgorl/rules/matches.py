"""MatchSet: all matches of a rule set in one graph, kept up to date through edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgorl.ir.graph import OUTPUT, Edit, Graph
from cgorl.rules.match import matches, type_bytes
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet


class MatchSet:
    """All matches of `rules` in `graph`: a mapping from root node to its matches, in a fixed order.

    Immutable; `after` gives the set of the edited graph and looks again only round the edit. Matches whose weights would
    take the model past `limit` bytes are passed over by iteration.
    """

    def __init__(self, graph: Graph, rules: RuleSet, limit: int | None = None) -> None:
        """Scans the whole graph. `limit` defaults to what `rules` allow the graph's weights to come to."""
        self.graph, self.rules = graph, rules
        self.weight_bytes = constant_bytes(graph)
        self.limit = rules.limit(self.weight_bytes) if limit is None else limit
        self._at: dict[int, list[Match]] = {}
        self._scan(graph.nodes)

    def _scan(self, roots: Iterable[int]) -> None:
        nodes, index = self.graph.nodes, self.rules.by_root
        for i in roots:
            node = nodes[i]
            if node.domain == "" and (rules := index.get(node.op)):
                found = [m for rule in rules for m in matches(rule, self.graph, i)]
                if found:
                    self._at[i] = found

    def after(self, graph: Graph, edit: Edit) -> MatchSet:
        """The set for `graph`, which is `self.graph.replace(edit)`; equal to a full scan of it."""
        made = object.__new__(MatchSet)
        made.graph, made.rules, made.limit = graph, self.rules, self.limit
        made._at = {i: m for i, m in self._at.items() if i in graph.nodes}
        stale = affected(self.graph, graph, edit, self.rules.reach)
        for i in stale:
            made._at.pop(i, None)
        made._scan(sorted(stale))
        made.weight_bytes = constant_bytes(graph)
        return made

    def __iter__(self) -> Iterator[Match]:
        """The matches, by root id, rules in their order; those past the growth limit left out."""
        room = self.limit - self.weight_bytes
        for i in sorted(self._at):
            for m in self._at[i]:
                if m.growth <= 0 or m.growth <= room:
                    yield m

    def __len__(self) -> int:
        """The number of matches."""
        return sum(1 for _ in self)


def affected(before: Graph, after: Graph, edit: Edit, reach: int) -> set[int]:
    """Nodes of `after` whose matches may differ from `before`'s: those within `reach` uses downstream of the edit."""
    touched = set(range(before.next_id, after.next_id))
    for i in edit.removed:
        touched.update(v.node for v in before.nodes[i].reads() if not before.nodes[v.node].is_constant)
    for i in range(before.next_id, after.next_id):
        touched.update(v.node for v in after.nodes[i].reads() if not after.nodes[v.node].is_constant)
    for old, new in edit.rewired.items():
        touched.update(u.node for u in before.users[old.node])
        if new.node >= 0:
            touched.add(new.node)
    touched.discard(OUTPUT)
    touched &= after.nodes.keys()
    frontier = touched
    for _ in range(reach):
        frontier = {u.node for i in frontier for u in after.users[i]} - touched - {OUTPUT}
        touched |= frontier
    return touched


def constant_bytes(graph: Graph) -> int:
    """Bytes of the constants that the graph's running nodes read: the weights of the saved model."""
    found = graph.memo.get("constant_bytes")
    if found is None:
        seen = {v for n in graph.nodes.values() if not n.constant for v in n.reads() if graph.nodes[v.node].constant}
        seen.update(v for v in graph.outputs if graph.nodes[v.node].constant)
        found = graph.memo["constant_bytes"] = sum(type_bytes(graph.type(v)) for v in seen)
    return found
