"""Where rules match in a model, with what gain, and why one does not match at a node."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import Value
from cgorl.rules.match import explain, matches
from cgorl.rules.matches import MatchSet
from cgorl.rules.pattern import Apply, operator, walk
from cgorl.rules.rule import Rule
from cgorl.rules.rule_set import RuleSet


class PlaceError(ValueError):
    """A node or rule that is not there; the message says what is."""


@dataclass(frozen=True, slots=True)
class Place:
    """One match: its rule, the names of its nodes, what it gains in ms, and the bytes of weights it adds."""

    rule: str
    nodes: tuple[str, ...]
    gain_ms: float
    growth: int


def places(graph: Graph, rules: RuleSet, cost: CostModel) -> list[Place]:
    """All matches in `graph`, best gain first."""
    found = [
        Place(m.rule.name, tuple(node_name(graph, i) for i in m.nodes), cost.gain(graph, m.edit), m.growth) for m in MatchSet(graph, rules)
    ]
    return sorted(found, key=lambda p: -p.gain_ms)


def why_not(graph: Graph, rules: Iterable[Rule], node: str) -> list[tuple[str, str]]:
    """For the node of that name (or that gives the value of that name): rule and reason; an empty reason where it matches.

    A rule that has the node's operator further in is asked at the roots downstream, which the reason names. Rules that do
    not speak of the operator are left out unless they are all that was asked for. Raises PlaceError for no such node.
    """
    i = find_node(graph, node)
    found = [(rule.name, *_asked(graph, rule, i)) for rule in rules]
    near = [(name, why) for name, why, speaks in found if speaks]
    return near or [(name, why) for name, why, _ in found]


def _asked(graph: Graph, rule: Rule, i: int) -> tuple[str, bool]:
    """Why the rule does not match with node `i` in it, and whether it speaks of the node's operator at all."""
    op, root = graph.nodes[i].op, operator(rule.source[0]).op
    if op == root:
        return explain(rule, graph, i), True
    if op not in {t.op for term in rule.source for t in walk(term) if isinstance(t, Apply)}:
        return explain(rule, graph, i), False
    reached, frontier = set[int](), {i}
    for _ in range(rule.depth - 1):
        frontier = {u.node for j in frontier for u in graph.users[j]} - {OUTPUT}
        reached |= frontier
    for j in sorted(j for j in reached if graph.nodes[j].op == root):
        if any(i in m.nodes for m in matches(rule, graph, j)):
            return "", True
        return f"at '{node_name(graph, j)}': {explain(rule, graph, j) or 'it matches without this node'}", True
    return f"no {root} follows", True


def find_node(graph: Graph, name: str) -> int:
    """Id of the node called `name`, or that gives a value called so, or with that id. Raises PlaceError."""
    names: dict[str, int] = {}
    for i, node in graph.nodes.items():
        for text in (node.name, *node.names, f"#{i}"):
            if text:
                names.setdefault(text, i)
    if name not in names:
        near = difflib.get_close_matches(name, names, 3)
        raise PlaceError(f"there is no node '{name}' in the simplified graph" + (f"; did you mean {', '.join(near)}?" if near else ""))
    return names[name]


def node_name(graph: Graph, i: int) -> str:
    """The name of a node for people."""
    node = graph.nodes[i]
    return node.name or graph.label(Value(i))
