"""Finding a rule in a graph: its matches, the edit that each stands for, and why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping

from cgorl.ir.graph import OUTPUT, Edit, Graph, GraphError
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.tensor import element_bits
from cgorl.rules.context import NoMatch
from cgorl.rules.matcher import Found, Matcher, Why
from cgorl.rules.pattern import operator
from cgorl.rules.recipe import Recipes, worked_out
from cgorl.rules.rule import Match, Rule


def matches(
    rule: Rule, graph: Graph, root: int, known: Mapping[tuple[int, ...], Match] | None = None, recipes: Recipes | None = None
) -> list[Match]:
    """All matches of `rule` whose first root is node `root`, in a fixed order; those `known`, by their nodes, are not made anew.

    With `recipes`, rewrites are not worked out again where the nodes are like some that were seen before.
    """
    found: list[Match] = []
    seen: set[tuple[int, ...]] = set()
    for read in Matcher(graph).read(rule, root):
        if read.nodes in seen:
            continue
        made = known.get(read.nodes) if known else None
        made = made or _finish(rule, graph, read, recipes)
        if made is not None:
            seen.add(read.nodes)
            found.append(made)
    return found


def explain(rule: Rule, graph: Graph, root: int) -> str:
    """In words, why `rule` does not match at node `root`; the empty string if it does."""
    node, wanted = graph.nodes[root], operator(rule.source[0])
    if node.op != wanted.op or node.domain != "":
        return f"'{graph.label(Value(root))}' is {node.op}, not {wanted.op}"
    why = Why()
    for read in Matcher(graph, why).read(rule, root):
        made = _finish(rule, graph, read, None, why)
        if made is not None:
            if not closes_cycle(graph, made):
                return ""
            why.note(len(read.nodes) + 3, "merging would close a cycle: one of its nodes depends on another")
    return why.text


def closes_cycle(graph: Graph, match: Match) -> bool:
    """Whether a value that the match reads depends on one of its roots; then it cannot be performed."""
    roots, inside = set(match.roots), set(match.nodes)
    stack = [v.node for v in match.borders]
    seen: set[int] = set()
    while stack:
        i = stack.pop()
        if i in roots:
            return True
        if i not in seen:
            seen.add(i)
            stack.extend(v.node for v in graph.nodes[i].reads() if v.node not in seen and not graph.nodes[v.node].constant)
    return bool(seen & (inside - roots)) and any(v.node in inside for v in match.borders)


def _finish(rule: Rule, graph: Graph, read: Found, recipes: Recipes | None, why: Why | None = None) -> Match | None:
    """The match that a reading describes, if its nodes are its own and the conditions hold."""
    env, nodes = read.env, read.nodes
    free = {env[label] for label in rule.shared}
    for i in nodes:
        if i in read.roots or i in free:
            continue
        for use in graph.users[i]:
            if use.node not in nodes:
                _note(why, len(nodes) + 1, f"'{graph.label(Value(i, use.port))}' has another user")
                return None
    for i in read.roots:
        if graph.nodes[i].constant:
            _note(why, len(nodes) + 1, f"'{graph.label(Value(i))}' is constant, which costs nothing")
            return None
    try:
        edit = worked_out(rule, graph, read) if recipes is None else recipes.edit(rule, graph, read)
    except (NoMatch, GraphError, IndexError) as e:  # an index past the rank of a value: the rule is not meant for it
        _note(why, len(nodes) + 2, str(e))
        return None
    if edit is None:
        return None
    borders = _borders(graph, nodes) if len(read.roots) > 1 else ()
    return Match(rule, nodes, env, edit, growth(graph, edit), borders, read.roots)


def _borders(graph: Graph, nodes: tuple[int, ...]) -> tuple[Value, ...]:
    """The values from outside that running nodes of a match read; none if it is one alone, which can close no cycle."""
    inside = set(nodes)
    found = {v for i in nodes for v in graph.nodes[i].reads() if v.node not in inside and not graph.nodes[v.node].constant}
    return tuple(sorted(found)) if len(found) > 1 else ()


def _note(why: Why | None, far: int, text: str) -> None:
    if why is not None:
        why.note(far, text)


def growth(graph: Graph, edit: Edit) -> int:
    """Bytes by which the weights of the saved model grow: what running nodes read of constants, after less before."""

    def node(v: Value) -> Node:
        return graph.nodes[v.node] if v.node >= 0 else edit.added[-2 - v.node]

    dead = set(edit.removed)
    read = {v for n in edit.added if not n.constant for v in n.reads() if node(v).constant}
    read |= {new for new in edit.rewired.values() if node(new).constant}
    new = sum(type_bytes(node(v).types[v.port]) for v in read if v.node < 0 or not _runs(graph, v, frozenset()))
    lost = {v for i in dead if not graph.nodes[i].constant for v in graph.nodes[i].reads() if graph.nodes[v.node].constant}
    return new - sum(type_bytes(graph.type(v)) for v in lost if v not in read and not _runs(graph, v, dead))


def _runs(graph: Graph, value: Value, dead: set[int] | frozenset[int]) -> bool:
    """Whether a running node or graph output, not in `dead`, reads the constant `value`."""
    return any(
        u.port == value.port and (u.node == OUTPUT or (u.node not in dead and not graph.nodes[u.node].constant))
        for u in graph.users[value.node]
    )


def type_bytes(kind: TensorType | None) -> int:
    """Bytes of a tensor of a known type; 0 where it is not known."""
    if kind is None or not kind.static:
        return 0
    return math.prod(d for d in kind.shape or () if isinstance(d, int)) * element_bits(kind.dtype) // 8
