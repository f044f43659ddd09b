"""Whether float64 evaluates a graph on integers exactly: only ring operations and movements, nothing past 2^53."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cgorl.ir.forms import form
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value

LIMIT = 2.0**53
"""Integers below it, and sums of them below it, are exact in float64."""

_MOVES = frozenset(
    {"Concat", "Split", "Slice", "Pad", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Gather", "Expand", "Tile", "Identity"}
    | {"Relu", "Neg", "Abs", "Sign", "Max", "Min", "Clip", "Where", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"},
)
_Bound = Callable[[list[float], list[tuple[int, ...]], tuple[int, ...]], float]


def _product(places: tuple[int, int], terms: Callable[[list[tuple[int, ...]]], int]) -> _Bound:
    def bound(b: list[float], shapes: list[tuple[int, ...]], out: tuple[int, ...]) -> float:
        return b[places[0]] * b[places[1]] * max(1, terms(shapes)) + sum(b[2:])

    return bound


_BOUNDS: Mapping[str, _Bound] = {
    "Add": lambda b, _, o: sum(b),
    "Sub": lambda b, _, o: sum(b),
    "Sum": lambda b, _, o: sum(b),
    "Mul": lambda b, _, o: b[0] * b[1],
    "MatMul": _product((0, 1), lambda s: s[0][-1] if s[0] else 1),
    "Conv": _product((0, 1), lambda s: math.prod(s[1][1:])),
    "ConvTranspose": _product((0, 1), lambda s: math.prod(s[1])),
    "ReduceSum": lambda b, s, o: b[0] * max(1, math.prod(s[0])),
    "ReduceSumSquare": lambda b, s, o: b[0] ** 2 * max(1, math.prod(s[0])),
}

EXACT = _MOVES | _BOUNDS.keys() | {"Gemm"}
"""The operators that keep integers integers."""


def only_moves(graph: Graph, values: Iterable[Value]) -> bool:
    """Whether computing `values` moves and casts numbers and does nothing else; then types matter, and equal is equal."""
    seen: set[int] = set()
    stack = [v.node for v in values]
    while stack:
        i = stack.pop()
        node = graph.nodes[i]
        if i not in seen:
            seen.add(i)
            stack.extend(v.node for v in node.reads())
            if not node.is_source and node.op != "Cast" and node.op not in _MOVES:
                return False
    return any(graph.nodes[i].op == "Cast" for i in seen)


def bound(graph: Graph, values: Iterable[Value], fed: Mapping[int, float], shapes: Mapping[int, tuple[int, ...]]) -> float:
    """A bound on every number met in computing `values` from inputs of at most `fed[i]`; inf if some step may leave the integers.

    `shapes` are of the inputs; where the shape of a value is not all known, `shapes`' largest stands for it.
    """
    found: dict[int, float] = {}
    largest = max((max(1, math.prod(s)) for s in shapes.values()), default=1)
    worst = 0.0
    stack = [v.node for v in values]
    while stack:
        i = stack[-1]
        node = graph.nodes[i]
        waits = [v.node for v in node.reads() if v.node not in found]
        if waits:
            stack += waits
            continue
        stack.pop()
        if i not in found:
            found[i] = fed[i] if i in fed else _step(graph, i, found, largest)
            worst = max(worst, found[i])
    return worst


def _step(graph: Graph, i: int, found: Mapping[int, float], largest: int) -> float:
    node = graph.nodes[i]
    if node.holds_tensor:
        array = node.tensor.array()
        if array.dtype.kind in "fiub":
            wide = array.astype(np.float64)
            whole = bool(np.isfinite(wide).all() and (wide == np.rint(wide)).all())
            return float(np.abs(wide).max(initial=0.0)) if whole else math.inf
        return math.inf
    told = form(graph, i)
    b = [found[v.node] for v in told.inputs if v is not None]
    shapes = [_shape(graph, v, largest) for v in told.inputs if v is not None]
    extra = [told.attrs.get(k) for k in ("value", "min", "max", "alpha", "beta")] if node.op in ("Pad", "Clip", "Gemm") else []
    numbers = [float(x) for x in extra if isinstance(x, int | float)]
    if any(not math.isfinite(x) or x != round(x) for x in numbers):
        return math.inf
    if node.op in _MOVES:
        return max([*b, *map(abs, numbers), 1.0])
    if node.op == "Gemm":
        scale = max([1.0, *map(abs, numbers)])
        return scale * (b[0] * b[1] * max(1, *shapes[0]) + sum(b[2:]))
    rule = _BOUNDS.get(node.op)
    return math.inf if rule is None else max(1.0, rule(b, shapes, ()))


def _shape(graph: Graph, v: Value, largest: int) -> tuple[int, ...]:
    kind = graph.type(v)
    if kind is None or kind.shape is None:
        return (largest,)
    return tuple(d if isinstance(d, int) else largest for d in kind.shape)
