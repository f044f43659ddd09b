"""What the terms of a rule stand for at one of its readings: values, new nodes and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.node import Value
from cgorl.rules.conditions import CONDITIONS
from cgorl.rules.context import Context
from cgorl.rules.functions import FUNCTIONS
from cgorl.rules.matcher import Env
from cgorl.rules.pattern import Apply, Each, Lit, Term, Var, stars
from cgorl.rules.rule import Rule

_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})


def check(conditions: tuple[Apply, ...], at: Context, env: Env) -> None:
    """Raises NoMatch where a condition does not hold."""
    for c in conditions:
        CONDITIONS[c.op](at, *arguments(c.args, at, env))


def results(rule: Rule, at: Context, env: Env) -> list[Any]:
    """What the target stands for. Raises NoMatch and GraphError."""
    full = dict(env)
    for name, term in rule.where:
        full[name] = tuple(_each(term.inner, at, full)) if isinstance(term, Each) else evaluate(term, at, full)
    return arguments(rule.target, at, full)


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
