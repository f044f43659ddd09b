"""Recipe: the rewrite that a rule makes of some nodes, worked out once for all places that look alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from cgorl.ir.build import Builder, face, named
from cgorl.ir.forms import form
from cgorl.ir.graph import Edit, Graph, GraphError
from cgorl.ir.node import Node, Value
from cgorl.rules.conditions import ROUND
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.matcher import Found
from cgorl.rules.pattern import Apply, Var, walk
from cgorl.rules.rule import Rule
from cgorl.rules.target import check, results

_SIZE = 50_000


def worked_out(rule: Rule, graph: Graph, read: Found) -> Edit:
    """The rewrite that the rule makes of a reading. Raises NoMatch with the reason, GraphError, or IndexError where there is none."""
    builder = Builder(graph)
    rewired = _rewired(rule, rule.conditions, graph, read, builder)
    for i, ports in _partly(graph, read.roots, rewired):
        if any(u.port >= ports for u in graph.users[i]):
            raise NoMatch(f"another result of '{graph.label(Value(i))}' is used")
    return builder.edit({o: r for o, r in rewired.items() if o != r})


def _rewired(rule: Rule, conditions: tuple[Apply, ...], graph: Graph, read: Found, builder: Builder) -> dict[Value, Value]:
    """Old results -> new ones: one a root, or all of a single root's. Raises as `worked_out`."""
    at = Context(graph, builder)
    check(conditions, at, read.env)
    found, roots = results(rule, at, read.env), read.roots
    if not all(isinstance(r, Value) for r in found):
        raise NoMatch("the target is no value")
    old = [Value(i) for i in roots] if len(roots) > 1 else [Value(roots[0], p) for p in range(len(found))]
    if len(old) != len(found):
        raise NoMatch(f"the target has {len(found)} results for {len(old)} roots")
    if len(roots) == 1 and len(found) > len(graph.nodes[roots[0]].types):
        raise NoMatch(f"'{graph.label(Value(roots[0]))}' has not so many results")
    return dict(zip(old, found, strict=True))


def _partly(graph: Graph, roots: tuple[int, ...], rewired: Mapping[Value, Value]) -> Iterator[tuple[int, int]]:
    """Roots with more results than are spoken of, and how many those are."""
    for i in roots:
        ports = 1 if len(roots) > 1 else len(rewired)
        if ports < len(graph.nodes[i].types):
            yield i, ports


class Recipe(NamedTuple):
    """An Edit in which old nodes go by numbers.

    `partly` are roots of which so many results only are spoken of, `kept` the old nodes that are read afterwards.
    """

    added: tuple[_Added, ...]
    rewired: tuple[tuple[Value, Value], ...]
    partly: tuple[tuple[int, int], ...]
    kept: tuple[int, ...]


class _Added(NamedTuple):
    """A new node without names. `near`: it reads old ones. `takes`: which of its results takes the place of which old one."""

    node: Node
    near: bool
    takes: tuple[tuple[int, Value], ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What comes of it rests on the contents of node number `of`."""

    of: int
    known: dict[Any, Recipe | _Asked | None]


_EACH_TIME = Recipe((), (), (), ())
"""Stands for what cannot be remembered: it hangs on how weights were made."""


class _Names(NamedTuple):
    """What the names in a rule's source stand for; the conditions that are remembered, and those to be looked at each time."""

    values: tuple[str, ...]
    labels: tuple[str, ...]
    attributes: tuple[str, ...]
    once: tuple[Apply, ...]
    each_time: tuple[Apply, ...]


class Recipes:
    """Remembers what came of the readings of rules (which have names of their own), be it nothing."""

    def __init__(self) -> None:
        """Knows none."""
        self._known: dict[Any, Recipe | _Asked | None] = {}
        self._names: dict[str, _Names] = {}
        self._count = 0

    def edit(self, rule: Rule, graph: Graph, read: Found) -> Edit | None:
        """As `worked_out`; None or an error where there is none."""
        names = self._names.get(rule.name)
        if names is None:
            names = self._names[rule.name] = _names(rule)
        if names.each_time:
            check(names.each_time, Context(graph, Builder(graph)), read.env)
        key, ids = _look(rule.name, graph, read, names)
        known = self._known.get(key, key)
        while type(known) is _Asked:
            known = known.known.get(graph.nodes[ids[known.of]].tensor, key)
        if known is key:
            known = self._learn(key, rule, names, graph, read, ids)
        if known is None:
            return None
        assert isinstance(known, Recipe)
        return worked_out(rule, graph, read) if known is _EACH_TIME else _performed(known, graph, ids)

    def _learn(self, key: tuple[Any, ...], rule: Rule, names: _Names, graph: Graph, read: Found, ids: list[int]) -> Recipe | None:
        builder, numbers = Builder(graph), {i: k for k, i in enumerate(ids)}
        made: Recipe | None = None
        try:
            rewired = _rewired(rule, names.once, graph, read, builder)
            made = _numbered(
                builder.edit({o: r for o, r in rewired.items() if o != r}), tuple(_partly(graph, read.roots, rewired)), numbers
            )
        except (NoMatch, GraphError, IndexError):
            pass
        if builder.inside or any(v.node not in numbers for v in builder.asked):
            made = _EACH_TIME
            builder.asked.clear()
        if self._count >= _SIZE:
            self._known.clear()
            self._count = 0
        self._count += 1
        table: dict[Any, Recipe | _Asked | None] = self._known
        step: Any = key
        for value, tensor in builder.asked.items():
            asked = table.get(step)
            if not isinstance(asked, _Asked):
                asked = table[step] = _Asked(numbers[value.node], {})
            table, step = asked.known, tensor
        table[step] = made
        return made


def _numbered(edit: Edit, partly: tuple[tuple[int, int], ...], numbers: Mapping[int, int]) -> Recipe:
    """The edit with old nodes by number; `_EACH_TIME` if it speaks of others."""

    def number(v: Value) -> Value:
        return v if v.node < 0 else Value(numbers[v.node], v.port)

    try:
        added = []
        for k, node in enumerate(edit.added):
            takes = tuple((new.port, number(old)) for old, new in edit.rewired.items() if new.node == -2 - k)
            inputs = tuple(None if v is None else number(v) for v in node.inputs)
            plain = Node(node.op, node.domain, inputs, node.attrs, node.types, node.constant)
            _ = plain.signature  # for all that will be made of it
            added.append(_Added(plain, any(v is not None and v.node >= 0 for v in node.inputs), takes))
        rewired = tuple((number(old), number(new)) for old, new in edit.rewired.items())
        kept = {v.node for v in (*(v for a in added for v in a.node.reads()), *(new for _, new in rewired)) if v.node >= 0}
        return Recipe(tuple(added), rewired, tuple((numbers[i], ports) for i, ports in partly), tuple(kept))
    except KeyError:
        return _EACH_TIME


def _performed(recipe: Recipe, graph: Graph, ids: list[int]) -> Edit | None:
    """The edit that a recipe is where its nodes have these ids."""
    nodes = graph.nodes
    for k, ports in recipe.partly:
        if any(u.port >= ports for u in graph.users[ids[k]]):
            return None
    added: list[Node] = []
    for node, near, takes in recipe.added:
        if near or takes:
            inputs = tuple([v if v is None or v.node < 0 else Value(ids[v.node], v.port) for v in node.inputs]) if near else node.inputs
            name, results = "", ("",) * len(node.types) if takes else ()
            for port, old in takes:
                name, results = named(name, results, port, nodes[ids[old.node]], old.port)
            memo = {"signature": node.memo["signature"]}
            node = Node(node.op, node.domain, inputs, node.attrs, node.types, node.constant, name, results, (), None, memo)
        added.append(node)
    rewired = {Value(ids[o.node], o.port): r if r.node < 0 else Value(ids[r.node], r.port) for o, r in recipe.rewired}
    return Edit(graph.dying({ids[k] for k in recipe.kept}, rewired), tuple(added), rewired)


def _names(rule: Rule) -> _Names:
    terms = [t for root in rule.source for t in walk(root)]
    operators = [t for t in terms if isinstance(t, Apply)]
    values = {a.name for t in operators for a in t.args if isinstance(a, Var)} - {"_"}
    labels = {t.label for t in operators} - {""}
    spoken = {a.name for t in operators for _, a in t.attrs if isinstance(a, Var)} - {"_"}
    once = tuple(c for c in rule.conditions if c.op not in ROUND)
    each_time = tuple(c for c in rule.conditions if c.op in ROUND)
    return _Names(tuple(sorted(values)), tuple(sorted(labels)), tuple(sorted(spoken)), once, each_time)


def _look(rule: str, graph: Graph, read: Found, names: _Names) -> tuple[tuple[Any, ...], list[int]]:
    """All that a rewrite may rest on but contents, ids replaced by numbers in the order in which they are met; the ids in that order."""
    env, nodes = read.env, graph.nodes
    numbers: dict[int, int] = {}
    key: list[Any] = [rule, graph.opset, len(read.roots)]
    for i in read.nodes:
        numbers[i] = len(numbers)
        key.append(_kind(graph, i))
    for i in read.roots:
        key.append(numbers[i])
    for name in names.values:
        held = env.get(name)
        if held is None:
            key.append(None)
            continue
        for v in (held,) if type(held) is Value else held:
            if v is None:
                key.append(None)
                continue
            i = v.node
            number = numbers.get(i)
            if number is None:
                number = numbers[i] = len(numbers)
                node = nodes[i]
                key.append(node.memo.get("face") or _face(node))
            key.append(number)
            key.append(v.port)
        key.append(name)
    for name in names.labels:
        held = env[name]
        key.append(numbers[held] if type(held) is int else tuple([numbers[i] for i in held]))
    key += [env[name] for name in names.attributes]
    return tuple(key), list(numbers)


_NUMBERS: dict[Any, int] = {}
_SERIAL = count(1)


def _number(about: Any) -> int:
    """A number for this and what equals it."""
    found = _NUMBERS.get(about)
    if found is None:
        if len(_NUMBERS) >= _SIZE:
            _NUMBERS.clear()
        found = _NUMBERS[about] = next(_SERIAL)
    return found


def _face(node: Node) -> int:
    found = node.memo["face"] = _number(face(node))
    return found


def _kind(graph: Graph, i: int) -> int:
    """A number for a matched node: operator, attributes, types."""
    node = graph.nodes[i]
    found: int | None = node.memo.get("kind")
    if found is None:
        shape = form(graph, i)
        plain = all(isinstance(x, int | float | str | None) for v in shape.attrs.values() for x in (v if isinstance(v, tuple) else (v,)))
        about = (node.op, len(node.inputs), repr(shape.attrs), face(node))
        found = node.memo["kind"] = _number(about) if plain else next(_SERIAL)
    return found
