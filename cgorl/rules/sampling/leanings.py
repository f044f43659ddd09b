"""Leanings: what the conditions of a rule make likely in a random draw, so that enough draws fulfil them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any, Protocol

import onnx

from cgorl.ir.tensor import Array
from cgorl.rules.pattern import Apply, Lit, Term, Var, walk
from cgorl.rules.rule import Rule

_CHANCE = 0.85
_DATA = frozenset({"constant", "floating", "same_dtype", "same_type"})


class Draw(Protocol):
    """What a leaning sees of the draw under way."""

    rng: random.Random
    env: dict[str, Any]


class Leanings:
    """The conditions of one rule, asked by the names that they speak of."""

    def __init__(self, rule: Rule) -> None:
        """Reads the conditions of `rule`."""
        self._of = {c.op: [d for d in rule.conditions if d.op == c.op] for c in rule.conditions}
        self._constant = {a.name for c in self._of.get("constant", ()) for a in c.args if isinstance(a, Var)}
        self._later: dict[str, Any] = {}
        self._whole = 0
        sides = (*rule.conditions, *rule.target, *(w for _, w in rule.where))
        self._single = {_name(t) for side in sides for t in walk(side) if isinstance(t, Apply) and t.op == "number_in"}

    def is_constant(self, name: str) -> bool:
        """Whether the name must stand for a constant."""
        return name in self._constant or self.is_single(name)

    def is_single(self, name: str) -> bool:
        """Whether the name must stand for one number."""
        return name in self._single or any(_name(c.args[0]) == name for op in ("number", "number_alone") for c in self._of.get(op, ()))

    def number(self, name: str) -> float | None:
        """A number that some condition puts beside the name of a value."""
        for op, found in self._of.items():
            for c in found if op not in _DATA and not op.startswith("rank") else ():
                numbers = [a.value for a in c.args if isinstance(a, Lit) and isinstance(a.value, int | float)]
                if numbers and _name(c.args[0]) == name:
                    return float(numbers[0])
        return None

    def rank(self, term: Term, env: Mapping[str, Any]) -> tuple[int, int] | None:
        """The least and greatest rank that the conditions let `term` have, if they speak of it."""
        name = term.name if isinstance(term, Var) else term.label if isinstance(term, Apply) else ""
        for op, high in (("rank", 0), ("rank_at_least", 5)):
            for c in self._of.get(op, ()):
                if name and _name(c.args[0]) == name and isinstance(c.args[1], Lit) and isinstance(c.args[1].value, int):
                    return c.args[1].value, high or c.args[1].value
        return None

    def numbered(self, name: str, shape: tuple[int, ...], dtype: int, rng: random.Random) -> tuple[tuple[int, ...], int, bool]:
        """Shape and element type for the name where a condition makes it a number of a row, and whether it must count from 0."""

        def said(op: str) -> bool:
            return any(_name(c.args[0]) == name for c in self._of.get(op, ()))

        if said("single_last") and shape and rng.random() < _CHANCE:
            shape = (*shape[:-1], 1)
        counts = said("counting")
        if counts:
            shape = (*(1,) * rng.choice((0, 0, len(shape) - 1)), rng.choice((1, 2, 3, 4))) if shape else (3,)
        if counts or said("indices"):
            self._whole = dtype = self._whole or rng.choice((onnx.TensorProto.INT64, onnx.TensorProto.INT32))
        return shape, dtype, counts

    def along(self, name: str) -> str:
        """`channelwise`, `columnwise` or `last_vector` where a condition says that of the name."""
        return next(
            (op for op in ("channelwise", "columnwise", "last_vector") for c in self._of.get(op, ()) if _name(c.args[0]) == name), ""
        )

    def of_one(self, node: Apply) -> bool:
        """Whether the node's result must be of four dims with a first of 1."""
        return bool(node.label) and any(_name(c.args[0]) == node.label for c in self._of.get("single_first", ()))

    def cuts_heads(self, reshape: Apply) -> bool:
        """Whether a Reshape must cut its last axis into parts and heads."""
        names = {v.name for k, v in reshape.attrs if k == "shape" and isinstance(v, Var)}
        return any(_name(c.args[0]) in names for c in self._of.get("heads_of", ()))

    def keeps_channels(self, data: Term, weight: Term) -> bool:
        """Whether a convolution of `data` by `weight` must give as many channels as it takes."""
        return any(
            isinstance(data, Var) and _name(c.args[0]) == data.name and isinstance(weight, Var) and _name(c.args[1]) == weight.name
            for c in self._of.get("same_channels", ())
        )

    def factor(self, weight: Term) -> int:
        """Into how many blocks on the diagonal a convolution's weight must fall."""
        return next((n for w, _, n in self._blocks() if isinstance(weight, Var) and w == weight.name), 1)

    def _blocks(self) -> list[tuple[str, str, int]]:
        found = [c.args for c in self._of.get("block_diagonal", ())]
        return [(_name(w), _name(g), f.value) for w, g, f in found if isinstance(f, Lit) and isinstance(f.value, int)]

    def blocks(self, name: str, array: Array, env: Mapping[str, Any]) -> Array:
        """The contents of a weight with zeros off the blocks that it must fall into."""
        for weight, group, factor in self._blocks():
            g = env.get(group)
            if weight != name or not isinstance(g, int) or array.ndim < 3 or array.shape[0] % (g * factor) or array.shape[1] % factor:
                continue
            blocks = array.reshape(g, factor, -1, factor, array.shape[1] // factor, *array.shape[2:]).copy()
            for i, j in permutations(range(factor), 2):
                blocks[:, i, :, j] = 0
            return blocks.reshape(array.shape)
        return array

    def forget(self) -> None:
        """Drops what was put by for names still to come."""
        self._later.clear()

    def attribute(self, name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        """A value for the attribute called `name`: as the conditions like it, or as `plain` draws it."""
        if name in self._later:
            return self._later.pop(name)
        if draw.rng.random() > _CHANCE:
            return plain()
        for op, lean in _LEANINGS.items():
            for c in self._of.get(op, ()):
                names = [_name(a) for a in c.args]
                if name in names:
                    found = lean(self, names, name, draw, plain)
                    if found is not None:
                        return found
        return plain()

    def _divides(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        factor = next(c.args[1].value for c in self._of["divides"] if _name(c.args[0]) == name and isinstance(c.args[1], Lit))
        return factor * draw.rng.choice((1, 1, 2)) if isinstance(factor, int) else None

    def _number(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        """A number that a condition names beside the attribute."""
        return self.number(name)

    def _zeros(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        found = plain()
        return (0,) * len(found) if isinstance(found, tuple) else found

    def _ones(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        found = plain()
        return (1,) * len(found) if isinstance(found, tuple) else found

    def _spatial_only(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        found = plain()
        half = len(found) // 2
        return tuple(0 if k % half < 2 else max(0, p) for k, p in enumerate(found))

    def _channels_only(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        half = len(plain()) // 2
        return tuple(draw.rng.choice((1, 2)) if k == half + 1 else 0 for k in range(2 * half)) if half > 2 else None

    def _cuts_front(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        half = len(plain()) // 2
        lead, tail = ([draw.rng.choice(choice) for _ in range(half - 2)] for choice in ((0, -1, -1, -2), (0, 1, 1, 2)))
        return (0, 0, *lead, 0, 0, *tail) if half > 2 else None

    def _lowest(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        return -math.inf

    def _covers(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        """The smaller window, inside the larger."""
        k1, p1, k2, p2, d = names
        if name != k2 or not all(n in draw.env for n in (k1, p1, d)):
            return None
        kernel, pads, dilations = draw.env[k1], draw.env[p1], draw.env[d]
        if len(pads) != 2 * len(kernel) or len(kernel) != len(dilations):
            return None
        small, lead, tail = [], [], []
        for i, (k, step) in enumerate(zip(kernel, dilations, strict=True)):
            a = draw.rng.randint(0, min(k - 1, pads[i] // step))
            b = draw.rng.randint(0, min(k - 1 - a, pads[len(kernel) + i] // step))
            small.append(k - a - b)
            lead.append(pads[i] - a * step)
            tail.append(pads[len(kernel) + i] - b * step)
        self._later[p2] = (*lead, *tail)
        return tuple(small)

    def _holds_centre(self, names: list[str], name: str, draw: Draw, plain: Callable[[], Any]) -> Any:
        """Strides of 1, pads that keep the size with a tap in place."""
        kernel, pads, strides, dilations = names
        if name == strides:
            return (1,) * len(plain())
        if name != pads or kernel not in draw.env or dilations not in draw.env:
            return None
        lead = [draw.rng.randrange(k) for k in draw.env[kernel]]
        steps = draw.env[dilations]
        tail = [k - 1 - a for k, a in zip(draw.env[kernel], lead, strict=True)]
        return (*(a * d for a, d in zip(lead, steps, strict=True)), *(a * d for a, d in zip(tail, steps, strict=True)))


_LEANINGS: Mapping[str, Callable[[Leanings, list[str], str, Draw, Callable[[], Any]], Any]] = {
    "zeros": Leanings._zeros,
    "ones": Leanings._ones,
    "spatial_only": Leanings._spatial_only,
    "channels_only": Leanings._channels_only,
    "cuts_front": Leanings._cuts_front,
    "lowest": Leanings._lowest,
    "covers": Leanings._covers,
    "holds_centre": Leanings._holds_centre,
    "divides": Leanings._divides,
    "near": Leanings._number,
    "not_above": Leanings._number,
    "not_below": Leanings._number,
}


def _name(term: Term) -> str:
    """The name at the heart of a condition's argument: `x`, `result(y)`."""
    if isinstance(term, Var):
        return term.name
    return _name(term.args[0]) if isinstance(term, Apply) and len(term.args) == 1 else ""
