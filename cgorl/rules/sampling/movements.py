"""How to draw operators that move or reduce data: reshapes, transpositions, slices, pads, reductions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx

from cgorl.ir.node import Value
from cgorl.rules.pattern import Apply, Lit, Term
from cgorl.rules.sampling.attributes import Attributes, Unfit
from cgorl.rules.sampling.sketch import Sampler, Shape, Sketch

Made = tuple[list[Value | None], int]


def transpose(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A permutation: any, a familiar one, or the inverse of one drawn before."""
    fixed = a.fixed("perm")
    shape = want
    if want is not None and fixed is not None and len(fixed) == len(want):
        shape = tuple(want[fixed.index(k)] for k in range(len(want)))
    elif want is not None:
        shape = tuple(s.rng.sample(want, len(want)))
    elif fixed is not None:
        shape = s.shape((len(fixed),))
    x = s.make(t.args[0], s.shape_for(t.args[0], (2, 3, 3, 4, 4)) if shape is None else shape)
    dims = s.dims(x)
    rank = len(dims)

    def draw() -> tuple[int, ...]:
        before = [v for v in s.env.values() if isinstance(v, tuple) and sorted(v, key=str) == list(range(rank))]
        if before and s.coin(0.45):
            last = before[-1]
            return tuple(last.index(k) for k in range(rank))
        if want is not None and sorted(want) == sorted(dims) and s.coin(0.9):
            left = list(range(rank))
            found = []
            for d in want:
                k = s.rng.choice([i for i in left if dims[i] == d])
                left.remove(k)
                found.append(k)
            return tuple(found)
        order = list(range(rank))
        swapped = [*order[:-2], *order[-1:], *order[-2:-1]]
        familiar = [order, order[::-1], swapped, [0, *order[2:], 1], [0, rank - 1, *order[1:-1]]] if rank > 1 else [order]
        return tuple(s.rng.choice(familiar) if s.coin(0.5) else s.rng.sample(order, rank))

    a("perm", None, draw)
    return [x], 1


def turned(term: Term) -> bool:
    """Whether the term is a transposition by a permutation that the rule spells out, which knows its rank best."""
    return isinstance(term, Apply) and term.op == "Transpose" and isinstance(dict(term.attrs).get("perm"), Lit)


def reshape(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A new shape with as many numbers, told in full, by -1 or by 0."""
    shape = want
    if s.leanings.of_one(t):
        want = (1, *(want[1:] if want is not None and len(want) == 4 else (s.size(), s.size(), s.size())))
        shape = (1, want[1], want[2] * want[3])
    elif want is not None and len(want) == 5 and s.leanings.cuts_heads(t):
        shape = (*want[:2], math.prod(want[2:]))
    elif want is not None:
        shape = _factors(s, math.prod(want)) if s.coin(0.6) else want
    arg = t.args[0]
    if want is None and turned(arg):
        x = s.make(arg, None)
    else:
        x = s.make(arg, s.shape_for(arg, (1, 2, 3, 4)) if shape is None else shape)
    dims = s.dims(x)
    total = math.prod(dims)

    def draw() -> tuple[int, ...]:
        if want is not None and math.prod(want) == total:
            found = list(want)
        elif dims and s.coin(0.4):
            found = [dims[0], *_factors(s, math.prod(dims[1:]))]
        else:
            found = list(_factors(s, total))
        if found and s.coin(0.4) and 0 not in found:
            found[s.rng.randrange(2 if s.leanings.cuts_heads(t) else len(found))] = -1
        if found and dims and found[0] == dims[0] and s.coin(0.3):
            found[0] = 0
        return tuple(found)

    a("shape", None, draw)
    a("allowzero", 0, lambda: 0)
    return [x], 1


def _factors(s: Sketch, total: int) -> Shape:
    found = []
    for _ in range(s.rng.choice((0, 1, 1, 2, 3))):
        d = s.rng.choice([k for k in range(1, total + 1) if total % k == 0] or [1])
        found.append(d)
        total //= d
    return (*found, total)


def squeeze(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Dims of 1 taken out."""
    base = list(want if want is not None else s.shape((0, 1, 2, 3)))
    fixed = a.fixed("axes")
    for axis in sorted(fixed or [s.rng.randint(0, len(base)) for _ in range(s.rng.choice((1, 1, 2)))]):
        base.insert(axis % (len(base) + 1), 1)
    x = s.make(t.args[0], tuple(base))
    ones = [k for k, d in enumerate(s.dims(x)) if d == 1]
    a("axes", None, lambda: tuple(_signed(s, sorted(s.rng.sample(ones, s.rng.randint(1, len(ones)))), len(s.dims(x)))) if ones else None)
    return [x], 1


def _signed(s: Sketch, axes: list[int], rank: int) -> list[int]:
    return [k - rank for k in axes] if s.opset >= 11 and s.coin(0.25) else axes


def unsqueeze(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Dims of 1 put in."""
    ones = [k for k, d in enumerate(want or ()) if d == 1]
    shape = s.shape_for(t.args[0], (0, 1, 2, 3)) if want is None else want
    chosen: list[int] | None = None
    if want is not None and ones:
        chosen = sorted(s.rng.sample(ones, s.rng.randint(1, len(ones))))
        shape = tuple(d for k, d in enumerate(want) if k not in chosen)
    x = s.make(t.args[0], shape)
    rank = len(s.dims(x))
    if chosen is None or s.dims(x) != shape:
        count = s.rng.choice((1, 1, 2))
        chosen = sorted(s.rng.sample(range(rank + count), count))
    a("axes", None, lambda: tuple(_signed(s, chosen, rank + len(chosen))))
    return [x], 1


def flatten(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Two dims out of any number."""
    x = s.make(t.args[0], s.shape_for(t.args[0], (1, 2, 3, 4)) if want is None or s.coin(0.5) else (*want, 1))
    rank = len(s.dims(x))
    a("axis", 1, lambda: s.rng.randint(-rank if s.opset >= 11 else 0, rank) if s.coin(0.6) else min(1, rank))
    return [x], 1


def expand(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A shape broadcast to."""
    shape = want if want is not None else s.shape_for(t.args[0], (1, 2, 3))
    x = s.make(t.args[0], tuple(1 if s.coin(0.5) else d for d in shape)[s.rng.choice((0, 0, 0, 1)) :])
    dims = s.dims(x)

    def draw() -> tuple[int, ...]:
        if want is not None:
            return want
        full = tuple(s.size() if d == 1 and s.coin(0.7) else 1 if s.coin(0.2) else d for d in dims)
        return (s.size(), *full) if s.coin(0.3) else full

    a("shape", None, draw)
    return [x], 1


def tile(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Copies laid side by side."""
    x = s.make(t.args[0], s.shape_for(t.args[0], (1, 2, 3)) if want is None else want)
    a("repeats", None, lambda: tuple(s.rng.choice((1, 1, 2, 3)) for _ in s.dims(x)))
    return [x], 1


def slices(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A part of some axes, forward or (rarely) backward."""
    shape = s.shape_for(t.args[0], (1, 2, 3, 4)) if want is None else tuple(d + s.rng.choice((0, 0, 1, 2)) for d in want)
    x = s.make(t.args[0], shape)
    dims = s.dims(x)
    rank = len(dims)
    if not rank:
        raise Unfit("a scalar has no axes")
    said = a.fixed("axes")
    axes = list(said) if said is not None else sorted(s.rng.sample(range(rank), s.rng.choice([k for k in (1, 1, 1, 2) if k <= rank])))
    if want is not None and len(want) == rank and said is None:
        axes = [k for k in range(rank) if dims[k] != want[k]] or axes
    starts, ends, steps = [], [], []
    for k in axes:
        size = dims[k % -rank if k < 0 else k % rank]
        length = min(size, want[k]) if want is not None and len(want) == rank else s.rng.randint(min(1, size), max(size, 1))
        start = s.rng.randint(0, max(size - length, 0))
        step = s.rng.choice((1, 1, 1, 1, 2)) if s.opset >= 10 and want is None else 1
        end = start + length
        if s.opset >= 10 and step == 1 and s.coin(0.06) and size:
            start, end, step = size - 1, -size - 1, -1
        elif end == size and s.coin(0.4):
            end = 2**31 - 1
        elif s.coin(0.2) and end < size:
            end -= size
        starts.append(start)
        ends.append(end)
        steps.append(step)
    a("axes", None, lambda: tuple(_signed(s, axes, rank)))
    a("starts", None, lambda: tuple(starts))
    a("ends", None, lambda: tuple(ends))
    a("steps", None, lambda: tuple(steps) if any(k != 1 for k in steps) or s.coin(0.5) else None)
    return [x], 1


def gather(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Places along an axis, chosen by a scalar, vector or matrix of indices."""
    x = s.make(t.args[0], s.shape_for(t.args[0], (1, 2, 3, 4)) if want is None else want)
    dims = s.dims(x)
    axis = a("axis", 0, lambda: s.rng.randrange(len(dims)) - (len(dims) if s.coin(0.2) and s.opset >= 11 else 0) if dims else 0)
    if not dims or not -len(dims) <= axis < len(dims) or not dims[axis]:
        raise Unfit("nothing to gather from")
    shape = s.rng.choice(((), (1,), (2,), (dims[axis],), (2, 1)))
    return [x, s.make(t.args[1], shape, dtype=onnx.TensorProto.INT64, below=dims[axis])], 1


def pad(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Margins, sometimes negative, sometimes of another kind than constant."""
    free = s.shape_for(t.args[0], (1, 2, 3, 4, 4))
    x = s.make(
        t.args[0], free if want is None else tuple(max(1, d - s.rng.choice((0, 0, 1, 2))) if k > 1 else d for k, d in enumerate(want))
    )
    dims = s.dims(x)
    mode = a("mode", "constant", lambda: s.rng.choice(("constant", "constant", "reflect", "edge")))

    def draw() -> tuple[int, ...]:
        full = [s.rng.choice((0, 0, 1, 1, 2)) for _ in range(2 * len(dims))]
        if want is not None and len(want) == len(dims) and s.coin(0.8):
            full = [0] * (2 * len(dims))
            for k, d in enumerate(want):
                full[k] = s.rng.randint(0, max(0, d - dims[k]))
                full[k + len(dims)] = d - dims[k] - full[k]
        elif len(dims) > 2 and s.coin(0.5):
            full = [0 if k % len(dims) < 2 else p for k, p in enumerate(full)]
        if mode == "reflect":
            full = [min(p, dims[k % len(dims)] - 1) for k, p in enumerate(full)]
        elif s.coin(0.05):
            full = [-1 if p == 1 and dims[k % len(dims)] > 2 else p for k, p in enumerate(full)]
        return tuple(full)

    a("pads", None, draw)
    a("value", 0.0, lambda: s.rng.choice((0.0, 0.0, 1.0, -2.0)))
    return [x], 1


def reduce(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """A reduction over some axes, kept as 1 or taken out."""
    keep = a("keepdims", 1, lambda: s.rng.choice((0, 1)))
    shape = s.shape_for(t.args[0], (1, 2, 3, 4))
    if want is not None and keep:
        shape = tuple(s.size() if d == 1 else d for d in want)
    elif want is not None:
        at = s.rng.randint(0, len(want))
        shape = (*want[:at], s.size(), *want[at:])
    x = s.make(t.args[0], shape)
    rank = len(s.dims(x))
    chosen = sorted(s.rng.sample(range(rank), s.rng.randint(1, min(2, rank)))) if rank else []
    if s.coin(0.35) and rank:
        chosen = [rank - 1] if s.coin(0.5) or rank < 3 else list(range(2, rank))
    if want is not None and len(s.dims(x)) == len(shape):
        chosen = [k for k, d in enumerate(shape) if d != want[k]] if keep else [at]
        chosen = chosen or [rank - 1]
    a("axes", None, lambda: tuple(_signed(s, chosen, rank)) if chosen and s.coin(0.97) else None)
    a("noop_with_empty_axes", 0, lambda: s.rng.choice((0, 0, 0, 1)))
    return [x], 1


MOVEMENTS: Mapping[str, Sampler] = {
    "Transpose": transpose,
    "Reshape": reshape,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Flatten": flatten,
    "Expand": expand,
    "Tile": tile,
    "Slice": slices,
    "Gather": gather,
    "Pad": pad,
    **{f"Reduce{kind}": reduce for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")},
}
