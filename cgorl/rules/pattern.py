"""Terms: the tree that both sides of a rule are made of, and its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "MatMul": "@"}
_BINARY: dict[type[ast.operator], str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.MatMult: "MatMul"}


class RuleError(ValueError):
    """A rule's text that cannot be understood; the message names rule and place."""


@dataclass(frozen=True, slots=True)
class Var:
    """A name: any value (or attribute) in a source, what it was bound to in a target.

    `[name]` may be absent; `*name` stands for several, one for each repetition of what it is in.
    """

    name: str
    optional: bool = False
    star: bool = False

    def __str__(self) -> str:
        """The rule text of the term."""
        text = ("*" if self.star else "") + self.name
        return f"[{text}]" if self.optional else text


@dataclass(frozen=True, slots=True)
class Lit:
    """A number, text or tuple of them."""

    value: int | float | str | tuple[int | float | str, ...]

    def __str__(self) -> str:
        """The rule text of the term."""
        return repr(list(self.value)) if isinstance(self.value, tuple) else repr(self.value)


@dataclass(frozen=True, slots=True)
class Apply:
    """An ONNX operator (capital) or a function of the vocabulary (small) applied to terms.

    `rest` names the attributes not spelled out (`**rest`); `label` names the matched node (`label := Conv(...)`).
    """

    op: str
    args: tuple[Term, ...]
    attrs: tuple[tuple[str, Term], ...] = ()
    rest: str = ""
    label: str = ""
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        """Keeps the hash, which all that is remembered of a term is found by."""
        object.__setattr__(self, "_hash", hash((self.op, self.args, self.attrs, self.rest, self.label)))

    def __hash__(self) -> int:
        """The same for equal terms."""
        return self._hash

    @property
    def is_operator(self) -> bool:
        """Whether the term is an ONNX operator, not a function of the vocabulary."""
        return self.op[0].isupper()

    def __str__(self) -> str:
        """The rule text of the term."""
        plain = not self.attrs and not self.rest and not self.label and not any(_starred(a) for a in self.args)
        if self.op in INFIX and len(self.args) == 2 and plain:
            return f"({self.args[0]} {INFIX[self.op]} {self.args[1]})"
        parts = [bare(a) for a in self.args] + [f"{k}={bare(v)}" for k, v in self.attrs] + ([f"**{self.rest}"] if self.rest else [])
        text = f"{self.op}({', '.join(parts)})"
        return f"({self.label} := {text})" if self.label else text


@dataclass(frozen=True, slots=True)
class Each:
    """A term repeated (`*Relu(*xs)`): in a source, operands or roots that all look so; in a target, one for each of its `*names`.

    Of Split it means all its results, in order (`*Split(x, axis=a)`).
    """

    inner: Apply

    def __str__(self) -> str:
        """The rule text of the term."""
        return f"*{self.inner}"


Term = Var | Lit | Apply | Each


def bare(term: Term) -> str:
    """The text of a term without parentheses around the whole of it."""
    text = str(term)
    infix = isinstance(term, Apply) and not term.label and text.startswith("(")
    return text[1:-1] if infix else text


def _starred(term: Term) -> bool:
    return isinstance(term, Each) or (isinstance(term, Var) and term.star)


def parse_term(text: str) -> Term:
    """The term that `text` spells, in Python's expression syntax. Raises RuleError."""
    return _term(_parse(text))


def parse_terms(text: str) -> tuple[Term, ...]:
    """The terms that `text` spells, separated by commas. Raises RuleError."""
    tree = _parse(text)
    return tuple(_term(t) for t in tree.elts) if isinstance(tree, ast.Tuple) else (_term(tree),)


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError as e:
        raise RuleError(f"cannot read '{' '.join(text.split())}': {e.msg}") from None


def _term(tree: ast.expr) -> Term:
    match tree:
        case ast.Name(id=name):
            return Var(name)
        case ast.List(elts=[ast.Name(id=name)]):
            return Var(name, optional=True)
        case ast.List(elts=[ast.Starred(value=ast.Name(id=name))]):
            return Var(name, optional=True, star=True)
        case ast.Starred(value=ast.Name(id=name)):
            return Var(name, star=True)
        case ast.Starred(value=repeated):
            made = _term(repeated)
            if not isinstance(made, Apply):
                raise RuleError(f"only an operator or a name can be repeated: {ast.unparse(tree)}")
            return Each(made)
        case ast.Constant(value=int() | float() | str() as value):
            return Lit(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return Lit(-value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return Apply("Neg", (_term(inner),))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            parts = [_term(i) for i in items]
            if not all(isinstance(p, Lit) and not isinstance(p.value, tuple) for p in parts):
                raise RuleError(f"a list may hold numbers and text only: {ast.unparse(tree)}")
            return Lit(tuple(p.value for p in parts))  # type: ignore[union-attr, misc]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return Apply(_BINARY[type(op)], (_term(left), _term(right)))
        case ast.NamedExpr(target=ast.Name(id=label), value=inner):
            labelled = _term(inner)
            if not isinstance(labelled, Apply):
                raise RuleError(f"only an operator can have a label: {ast.unparse(tree)}")
            return Apply(labelled.op, labelled.args, labelled.attrs, labelled.rest, label)
        case ast.Call(func=ast.Name(id=op_name), args=args, keywords=keywords):
            rest = next((k.value.id for k in keywords if k.arg is None and isinstance(k.value, ast.Name)), "")
            attrs = tuple((k.arg, _term(k.value)) for k in keywords if k.arg is not None)
            return Apply(op_name, tuple(_term(a) for a in args), attrs, rest)
    raise RuleError(f"not a term: {ast.unparse(tree)}")


def walk(term: Term) -> Iterator[Term]:
    """The term and all terms inside it, itself first."""
    yield term
    if isinstance(term, Each):
        yield from walk(term.inner)
    if isinstance(term, Apply):
        for a in term.args:
            yield from walk(a)
        for _, a in term.attrs:
            yield from walk(a)


@lru_cache(maxsize=4096)
def depth(term: Term) -> int:
    """How many operators deep a source pattern reaches."""
    if isinstance(term, Each):
        return depth(term.inner)
    if not isinstance(term, Apply):
        return 0
    return 1 + max((depth(a) for a in term.args), default=0)


@lru_cache(maxsize=4096)
def names(term: Term) -> frozenset[str]:
    """The names of values and attributes inside a term."""
    return frozenset(t.name for t in walk(term) if isinstance(t, Var))


@lru_cache(maxsize=4096)
def stars(term: Term) -> frozenset[str]:
    """The `*names` inside a term."""
    return frozenset(t.name for t in walk(term) if isinstance(t, Var) and t.star)


def operator(term: Term) -> Apply:
    """The operator of a root, repeated or not."""
    found = term.inner if isinstance(term, Each) else term
    assert isinstance(found, Apply)
    return found
