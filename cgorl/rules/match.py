"""Finding a rule in a graph: the matcher, the edit a match stands for, and why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cgorl.ir.build import Builder
from cgorl.ir.forms import NEUTRAL, Form, form
from cgorl.ir.graph import Graph, GraphError
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.ops import COMMUTATIVE, defaults
from cgorl.rules.conditions import CONDITIONS
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.functions import FUNCTIONS
from cgorl.rules.pattern import Apply, Lit, Term, Var
from cgorl.rules.rule import Match, Rule

_INSIGNIFICANT = frozenset({"kernel_shape"})
"""Attributes that repeat what a weight's shape says; a source need not mention them."""


def matches(rule: Rule, graph: Graph, root: int) -> list[Match]:
    """All matches of `rule` whose result is that of node `root`, in a fixed order."""
    if graph.nodes[root].op != rule.source.op:
        return []
    found: list[Match] = []
    seen: set[tuple[int, ...]] = set()
    for env, nodes in _bind_node(rule.source, graph, root, {}, (), None):
        if nodes in seen:
            continue
        made = _finish(rule, graph, env, nodes, None)
        if made is not None:
            seen.add(nodes)
            found.append(made)
    return found


def explain(rule: Rule, graph: Graph, root: int) -> str:
    """In words, why `rule` does not match at node `root`; the empty string if it does."""
    node = graph.nodes[root]
    if node.op != rule.source.op or node.domain != "":
        return f"'{graph.label(Value(root))}' is {node.op}, not {rule.source.op}"
    why = _Why()
    for env, nodes in _bind_node(rule.source, graph, root, {}, (), why):
        if _finish(rule, graph, env, nodes, why) is not None:
            return ""
    return why.text


class _Why:
    """Remembers the reason given by the attempt that got furthest."""

    def __init__(self) -> None:
        self.text, self._far = "no reason recorded", -1

    def note(self, far: int, text: str) -> None:
        if far > self._far:
            self.text, self._far = text, far


_Env = Mapping[str, Any]
_Bound = Iterator[tuple[_Env, tuple[int, ...]]]


def _bind(term: Term, graph: Graph, value: Value | None, env: _Env, nodes: tuple[int, ...], why: _Why | None) -> _Bound:
    """The ways to read `term` as `value`: extended names and matched nodes."""
    if isinstance(term, Var):
        if value is None and not term.optional:
            _note(why, nodes, f"operand '{term.name}' is absent")
        elif term.name == "_":
            yield env, nodes
        elif term.name not in env:
            yield {**env, term.name: value}, nodes
        elif env[term.name] == value:
            yield env, nodes
        else:
            _note(why, nodes, f"'{term.name}' would stand for two different values")
        return
    if not isinstance(term, Apply) or value is None:
        _note(why, nodes, f"operand {term} is absent" if value is None else f"{term} is no pattern for a value")
        return
    node = graph.nodes[value.node]
    if node.op != term.op or node.domain != "" or value.port != 0:
        _note(why, nodes, f"'{graph.label(value)}' is {node.op}, not {term.op}")
        return
    yield from _bind_node(term, graph, value.node, env, nodes, why)


def _bind_node(term: Apply, graph: Graph, i: int, env: _Env, nodes: tuple[int, ...], why: _Why | None) -> _Bound:
    node = graph.nodes[i]
    if node.domain != "" or node.is_source:
        return
    shape = form(graph, i)
    if shape.missing:
        _note(why, nodes, f"'{shape.missing}' of '{graph.label(Value(i))}' is computed at run time")
        return
    if len(shape.inputs) > len(term.args):
        _note(why, nodes, f"'{graph.label(Value(i))}' has {len(shape.inputs)} operands, the pattern {len(term.args)}")
        return
    bound = _bind_attrs(term, graph, node, shape, env, i, nodes, why)
    if bound is None:
        return
    env, nodes = ({**bound, term.label: i} if term.label else bound), (*nodes, i)
    operands = (*shape.inputs, *(None,) * (len(term.args) - len(shape.inputs)))
    yield from _bind_all(term.args, operands, graph, env, nodes, why)
    if term.op in COMMUTATIVE and len(operands) == 2 and operands[0] != operands[1]:
        yield from _bind_all(term.args, operands[::-1], graph, env, nodes, why)


def _bind_all(terms: tuple[Term, ...], values: Any, graph: Graph, env: _Env, nodes: tuple[int, ...], why: _Why | None) -> _Bound:
    if not terms:
        yield env, nodes
        return
    for inner, matched in _bind(terms[0], graph, values[0], env, nodes, why):
        yield from _bind_all(terms[1:], values[1:], graph, inner, matched, why)


def _bind_attrs(
    term: Apply, graph: Graph, node: Node, shape: Form, env: _Env, i: int, nodes: tuple[int, ...], why: _Why | None
) -> _Env | None:
    rest = dict(shape.attrs)
    made = dict(env)
    for name, wanted in term.attrs:
        if name not in rest and wanted == Var("_"):
            continue
        if name not in rest:
            _note(why, nodes, f"'{graph.label(Value(i))}' has no known '{name}'")
            return None
        value = rest.pop(name)
        if isinstance(wanted, Var):
            if wanted.name != "_" and made.setdefault(wanted.name, value) != value:
                _note(why, nodes, f"'{name}' of '{graph.label(Value(i))}' is {value}, not {made[wanted.name]}")
                return None
        elif isinstance(wanted, Lit) and value != wanted.value:
            _note(why, nodes, f"'{name}' of '{graph.label(Value(i))}' is {value!r}, not {wanted.value!r}")
            return None
    if term.rest:
        if made.setdefault(term.rest, rest) != rest:
            _note(why, nodes, f"attributes of '{graph.label(Value(i))}' differ: {_differ(made[term.rest], rest)}")
            return None
        return made
    usual = {**NEUTRAL, **defaults(node.op, "", graph.opset)}
    odd = {k: v for k, v in rest.items() if k not in _INSIGNIFICANT and not (k in usual and usual[k] == v)}
    if odd:
        _note(
            why, nodes, f"'{graph.label(Value(i))}' has {', '.join(f'{k}={v}' for k, v in odd.items())}, which the rule does not speak of"
        )
        return None
    return made


def _differ(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {a.get(k)} / {b.get(k)}" for k in sorted(a.keys() | b.keys()) if a.get(k) != b.get(k))


def _note(why: _Why | None, nodes: tuple[int, ...], text: str) -> None:
    if why is not None:
        why.note(len(nodes), text)


def _finish(rule: Rule, graph: Graph, env: _Env, nodes: tuple[int, ...], why: _Why | None) -> Match | None:
    """The match that `env` describes, if its nodes are its own and the conditions hold."""
    matched = set(nodes)
    free = {env[label] for label in rule.shared}
    for i in nodes[1:]:
        for use in graph.users[i]:
            if use.node not in matched and i not in free:
                _note(why, (*nodes, 0), f"'{graph.label(Value(i, use.port))}' has another user")
                return None
    root = graph.nodes[nodes[0]]
    builder = Builder(graph)
    at = Context(graph, builder)
    try:
        for c in rule.conditions:
            CONDITIONS[c.op](at, *(evaluate(a, at, env) for a in c.args))
        full = dict(env)
        for name, term in rule.where:
            full[name] = evaluate(term, at, full)
        result = evaluate(rule.target, at, full)
        if not isinstance(result, Value):
            raise NoMatch("the target is no value")
        edit = builder.edit({Value(nodes[0]): result})
    except (NoMatch, GraphError) as e:
        _note(why, (*nodes, 0, 0), str(e))
        return None
    if root.constant:
        _note(why, (*nodes, 0), f"'{graph.label(Value(nodes[0]))}' is constant, which costs nothing")
        return None
    return Match(rule, nodes, env, edit, _growth(graph, builder, edit.removed))


def evaluate(term: Term, at: Context, env: _Env) -> Any:
    """What `term` stands for: a value (new nodes are added to the builder), None for an absent operand, or an attribute.

    In arithmetic an absent value counts as zero. Raises NoMatch and GraphError.
    """
    if isinstance(term, Var):
        return env[term.name]
    if isinstance(term, Lit):
        return term.value
    args = [evaluate(a, at, env) for a in term.args]
    if not term.is_operator:
        return FUNCTIONS[term.op](at, *args)
    if term.op == "MatMul" and None in args:
        return None
    attrs = {**(env[term.rest] if term.rest else {}), **{k: evaluate(v, at, env) for k, v in term.attrs}}
    if term.op in ("Add", "Sub", "Mul", "Div") and not attrs:
        a, b = args
        if a is None or b is None:
            return _absent(term.op, a, b, at)
        args = [_operand(a, b, at), _operand(b, a, at)]
    while args and args[-1] is None:
        args.pop()
    return at.builder.node(term.op, args, attrs)


def _absent(op: str, a: Any, b: Any, at: Context) -> Any:
    if op in ("Mul", "Div"):
        return None
    if b is None:
        return a
    return at.builder.node("Neg", [b]) if op == "Sub" else b


def _operand(value: Any, other: Any, at: Context) -> Value:
    if isinstance(value, Value):
        return value
    import numpy as np
    from onnx.helper import tensor_dtype_to_np_dtype

    dtype = at.type(other).dtype
    return at.builder.constant(np.array(value, tensor_dtype_to_np_dtype(dtype)), dtype)


def _growth(graph: Graph, builder: Builder, removed: tuple[int, ...]) -> int:
    """Bytes by which the weights of the saved model grow: constants that new nodes read, less those that die."""
    fresh = {v: builder.type(v) for n in builder.added if not n.constant for v in n.reads() if builder.is_constant(v) and v.node < 0}
    gone = {v: graph.type(v) for i in removed if not graph.nodes[i].constant for v in graph.nodes[i].reads() if v.node in set(removed)}
    return sum(map(type_bytes, fresh.values())) - sum(type_bytes(t) for v, t in gone.items() if graph.is_constant(v))


def type_bytes(kind: TensorType | None) -> int:
    """Bytes of a tensor of a known type; 0 where it is not known."""
    import math

    from cgorl.ir.tensor import element_bits

    if kind is None or not kind.static:
        return 0
    return math.prod(kind.shape or ()) * element_bits(kind.dtype) // 8  # type: ignore[arg-type]
