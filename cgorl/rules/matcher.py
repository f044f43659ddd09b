"""Reading a rule's source into a graph: which nodes and values its names can stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cgorl.ir.forms import NEUTRAL, Form, form
from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import Node, Value
from cgorl.ir.ops import COMMUTATIVE, defaults
from cgorl.rules.pattern import Apply, Each, Lit, Term, Var, depth, names, operator, stars
from cgorl.rules.rule import Rule

Env = Mapping[str, Any]
"""What names stand for: values, attributes, dicts of attributes, ids of labelled nodes; tuples of them for `*names`."""

_INSIGNIFICANT = frozenset({"kernel_shape"})
"""Attributes that repeat what a weight's shape says; a source need not mention them."""

_PARTNERS = 16
"""A node is paired with so many of its like at most; the set of all is listed whatever its size."""

_MANY = frozenset({"Split"})
"""Operators whose results patterns speak of all together."""


class Why:
    """Remembers the reason given by the attempt that got furthest."""

    def __init__(self) -> None:
        """Knows no reason yet."""
        self.text, self._far = "no reason recorded", -1

    def note(self, far: int, text: str) -> None:
        """Keeps `text` if no attempt got further than `far`."""
        if far > self._far:
            self.text, self._far = text, far


@dataclass(frozen=True, slots=True)
class Found:
    """A reading of a source: names, the nodes matched, and which of them are roots."""

    env: Env
    nodes: tuple[int, ...]
    roots: tuple[int, ...]


@dataclass(slots=True)
class Matcher:
    """Reads sources in one graph; with `why`, says where the attempts failed."""

    graph: Graph
    why: Why | None = None
    _labels: dict[int, str] = field(default_factory=dict)

    def read(self, rule: Rule, root: int) -> Iterator[Found]:
        """The readings of the rule's source whose first root is `root`, in a fixed order."""
        first = rule.source[0]
        if isinstance(first, Each):
            yield from self._alike(first.inner, root)
            return
        for env, nodes in self._node(operator(first), root, {}, ()):
            yield from self._others(rule.source[1:], Found(env, nodes, (root,)))

    def first_roots(self, rule: Rule, place: int, root: int) -> set[int]:
        """Nodes that may be the first root of a match whose root number `place` is `root` (of alike ones: any that follows)."""
        pattern = operator(rule.source[place])
        alike = isinstance(rule.source[0], Each)
        found: set[int] = set()
        for env, _ in self._node(pattern, root, {}, ()):
            if alike:
                starred = stars(pattern)
                env = {k: v for k, v in env.items() if k not in starred and k != pattern.label}
            found.update(self._candidates(operator(rule.source[0]), env))
        return {i for i in found if i < root} if alike else found

    def _others(self, roots: Sequence[Term], found: Found) -> Iterator[Found]:
        if not roots:
            yield found
            return
        pattern = operator(roots[0])
        here = self._candidates(pattern, found.env)
        if not here:
            self._note(found.nodes, f"there is no further {pattern.op} on the same values")
        for i in here:
            if i in found.roots:
                continue
            for env, nodes in self._node(pattern, i, found.env, found.nodes):
                yield from self._others(roots[1:], Found(env, nodes, (*found.roots, i)))

    def _alike(self, pattern: Apply, root: int) -> Iterator[Found]:
        """Sets of nodes that read as `pattern` with the same unstarred names: each pair once (see `_PARTNERS`), and the largest set."""
        starred = stars(pattern)
        for env, nodes in self._node(pattern, root, {}, ()):
            shared = {k: v for k, v in env.items() if k not in starred and k != pattern.label}
            group = [(root, env, nodes)]
            for i in self._candidates(pattern, shared):
                if i != root and (read := next(self._node(pattern, i, shared, ()), None)) is not None:
                    group.append((i, *read))
            if len(group) < 2:
                self._note(nodes, f"there is no second {pattern.op} like it on the same values")
                continue
            later = sorted((g for g in group if g[0] > root), key=lambda g: g[0])
            sets = [[group[0], g] for g in later[:_PARTNERS]]
            if len(later) == len(group) - 1 and len(group) > 2:
                sets.insert(0, [group[0], *later])
            for chosen in sets:
                many = {k: tuple(e[k] for _, e, _ in chosen) for k in starred}
                if pattern.label:
                    many[pattern.label] = tuple(i for i, _, _ in chosen)
                yield Found({**shared, **many}, tuple(dict.fromkeys(n for _, _, ns in chosen for n in ns)), tuple(i for i, _, _ in chosen))

    def _candidates(self, pattern: Apply, env: Env) -> list[int]:
        """Nodes that may be `pattern`, given that some of its values are bound: those of its operator downstream of them."""
        nodes, users = self.graph.nodes, self.graph.users
        bound = [v for n in names(pattern) if isinstance(v := env.get(n), Value)]
        if not bound:
            return sorted(i for i, n in nodes.items() if n.op == pattern.op)
        start = min(bound, key=lambda v: (len(users[v.node]), v))  # a reading uses all of them: the one with fewest users will do
        found: set[int] = set()
        frontier = {u.node for u in users[start.node] if u.port == start.port} - {OUTPUT}
        for _ in range(depth(pattern)):
            found |= frontier
            frontier = {u.node for i in frontier for u in users[i]} - {OUTPUT} - found
        return sorted(i for i in found if nodes[i].op == pattern.op)

    def _value(self, term: Term, value: Value | None, env: Env, nodes: tuple[int, ...]) -> Iterator[tuple[Env, tuple[int, ...]]]:
        """The ways to read `term` as `value`: extended names and matched nodes."""
        if isinstance(term, Var):
            if value is None and not term.optional:
                self._note(nodes, f"operand '{term.name}' is absent")
            elif term.name == "_":
                yield env, nodes
            elif term.name not in env:
                yield {**env, term.name: value}, nodes
            elif env[term.name] == value:
                yield env, nodes
            else:
                self._note(nodes, f"'{term.name}' would stand for two different values")
            return
        if not isinstance(term, Apply) or value is None:
            self._note(nodes, f"operand {term} is absent" if value is None else f"{term} is no pattern for a value")
            return
        if value.port != 0 or self.graph.nodes[value.node].op != term.op:
            if self.why is not None:
                self._note(nodes, f"'{self.graph.label(value)}' is {self.graph.nodes[value.node].op}, not {term.op}")
            return
        yield from self._node(term, value.node, env, nodes)

    def _node(self, term: Apply, i: int, env: Env, nodes: tuple[int, ...]) -> Iterator[tuple[Env, tuple[int, ...]]]:
        node = self.graph.nodes[i]
        if node.op != term.op or node.domain != "":
            if self.why is not None:
                self._note(nodes, f"'{self.graph.label(Value(i))}' is {node.op}, not {term.op}")
            return
        shape = form(self.graph, i)
        if shape.missing:
            self._note(nodes, f"'{shape.missing}' of '{self.graph.label(Value(i))}' is computed at run time")
            return
        operands = shape.inputs
        star = next((k for k, t in enumerate(term.args) if isinstance(t, Each) or (isinstance(t, Var) and t.star and not t.optional)), -1)
        if star < 0 or not _variadic(term, star):
            if len(operands) > len(term.args):
                self._note(nodes, f"'{self.graph.label(Value(i))}' has {len(operands)} operands, the pattern {len(term.args)}")
                return
            operands = (*operands, *(None,) * (len(term.args) - len(operands)))
            star = -1
        elif len(operands) < len(term.args):
            self._note(nodes, f"'{self.graph.label(Value(i))}' has only {len(operands)} operands")
            return
        bound = self._attrs(term, node, shape, env, i, nodes)
        if bound is None:
            return
        env, nodes = ({**bound, term.label: i} if term.label else bound), (*nodes, i)
        yield from self._all(term.args, operands, star, env, nodes)
        if term.op in COMMUTATIVE and len(operands) == 2 and star < 0 and operands[0] != operands[1]:
            yield from self._all(term.args, operands[::-1], star, env, nodes)

    def _all(
        self, terms: tuple[Term, ...], values: tuple[Value | None, ...], star: int, env: Env, nodes: tuple[int, ...]
    ) -> Iterator[tuple[Env, tuple[int, ...]]]:
        if not terms:
            yield env, nodes
            return
        taken = len(values) - len(terms) + 1 if star == 0 else 1
        ways = self._many(terms[0], values[:taken], env, nodes) if star == 0 else self._value(terms[0], values[0], env, nodes)
        for inner, matched in ways:
            yield from self._all(terms[1:], values[taken:], star - 1, inner, matched)

    def _many(
        self, term: Term, values: tuple[Value | None, ...], env: Env, nodes: tuple[int, ...]
    ) -> Iterator[tuple[Env, tuple[int, ...]]]:
        """The ways to read a starred term as all of `values`."""
        if isinstance(term, Var):
            if env.get(term.name, values) == values:
                yield {**env, term.name: values}, nodes
            return
        assert isinstance(term, Each)
        inner = term.inner
        if inner.op in _MANY:
            head = values[0]
            if head is None or self.graph.nodes[head.node].op != inner.op:
                self._note(nodes, f"the operands are not the results of a {inner.op}")
            elif values != tuple(Value(head.node, p) for p in range(len(self.graph.nodes[head.node].types))):
                self._note(nodes, f"the operands are not all results of one {inner.op} in order")
            else:
                yield from self._node(inner, head.node, env, nodes)
            return
        starred = stars(inner)
        many: dict[str, list[Any]] = {k: [] for k in starred}
        for v in values:
            read = next(self._value(inner, v, env, nodes), None)
            if read is None:
                return
            env, nodes = read
            for k in starred:
                many[k].append(env[k])
            env = {k: x for k, x in env.items() if k not in starred}
        yield {**env, **{k: tuple(x) for k, x in many.items()}}, nodes

    def _attrs(self, term: Apply, node: Node, shape: Form, env: Env, i: int, nodes: tuple[int, ...]) -> Env | None:
        """The names extended by what the node's attributes say; None if those do not fit."""
        rest: dict[str, Any] = dict(shape.attrs)
        made: dict[str, Any] = dict(env)
        for name, wanted in term.attrs:
            if name not in rest:
                if wanted == Var("_"):
                    continue
                self._note(nodes, f"'{self.graph.label(Value(i))}' has no known '{name}'")
                return None
            value = rest.pop(name)
            if isinstance(wanted, Var):
                if wanted.name != "_" and made.setdefault(wanted.name, value) != value:
                    self._note(nodes, f"'{name}' of '{self.graph.label(Value(i))}' is {value}, not {made[wanted.name]}")
                    return None
            elif isinstance(wanted, Lit) and value != wanted.value:
                self._note(nodes, f"'{name}' of '{self.graph.label(Value(i))}' is {value!r}, not {wanted.value!r}")
                return None
        if term.rest:
            if made.setdefault(term.rest, rest) != rest:
                self._note(nodes, f"attributes of '{self.graph.label(Value(i))}' differ: {_differ(made[term.rest], rest)}")
                return None
            return made
        if rest:
            usual = _usual(node.op, self.graph.opset)
            odd = {k: v for k, v in rest.items() if k not in _INSIGNIFICANT and not (k in usual and usual[k] == v) and not _plain(k, v)}
            if odd:
                self._note(
                    nodes,
                    f"'{self.graph.label(Value(i))}' has {', '.join(f'{k}={v}' for k, v in odd.items())}, which the rule does not speak of",
                )
                return None
        return made

    def _note(self, nodes: tuple[int, ...], text: str) -> None:
        if self.why is not None:
            self.why.note(len(nodes), text)


def _variadic(term: Apply, star: int) -> bool:
    """Whether the starred argument takes several operands (in a repeated root it is one operand of each)."""
    return isinstance(term.args[star], Each) or term.op in ("Concat", "Sum", "Max", "Min", "Mean")


def _plain(name: str, value: Any) -> bool:
    """Whether the attribute says what a window does if nobody says anything."""
    return isinstance(value, tuple) and ((name in ("dilations", "strides") and set(value) <= {1}) or (name == "pads" and not any(value)))


@lru_cache(maxsize=4096)
def _usual(op: str, opset: int) -> dict[str, Any]:
    return {**NEUTRAL, **defaults(op, "", opset)}


def _differ(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {a.get(k)} / {b.get(k)}" for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k))
