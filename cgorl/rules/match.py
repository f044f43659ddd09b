"""Finding a rule in a graph: its matches, the edit that each stands for, and why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.build import Builder
from cgorl.ir.graph import OUTPUT, Edit, Graph, GraphError
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.tensor import element_bits
from cgorl.rules.conditions import CONDITIONS
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.functions import FUNCTIONS
from cgorl.rules.matcher import Env, Found, Matcher, Why
from cgorl.rules.pattern import Apply, Each, Lit, Term, Var, operator, stars
from cgorl.rules.rule import Match, Rule

_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})


def matches(rule: Rule, graph: Graph, root: int, known: Mapping[tuple[int, ...], Match] | None = None) -> list[Match]:
    """All matches of `rule` whose first root is node `root`, in a fixed order; those `known`, by their nodes, are not made anew."""
    found: list[Match] = []
    seen: set[tuple[int, ...]] = set()
    for read in Matcher(graph).read(rule, root):
        if read.nodes in seen:
            continue
        made = known.get(read.nodes) if known else None
        made = made or _finish(rule, graph, read, None)
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
        made = _finish(rule, graph, read, why)
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


def _finish(rule: Rule, graph: Graph, read: Found, why: Why | None) -> Match | None:
    """The match that a reading describes, if its nodes are its own and the conditions hold."""
    env, nodes = read.env, read.nodes
    matched = set(nodes)
    free = {env[label] for label in rule.shared}
    for i in nodes:
        if i in free or i in read.roots:
            continue
        for use in graph.users[i]:
            if use.node not in matched:
                _note(why, len(nodes) + 1, f"'{graph.label(Value(i, use.port))}' has another user")
                return None
    for i in read.roots:
        if graph.nodes[i].constant:
            _note(why, len(nodes) + 1, f"'{graph.label(Value(i))}' is constant, which costs nothing")
            return None
    builder = Builder(graph)
    at = Context(graph, builder)
    try:
        for c in rule.conditions:
            CONDITIONS[c.op](at, *arguments(c.args, at, env))
        full = dict(env)
        for name, term in rule.where:
            full[name] = tuple(_each(term.inner, at, full)) if isinstance(term, Each) else evaluate(term, at, full)
        results = arguments(rule.target, at, full)
        edit = builder.edit(_rewired(graph, read.roots, results))
    except (NoMatch, GraphError, IndexError) as e:  # an index past the rank of a value: the rule is not meant for it
        _note(why, len(nodes) + 2, str(e))
        return None
    borders = _borders(graph, nodes) if len(read.roots) > 1 else ()
    return Match(rule, nodes, env, edit, growth(graph, edit), borders, read.roots)


def _rewired(graph: Graph, roots: tuple[int, ...], results: list[Any]) -> dict[Value, Value]:
    """Old results -> new ones: one a root, or all of a single root's. Raises NoMatch."""
    if not all(isinstance(r, Value) for r in results):
        raise NoMatch("the target is no value")
    old = [Value(i) for i in roots] if len(roots) > 1 else [Value(roots[0], p) for p in range(len(results))]
    if len(old) != len(results):
        raise NoMatch(f"the target has {len(results)} results for {len(old)} roots")
    spoken = set(old)
    for i in roots:
        for use in graph.users[i]:
            if Value(i, use.port) not in spoken:
                raise NoMatch(f"another result of '{graph.label(Value(i))}' is used")
        if len(roots) == 1 and len(results) > len(graph.nodes[i].types):
            raise NoMatch(f"'{graph.label(Value(i))}' has not so many results")
    return {o: r for o, r in zip(old, results, strict=True) if o != r}


def _borders(graph: Graph, nodes: tuple[int, ...]) -> tuple[Value, ...]:
    """The values from outside that running nodes of a match read; none if it is one alone, which can close no cycle."""
    inside = set(nodes)
    found = {v for i in nodes for v in graph.nodes[i].reads() if v.node not in inside and not graph.nodes[v.node].constant}
    return tuple(sorted(found)) if len(found) > 1 else ()


def _note(why: Why | None, far: int, text: str) -> None:
    if why is not None:
        why.note(far, text)


def arguments(terms: tuple[Term, ...], at: Context, env: Env) -> list[Any]:
    """What terms stand for, starred ones spread out."""
    found: list[Any] = []
    for term in terms:
        if isinstance(term, Each):
            found.extend(_each(term.inner, at, env))
        elif isinstance(term, Var) and term.star:
            held = env[term.name]
            found.extend(held if isinstance(held, tuple) and not isinstance(held, Value) else (held,))
        else:
            found.append(evaluate(term, at, env))
    return found


def _each(term: Apply, at: Context, env: Env) -> list[Any]:
    starred = sorted(stars(term))
    if starred and term.op != "Split":  # whose results are meant, whatever is starred inside
        return [evaluate(term, at, {**env, **dict(zip(starred, row, strict=True))}) for row in zip(*(env[k] for k in starred), strict=True)]
    first = evaluate(term, at, env)
    if isinstance(first, tuple) and not isinstance(first, Value):
        return list(first)
    return [Value(first.node, p) for p in range(at.builder.results(first))]


def evaluate(term: Term, at: Context, env: Env) -> Any:
    """What `term` stands for: a value (new nodes are added to the builder), None for an absent operand, or an attribute.

    In arithmetic an absent value counts as zero. Raises NoMatch and GraphError.
    """
    if isinstance(term, Var):
        return env[term.name]
    if isinstance(term, Lit):
        return term.value
    assert isinstance(term, Apply)
    args = arguments(term.args, at, env)
    if not term.is_operator:
        return FUNCTIONS[term.op](at, *args)
    if term.op == "MatMul" and None in args:
        return None
    attrs = {**(env[term.rest] if term.rest else {}), **{k: evaluate(v, at, env) for k, v in term.attrs}}
    if term.op in _ARITHMETIC and not attrs:
        a, b = args
        if a is None or b is None:
            return _absent(term.op, a, b, at)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return {"Add": a + b, "Sub": a - b, "Mul": a * b, "Div": a / b if term.op == "Div" else None}[term.op]
        args = [_operand(a, b, at), _operand(b, a, at)]
    while args and args[-1] is None:
        args.pop()
    outputs = len(attrs["split"]) if term.op == "Split" and "split" in attrs else 1
    return at.builder.node(term.op, args, attrs, outputs)


def _absent(op: str, a: Any, b: Any, at: Context) -> Any:
    if op in ("Mul", "Div"):
        return None
    if b is None:
        return a
    return at.builder.node("Neg", [b]) if op == "Sub" else b


def _operand(value: Any, other: Any, at: Context) -> Value:
    if isinstance(value, Value):
        return value
    dtype = at.type(other).dtype
    if dtype in (TensorProto.FLOAT16, TensorProto.BFLOAT16):  # an epsilon of 1e-5 is no number of theirs
        return at.builder.node("Cast", [at.builder.constant(np.array(value, np.float32), TensorProto.FLOAT)], {"to": dtype})
    return at.builder.constant(np.array(value, tensor_dtype_to_np_dtype(dtype)), dtype)


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
