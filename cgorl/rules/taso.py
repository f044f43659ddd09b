"""TASO's rules as rules of this project, with the guards that TASO's matcher lacks.

A TASO conv has its activation as a parameter. Here it is a Conv that is followed by a Relu as its only user; a plain conv
or a relu of a TASO rule matches neither half of such a pair. A TASO conv has no bias, so only convs without one match.
TASO's matcher does not know that Add and Mul commute (its file has a rule for each order), so neither do these rules.

Tags say what is in no default set: `identity`, whose sides are equal (63-66: three of them only because activation is a
node here); `disconnected`, whose source falls into parts that share nothing (63, 65, 70, 81, 95, 120); `unfused`, which
need a conv and its relu apart (63-66, 118, 129): TASO applies them to fuse the two. Sound, but dead on any real graph are
the rules tagged `self-conv` (32-35, 53-56, 92, 93, 106-109): data and weight of a conv are one value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from itertools import combinations
from pathlib import Path

from cgorl.rules.pattern import Apply, Each, Lit, RuleError, Term, Var, walk
from cgorl.rules.rule import Rule
from cgorl.rules.taso_convs import ConvClasses
from cgorl.rules.taso_file import Operand, TasoOp, TasoRule, read_rule_file
from cgorl.rules.text import parse_rules

IMPORT_TAGS = frozenset({"taso", "conv", "matmul", "concat", "elementwise", "identity", "disconnected", "unfused", "self-conv"})
"""Tags that an imported rule may have."""

_NONE, _RELU = 0, 2
_SAME = 0
_ELEMENTWISE = ("Add", "Mul")


def taso_rules(path: str | Path | None = None) -> tuple[Rule, ...]:
    """TASO's 18 hand-written rules, and those of its rule file at `path`, if given. Raises RuleError."""
    return hand_rules() + (import_rules(path) if path is not None else ())


def hand_rules() -> tuple[Rule, ...]:
    """The rules that TASO has in its code, in its order; provenance `taso:hand-0` to `taso:hand-17`."""
    name = "taso_hand.rules"
    rules = parse_rules((resources.files("cgorl.rules") / name).read_text(), name)
    return tuple(replace(r, provenance=f"taso:hand-{i}") for i, r in enumerate(rules))


def import_rules(path: str | Path, guarded: bool = True) -> tuple[Rule, ...]:
    """The rules of a rule file of TASO, in its order: `taso-<index>`, provenance `taso:<index>`.

    `guarded=False` gives what TASO itself applies, which is not all sound: for studies. Raises RuleError.
    """
    found = []
    for i, raw in enumerate(read_rule_file(path)):
        try:
            found.append(_Importer(i, raw, guarded).rule())
        except RuleError as e:
            raise RuleError(f"'{path}', rule {i}: {e}") from None
    return tuple(found)


class _Importer:
    """Spells one rule: operator `k` of the source is `ok` (its Relu `rk`), of the target `tk`; variables are `x1`, `x2`, ..."""

    def __init__(self, index: int, raw: TasoRule, guarded: bool) -> None:
        self.index, self.raw, self.guarded = index, raw, guarded
        self.windows = ConvClasses(raw)
        self.named: set[int] = set()
        self.conditions: dict[Apply, None] = {}

    def rule(self) -> Rule:
        roots = [source for source, _ in self.raw.mapped]
        if len(set(roots)) != len(roots) or any(port for _, port in roots):
            raise RuleError("a result is mapped twice")
        source = tuple(self._source((i, 0)) for i, _ in roots)
        self.named = self._shared()
        target = self._targets(roots)
        where = tuple((f"t{j}", self._made(j)) for j in sorted(self.named))
        self._match_conditions({i for i, _ in roots})
        if self.guarded:
            self._guards()
        conditions = tuple(self.conditions)
        doc = f"TASO's rule {self.index}" + ("" if self.guarded else ", without guards")
        return Rule(f"taso-{self.index}", self._tags(source, target), source, target, where, conditions, (), f"taso:{self.index}", doc)

    # ---------------------------------------------------------------- source

    def _source(self, operand: Operand) -> Term:
        i, port = operand
        if i < 0:
            return Var(f"x{-i}")
        if port:
            raise RuleError("a source reads a second result")
        op = self.raw.source[i]
        made = Apply(op.op, tuple(self._source(v) for v in op.inputs), self._source_attrs(i, op), "", f"o{i}")
        if op.op == "Conv" and _activation(op) == _RELU:
            return Apply("Relu", (made,), (), "", f"r{i}")
        return made

    def _source_attrs(self, i: int, op: TasoOp) -> tuple[tuple[str, Term], ...]:
        if op.op == "Concat":
            return (("axis", Lit(op.parameters["AXIS"])),)
        if op.op != "Conv":
            if op.op == "Split" or op.parameters.get("ACTI", _NONE) != _NONE:
                raise RuleError(f"a source has a {op.op} that cannot be spelled")
            return ()
        kind, (k, p, g) = self.windows.merge[i], self.windows.names(i)
        group: Term = Var(g) if kind in ("", "beside") else Lit(1)
        if not self.guarded and kind:
            group = Var("_")
        return (("kernel_shape", Var(k)), ("pads", Var(p)), *_steps(op), ("group", group))

    def _value(self, operand: Operand) -> Term:
        """A source operand in a condition."""
        i, _ = operand
        if i < 0:
            return Var(f"x{-i}")
        op = self.raw.source[i]
        label = f"r{i}" if op.op == "Conv" and _activation(op) == _RELU else f"o{i}"
        return Apply("result", (Var(label),))

    def _reads(self, operand: Operand) -> int:
        """How often the source reads a value."""
        return sum(op.inputs.count(operand) for op in self.raw.source)

    # ---------------------------------------------------------------- target

    def _shared(self) -> set[int]:
        """The target's operators that must have a name: read more than once, or asked for the groups of a conv."""
        reads = Counter(v[0] for op in self.raw.target for v in op.inputs if v[0] >= 0)
        reads.update(j for _, (j, _) in self.raw.mapped if self.raw.target[j].op != "Split")
        named = {j for j, n in reads.items() if n > 1}
        for j, op in enumerate(self.raw.target):
            if op.op == "Conv" and self._computed_group(j):
                named |= {v[0] for v in op.inputs if v[0] >= 0}
        return named

    def _computed_group(self, j: int) -> bool:
        kind = self.windows.merge[self.windows.sources[j]]
        return kind == "beside" or (bool(kind) and not self.guarded)

    def _targets(self, roots: list[Operand]) -> tuple[Term, ...]:
        made = [dst for _, dst in self.raw.mapped]
        first = self.raw.target[made[0][0]]
        if first.op != "Split":
            return tuple(self._target(v) for v in made)
        if made != [(made[0][0], port) for port in range(first.parameters["NUM_OUTPUTS"])]:
            raise RuleError("the results of a Split stand for no results, or in another order")
        axis = Lit(first.parameters["AXIS"])
        sizes = Apply("sizes", (axis, *(self._value(v) for v in roots)))
        return (Each(Apply("Split", (self._target(first.inputs[0]),), (("axis", axis), ("split", sizes)))),)

    def _target(self, operand: Operand) -> Term:
        j, port = operand
        if j < 0:
            return Var(f"x{-j}")
        if port or self.raw.target[j].op == "Split":
            raise RuleError("a target reads the result of a Split")
        return Var(f"t{j}") if j in self.named else self._made(j)

    def _made(self, j: int) -> Term:
        op = self.raw.target[j]
        args = tuple(self._target(v) for v in op.inputs)
        if op.op == "Concat":
            return Apply("Concat", args, (("axis", Lit(op.parameters["AXIS"])),))
        if op.op != "Conv":
            return Apply(op.op, args)
        i = self.windows.sources[j]
        k, p, g = self.windows.names(i)
        attrs: list[tuple[str, Term]] = [("kernel_shape", Var(k)), ("pads", Var(p)), *_steps(op)]
        if self._computed_group(j):
            attrs.append(("group", Apply("groups", args)))
        elif not self.windows.merge[i]:
            attrs.append(("group", Var(g)))
        made = Apply("Conv", args, tuple(attrs))
        return Apply("Relu", (made,)) if _activation(op) == _RELU else made

    # ---------------------------------------------------------------- conditions

    def _add(self, name: str, *args: Term) -> None:
        self.conditions[Apply(name, args)] = None

    def _match_conditions(self, roots: set[int]) -> None:
        """What TASO's own matcher asks for."""
        for i, op in enumerate(self.raw.source):
            if op.op in _ELEMENTWISE:
                place = min((0, 1), key=lambda k: (op.inputs[k][0] >= 0 and self._reads(op.inputs[k]) > 1, op.inputs[k][0] >= 0))
                self._add("operand_is", Var(f"o{i}"), Lit(place), self._value(op.inputs[place]))
            if op.op == "Conv":
                k, p, _ = self.windows.names(i)
                self._add("same_padding" if op.parameters["PAD"] == _SAME else "valid_padding", Var(k), Var(p))
                if i in roots and _activation(op) == _NONE:
                    self._add("unactivated", Var(f"o{i}"))
            if op.op == "Relu" and op.inputs[0][0] < 0:
                self._add("not_activation", Var(f"o{i}"))
        for side in (self.raw.source, self.raw.target):
            for op in side:
                if op.op == "Concat":
                    a, b = op.inputs
                    if a[0] < 0 or side is self.raw.source:
                        self._add("rank", self._value(a), Lit(op.parameters["NUMDIM"]))
                    if side is self.raw.target and a[0] < 0 and b[0] < 0 and a != b:
                        self._add("joinable", Lit(op.parameters["AXIS"]), self._value(a), self._value(b))

    def _guards(self) -> None:
        """What makes the rule sound besides: no broadcasting, matrices, real numbers, groups that fit."""
        for side in (self.raw.source, self.raw.target):
            for op in side:
                if op.op == "MatMul":
                    for v in op.inputs:
                        if v[0] < 0:
                            self._add("rank", self._value(v), Lit(2))
        for i in self.windows.merge:
            self._add("kernel_of", Var(self.windows.names(i)[0]), self._value(self.raw.source[i].inputs[1]))
        for a, b in self._equal_types():
            self._add("same_type", a, b)
        for i, j in combinations(self.windows.merge, 2):
            if self.windows.merge[i] == "beside" and self.windows.of[i] == self.windows.of[j]:
                self._add("same_type", self._value(self.raw.source[i].inputs[1]), self._value(self.raw.source[j].inputs[1]))
        if any(op.op in (*_ELEMENTWISE, "MatMul") for op in self.raw.source):
            self._add("floating", self._value(self.raw.mapped[0][0]))

    def _equal_types(self) -> Iterator[tuple[Term, Term]]:
        """Pairs of values that must be of one type: what elementwise operators join, on either side."""
        same: dict[Term, Term] = {}

        def top(v: Term) -> Term:
            while v in same:
                v = same[v]
            return v

        def typed(side: tuple[TasoOp, ...], v: Operand) -> Term | None:
            """A value of the same type as `v`."""
            i, _ = v
            if i >= 0 and side[i].op in (*_ELEMENTWISE, "Relu"):
                return typed(side, side[i].inputs[0])
            return None if i >= 0 and side is self.raw.target else self._value(v)

        for side in (self.raw.source, self.raw.target):
            for op in side:
                if op.op not in _ELEMENTWISE:
                    continue
                left, right = op.inputs
                pairs = [(typed(side, left), typed(side, right))]
                if side is self.raw.target and all(i >= 0 and side[i].op == "Concat" for i, _ in op.inputs):
                    pairs = [(typed(side, a), typed(side, b)) for a, b in zip(side[left[0]].inputs, side[right[0]].inputs, strict=True)]
                for a, b in pairs:
                    if a is not None and b is not None and top(a) != top(b):
                        same[top(b)] = top(a)
                        yield a, b

    def _tags(self, source: tuple[Term, ...], target: tuple[Term, ...]) -> tuple[str, ...]:
        ops = {op.op for op in self.raw.source}
        tags = ["taso", *(word for op, word in (("Conv", "conv"), ("MatMul", "matmul"), ("Concat", "concat")) if op in ops)]
        if not ops & {"Conv", "MatMul"} and ops & set(_ELEMENTWISE):
            tags.append("elementwise")
        if [_bare(t) for t in source] == [_bare(t) for t in target]:
            tags.append("identity")
        names = [{t.name for t in walk(root) if isinstance(t, Var) and t.name.startswith("x")} for root in source]
        if len(names) > 1 and not names[0] & names[1]:
            tags.append("disconnected")
        if any(op.op == "Relu" and op.inputs[0][0] >= 0 and self.raw.source[op.inputs[0][0]].op == "Conv" for op in self.raw.source):
            tags.append("unfused")
        if any(op.op == "Conv" and op.inputs[0] == op.inputs[1] for op in self.raw.source):
            tags.append("self-conv")
        if not self.guarded:
            tags.append("unguarded")
        return tuple(tags)


def _activation(op: TasoOp) -> int:
    found = op.parameters["ACTI"]
    if found not in (_NONE, _RELU):
        raise RuleError(f"activation {found} of a Conv is not known")
    return found


def _steps(op: TasoOp) -> tuple[tuple[str, Term], ...]:
    return (("strides", Lit((op.parameters["STRIDE_H"], op.parameters["STRIDE_W"]))), ("dilations", Lit((1, 1))))


def _bare(term: Term) -> Term:
    """The term without labels."""
    if not isinstance(term, Apply):
        return term
    return Apply(term.op, tuple(_bare(a) for a in term.args), term.attrs, term.rest)
