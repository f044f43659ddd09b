"""Look: what can be seen of a node at a glance, and which rules may have a root there (an early reject)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from cgorl.ir.forms import Form, form
from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import Value
from cgorl.ir.ops import COMMUTATIVE
from cgorl.rules.conditions import CONDITIONS, PLAIN
from cgorl.rules.context import NoMatch
from cgorl.rules.pattern import Apply, Each, Lit, Term, Var, names, operator, stars, walk
from cgorl.rules.rule import Rule

LOOK = 2
"""How many operators upstream of a node a Look goes."""


class Look(NamedTuple):
    """A node's operator, the attributes that rules speak of, and its operands with theirs.

    `place` numbers values in the order in which they are met, so that one met twice is known. Of a constant, and of what is
    two steps away, `operands` is None: nothing is known of them. `reader` is the operator of the node's only user, told of
    the first node alone.
    """

    op: str
    constant: bool
    place: int
    attrs: tuple[Any, ...]
    operands: tuple[Look | None, ...] | None
    reader: str = ""


Names = Mapping[str, tuple[str, ...]]
"""The attributes in a Look, by operator."""


def spoken_of(rules: Sequence[Rule]) -> Names:
    """The attributes for which sources ask a certain number, or that a condition on numbers alone is about."""
    found: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        judged = {a.name for c in rule.conditions if c.op in PLAIN for a in c.args if isinstance(a, Var)}
        for term in (t for root in rule.source for t in walk(root) if isinstance(t, Apply)):
            found[term.op].update(k for k, v in term.attrs if isinstance(v, Lit) or (isinstance(v, Var) and v.name in judged))
    return {op: tuple(sorted(names)) for op, names in found.items()}


class Glances:
    """Tells how nodes look, as tuples that are quick to make: equal for nodes that `look_at` finds equal, and for those only."""

    def __init__(self, names: Names, readers: bool) -> None:
        """For the attributes of `names`; `readers`: it matters who reads the node."""
        self._names, self._readers = names, readers
        self._memo = f"glance {next(_SERIAL)}"
        self._numbers: dict[tuple[str, tuple[Any, ...]], int] = {}

    def at(self, graph: Graph, i: int) -> tuple[str | int | bool, ...]:
        """How node `i` looks: its number and, if it matters, its reader; of each operand the place; of running ones number and operands."""
        nodes, places = graph.nodes, dict[Value, int]()
        shape = form(graph, i)
        parts: list[str | int | bool] = [self._number(shape), self._readers and _reader(graph, i)]
        for v in shape.inputs:
            if v is None:
                parts.append(-1)
                continue
            node = nodes[v.node]
            parts.append(places.setdefault(v, len(places)))
            if node.constant:
                parts.append(node.op)
                continue
            shape = form(graph, v.node)
            parts += (self._number(shape), len(shape.inputs))
            for w in shape.inputs:
                if w is None:
                    parts.append(-1)
                else:
                    far = nodes[w.node]
                    parts += (places.setdefault(w, len(places)), far.op, far.constant)
        return tuple(parts)

    def _number(self, shape: Form) -> int:
        """A number for operator and attributes."""
        found: int | None = shape.memo.get(self._memo)
        if found is None:
            found = shape.memo[self._memo] = self._numbers.setdefault((shape.op, _attrs(shape, self._names)), len(self._numbers))
        return found


_SERIAL = count()


def _reader(graph: Graph, i: int) -> str:
    readers = graph.users[i]
    return graph.nodes[readers[0].node].op if len(readers) == 1 and readers[0].node != OUTPUT else ""


def look_at(graph: Graph, i: int, names: Names) -> Look:
    """How node `i` looks."""
    nodes, places = graph.nodes, dict[Value, int]()

    def seen(v: Value | None, far: bool) -> Look | None:
        if v is None:
            return None
        node, place = nodes[v.node], places.setdefault(v, len(places))
        if node.constant or far:
            return Look(node.op, node.constant, place, (), None)
        shape = form(graph, v.node)
        return Look(node.op, False, place, _attrs(shape, names), tuple([seen(w, True) for w in shape.inputs]))

    shape = form(graph, i)
    return Look(shape.op, nodes[i].constant, -1, _attrs(shape, names), tuple([seen(v, False) for v in shape.inputs]), _reader(graph, i))


def _attrs(shape: Form, names: Names) -> tuple[Any, ...]:
    return tuple([shape.attrs.get(k) for k in names.get(shape.op, ())])


def may_match(rule: Rule, place: int, look: Look, names: Names) -> bool:
    """Whether root number `place` of the rule may be a node that looks so."""
    fixed = frozenset(a.name for c in rule.conditions if c.op == "constant" for a in c.args if isinstance(a, Var))
    plain = [c for c in rule.conditions if c.op in PLAIN]
    root = operator(rule.source[place])
    if look.reader == "Relu" and any(c.op == "unactivated" and c.args == (Var(root.label),) for c in rule.conditions):
        return False  # it counts with its Relu
    return any(all(_may_hold(c, bound) for c in plain) for bound in _ways(root, look, {}, fixed, names))


def _may_hold(condition: Apply, bound: Mapping[str, Any]) -> bool:
    args = [a.value if isinstance(a, Lit) else bound.get(a.name) if isinstance(a, Var) else None for a in condition.args]
    if None in args:
        return True
    try:
        CONDITIONS[condition.op](None, *args)
    except NoMatch:
        return False
    return True


def _ways(term: Apply, look: Look, bound: dict[str, Any], fixed: frozenset[str], names: Names) -> Iterator[dict[str, Any]]:
    """The ways to read a pattern so: what attributes are called, and the places of values as `@name`."""
    bound = dict(bound)
    for name, value in zip(names.get(look.op, ()), look.attrs, strict=False):
        wanted = next((v for k, v in term.attrs if k == name), None)
        if value is None or wanted is None or wanted == Var("_"):
            continue
        if (isinstance(wanted, Lit) and wanted.value != value) or (
            isinstance(wanted, Var) and bound.setdefault(wanted.name, value) != value
        ):
            return
    if look.operands is None:
        yield bound
        return
    given = look.operands
    for order in (given, given[::-1]) if term.op in COMMUTATIVE and len(given) == 2 else (given,):
        yield from _operands(term.args, order, bound, fixed, names)


def _operands(
    args: Sequence[Term], given: Sequence[Look | None], bound: dict[str, Any], fixed: frozenset[str], names: Names
) -> Iterator[dict[str, Any]]:
    if not args:
        if not given:
            yield bound
        return
    term, there = args[0], given[0] if given else None
    if isinstance(term, Each):
        if all(o is not None and o.op == term.inner.op for o in given[: len(given) - len(args) + 1]):
            yield bound
    elif isinstance(term, Var) and term.star:
        yield bound
    elif there is None:
        if isinstance(term, Var) and term.optional:
            yield from _operands(args[1:], given[1:], bound, fixed, names)
    elif isinstance(term, Apply):
        if there.op == term.op and (not term.label or bound.get(f"@{term.label}", there.place) == there.place):
            named = {**bound, f"@{term.label}": there.place} if term.label else bound
            for inner in _ways(term, there, named, fixed, names):
                yield from _operands(args[1:], given[1:], inner, fixed, names)
    elif isinstance(term, Var):
        known = f"@{term.name}"
        if term.name == "_":
            yield from _operands(args[1:], given[1:], bound, fixed, names)
        elif (there.constant or term.name not in fixed) and bound.get(known, there.place) == there.place:
            yield from _operands(args[1:], given[1:], {**bound, known: there.place}, fixed, names)


@lru_cache(maxsize=4096)
def shared_paths(rule: Rule, place: int) -> tuple[tuple[int, ...], ...]:
    """Where, operand by operand, root number `place` reads a value that another root of every match reads too."""
    pattern = operator(rule.source[place])
    if isinstance(rule.source[0], Each):
        common = names(pattern) - stars(pattern)
    else:
        common = names(pattern) & frozenset().union(*(names(root) for k, root in enumerate(rule.source) if k != place))
    found: list[tuple[int, ...]] = []

    def collect(term: Apply, path: tuple[int, ...]) -> None:
        if term.op in COMMUTATIVE:
            return
        for k, t in enumerate(term.args):
            if isinstance(t, Each) or (isinstance(t, Var) and t.star):
                if isinstance(rule.source[0], Each) and isinstance(t, Var) and not _spread(term):
                    continue  # one operand of each root
                return
            if isinstance(t, Var) and t.name in common:
                found.append((*path, k))
            elif isinstance(t, Apply):
                collect(t, (*path, k))

    collect(pattern, ())
    return tuple(found)


def _spread(term: Apply) -> bool:
    return term.op in ("Concat", "Sum", "Max", "Min", "Mean")


def alone(graph: Graph, i: int, rule: Rule, place: int) -> bool:
    """Whether node `i`, as root number `place`, can have no other root: a value that it would share has no other user."""
    for path in shared_paths(rule, place):
        at: int = i
        for k in path:
            inputs = graph.nodes[at].inputs
            value = inputs[k] if k < len(inputs) else None
            if value is None:
                break
            at = value.node
        else:
            if len(graph.users[at]) < 2:
                return True
    return False
