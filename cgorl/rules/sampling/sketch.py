"""Sketch: a small concrete graph in the making, in which the source of a rule occurs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from immutables import Map
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.build import Builder
from cgorl.ir.graph import Frame, Graph, GraphError, fresh
from cgorl.ir.node import TensorType, Value, graph_input
from cgorl.ir.ops import COMMUTATIVE, schema
from cgorl.rules.conditions import CONDITIONS
from cgorl.rules.context import Context, NoMatch
from cgorl.rules.pattern import Apply, Each, Lit, Term, Var, stars, walk
from cgorl.rules.rule import Rule
from cgorl.rules.sampling.attributes import Attributes, Unfit
from cgorl.rules.sampling.contents import Contents, fill
from cgorl.rules.sampling.leanings import Leanings
from cgorl.rules.target import arguments

Shape = tuple[int, ...]
Sampler = Callable[["Sketch", Apply, "Attributes", "Shape | None"], "tuple[list[Value | None], int]"]
"""Given a term and the shape wished for: the operands made, and how many results the node has."""

MARKS = {7: "N", 5: "M"}
"""Sizes that a draw with symbolic dims declares as symbols."""

_TRIES = 40
_FAULTS = (GraphError, IndexError, TypeError, AttributeError, ValueError, ArithmeticError)


class Sketch:
    """Makes values for the terms of one rule's source; names of the rule that recur mean the same thing."""

    def __init__(self, rule: Rule, rng: random.Random, samplers: Mapping[str, Sampler], opset: int, dtype: int, span: int) -> None:
        """`span` > 0 bounds integer contents (then all are); 0 means real ones."""
        self.rule, self.rng, self.samplers, self.opset, self.dtype, self.span = rule, rng, samplers, opset, dtype, span
        self.leanings = Leanings(rule)
        self.symbolic = rng.random() < 0.3
        self.empty = rng.random() < 0.03
        self.builder = Builder(Graph(Map(), Map(), (), (), {"": opset}, Frame(onnx.ModelProto(ir_version=10), {}), 0))
        self.env: dict[str, Any] = {}
        self.contents: dict[int, Contents] = {}
        self.inner: list[tuple[int, str]] = []
        self._sign, self._tries = "any", _TRIES
        self._context = Context(self.builder.graph, self.builder)
        self._checked = [(c, {t.name for t in walk(c) if isinstance(t, Var)}) for c in rule.conditions if rng.random() < 0.97]
        self._times: dict[str, int] = {}
        for root in rule.source:
            for term in walk(root):
                if isinstance(term, Var):
                    self._times[term.name] = self._times.get(term.name, 0) + 1

    # ------------------------------------------------------------ draws
    def coin(self, chance: float) -> bool:
        """True with the given chance."""
        return self.rng.random() < chance

    def size(self) -> int:
        """A small size of a dim."""
        if self.empty and self.coin(0.2):
            return 0
        if self.symbolic and self.coin(0.1):
            return 5
        return self.rng.choice((1, 2, 2, 3, 3, 4))

    def batch(self) -> int:
        """A size for the first dim."""
        return 7 if self.symbolic and self.coin(0.8) else self.size()

    def shape(self, ranks: Sequence[int] = (1, 2, 2, 3, 3, 4, 4, 5)) -> Shape:
        """A small shape of one of `ranks`."""
        return tuple(self.size() if k else self.batch() for k in range(self.rng.choice(ranks)))

    def shape_for(self, term: Term, ranks: Sequence[int]) -> Shape:
        """A small shape for an operand, of a rank that the rule's conditions let it have."""
        wanted = self.leanings.rank(term, self.env)
        if wanted is not None and self.coin(0.9):
            low, high = wanted
            ranks = [r for r in ranks if low <= r <= high] or range(low, min(high, low + 2) + 1)
        return self.shape(ranks)

    # ------------------------------------------------------------ values
    def type(self, value: Value) -> TensorType:
        """The type of a value made."""
        kind = self.builder.type(value)
        if kind is None or not kind.static:
            raise Unfit("a type is not known")
        return kind

    def dims(self, value: Value | None) -> Shape:
        """The shape of a value made."""
        assert value is not None
        return self.type(value).shape  # type: ignore[return-value]

    def known(self, term: Term) -> Shape | None:
        """The shape of an operand that is bound already."""
        bound = self.env.get(term.name) if isinstance(term, Var) else None
        return self.dims(bound) if isinstance(bound, Value) else None

    def made(self, term: Term, want: Shape | None) -> Value | None:
        """An operand that another depends on: what is bound, or an operator's result of about the shape `want`; a free name: None."""
        if isinstance(term, Apply) or self.known(term) is not None:
            return self.make(term, want)
        return None

    def make(self, term: Term, want: Shape | None = None, dtype: int | None = None, sign: str = "", below: int = 0) -> Value | None:
        """The value that a term stands for; `want` is a wish that only a free name always fulfils. None: absent."""
        before, self._sign = self._sign, sign or self._sign
        try:
            if isinstance(term, Apply):
                return self.node(term, want)[0]
            if isinstance(term, Lit):
                return self.builder.constant(np.array(term.value, tensor_dtype_to_np_dtype(dtype or self.dtype)), dtype or self.dtype)
            assert isinstance(term, Var)
            if term.name in self.env:
                found: Value | None = self.env[term.name]
                return found
            if term.optional and self.coin(0.35):
                made = None
            else:
                made = self._fresh(term, want if want is not None else self.shape(), dtype or self.dtype, below)
            if term.name != "_":
                self.bind(term.name, made, check=not term.star)
            return made
        finally:
            self._sign = before

    def _fresh(self, term: Var, shape: Shape, dtype: int, below: int) -> Value:
        fixed = self.leanings.is_constant(term.name)
        shape, dtype, counting = self.leanings.numbered(term.name, shape, dtype, self.rng)
        if counting:
            return self.builder.constant(np.arange(shape[-1]).reshape(shape).astype(tensor_dtype_to_np_dtype(dtype)), dtype)
        if self.coin(0.07) and not below and self._sign == "any":
            kind, b = TensorType(dtype, shape), self.builder
            same = [fresh(k) for k, n in enumerate(b.added) if kind in n.types[:1] and (n.constant or not fixed)]
            if same:
                return Value(self.rng.choice(same))
        numbers = Contents("any" if below else self._sign, below)
        if fixed or self.coin(0.2 if self.contents and self._times.get(term.name, 1) == 1 else 0.05):
            number = self.leanings.number(term.name)
            if number is not None and self.coin(0.7):
                return self.builder.constant(np.full(shape, number, tensor_dtype_to_np_dtype(dtype)), dtype)
            return self.builder.constant(self.leanings.blocks(term.name, fill(self.rng, dtype, shape, numbers, self.span), self.env), dtype)
        count = sum(n.is_input for n in self.builder.added)
        self.builder.added.append(graph_input(count, TensorType(dtype, shape), f"x{count}"))
        value = Value(fresh(len(self.builder.added) - 1))
        self.contents[value.node] = numbers
        return value

    def bind(self, name: str, value: Any, check: bool = True) -> None:
        """Lets `name` mean `value`. Raises Unfit if a condition that is then decided does not hold (unless `check` is off)."""
        self.env[name] = value
        added = len(self.builder.added)
        for c, names in self._checked if check else ():
            if name in names and names <= self.env.keys():
                try:
                    CONDITIONS[c.op](self._context, *arguments(c.args, self._context, self.env))
                except NoMatch as e:
                    del self.env[name]
                    raise Unfit(str(e)) from None
                finally:
                    del self.builder.added[added:]

    def node(self, term: Apply, want: Shape | None = None) -> list[Value]:
        """All results of the operator that a term describes; what does not fit is drawn again a few times."""
        kept = dict(self.env), len(self.builder.added), dict(self.contents), len(self.inner)
        while True:
            try:
                return self._node(term, want)
            except _FAULTS as e:
                if isinstance(e, TypeError | AttributeError) and "NoneType" not in str(e):
                    raise
                self._tries -= 1
                if self._tries < 0 or self.coin(0.2):
                    raise Unfit(str(e)) from None
                self.env, self.contents = dict(kept[0]), dict(kept[2])
                del self.builder.added[kept[1] :], self.inner[kept[3] :]
                self.leanings.forget()

    def _node(self, term: Apply, want: Shape | None) -> list[Value]:
        attrs = Attributes(self, term)
        sampler = self.samplers.get(term.op, self.samplers[""])
        inputs, outputs = sampler(self, term, attrs, want)
        while inputs and inputs[-1] is None:
            inputs.pop()
        if term.op in COMMUTATIVE and len(inputs) == 2 and self.coin(0.3):
            inputs.reverse()
        self._permitted(term.op, inputs)
        made = self.builder.node(term.op, inputs, attrs.finish(), outputs)
        results = [Value(made.node, p) for p in range(outputs)]
        for v in results:
            if sum(d == 0 for d in self.dims(v)) and not self.empty:
                raise Unfit("an empty result")
            if np.prod(self.dims(v), dtype=float) > 50_000:
                raise Unfit("too large")
        if term.label:
            self.bind(term.label, made.node)
        self.inner.append((made.node, term.label))
        return results

    def _permitted(self, op: str, inputs: Sequence[Value | None]) -> None:
        """Raises Unfit if the opset has no such operator, or not for these element types."""
        spec = schema(op, "", self.opset)
        if spec is None:
            raise Unfit(f"opset {self.opset} has no {op}")
        for k, v in enumerate(inputs):
            if v is not None and spec.inputs:
                allowed = _kinds(op, self.opset, min(k, len(spec.inputs) - 1))
                if allowed and self.type(v).dtype not in allowed:
                    raise Unfit(f"{op} takes no such element type")

    def several(self, term: Term, want: Callable[[int], Shape | None], low: int = 2) -> list[Value]:
        """The operands that a starred term stands for; `want(k)` is the shape wished for number k."""
        if isinstance(term, Var):
            if term.name not in self.env:
                count = self.rng.choice((low, low, low + 1))
                shapes = [want(k) for k in range(count)]
                self.bind(term.name, tuple(self._fresh(term, self.shape() if s is None else s, self.dtype, 0) for s in shapes))
            return list(self.env[term.name])
        assert isinstance(term, Each)
        starred = sorted(stars(term))
        if not starred:
            return self.node(term.inner, want(0)) if low else []
        bound = [self.env.pop(k) for k in starred] if starred[0] in self.env else []
        count = len(bound[0]) if bound else self.rng.choice((low, low, low + 1))
        rows: dict[str, list[Any]] = {k: [] for k in starred}
        found: list[Value] = []
        for k in range(count):
            for name, values in zip(starred, bound, strict=False):
                self.env[name] = values[k]
            self.env.pop(term.inner.label, None)
            found.append(self.node(term.inner, want(k))[0])
            for name in starred:
                rows[name].append(self.env.pop(name))
        for name in starred:
            self.bind(name, tuple(rows[name]))
        return found


@lru_cache(maxsize=4096)
def _kinds(op: str, opset: int, place: int) -> frozenset[int]:
    """The element types that operand number `place` may have; empty: not known."""
    spec: Any = schema(op, "", opset)
    name = spec.inputs[place].type_str
    allowed = next((c.allowed_type_strs for c in spec.type_constraints if c.type_param_str == name), [name])
    found = {t.removeprefix("tensor(").removesuffix(")").upper() for t in allowed if t.startswith("tensor(")}
    return frozenset(int(onnx.TensorProto.DataType.Value(k)) for k in found)
