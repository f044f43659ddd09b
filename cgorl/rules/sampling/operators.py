"""How to draw the operands and attributes of each operator: shapes that fit those already bound, and corner cases often enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import onnx

from cgorl.ir.node import Value
from cgorl.rules.pattern import Apply, Each, Term, Var, walk
from cgorl.rules.sampling.attributes import Attributes, Unfit
from cgorl.rules.sampling.movements import MOVEMENTS, turned
from cgorl.rules.sampling.sketch import MARKS, Sampler, Shape, Sketch
from cgorl.rules.sampling.windows import conv, conv_transpose, pool

Made = tuple[list[Value | None], int]


def unary(s: Sketch, t: Apply, a: Attributes, want: Shape | None, sign: str = "", ranks: Sequence[int] = (0, 1, 2, 3, 4, 4, 5)) -> Made:
    """One operand of the result's shape; further ones broadcast into it."""
    for name, options in _PLAIN.get(t.op, {}).items():
        a(name, None, partial(s.rng.choice, options))
    x = s.make(t.args[0], s.shape_for(t, ranks) if want is None else want, sign=sign)
    if t.op == "Clip":
        low = s.rng.choice((None, -1.0, 0.0, 0.0))
        a("min", None, lambda: low)
        a("max", None, lambda: s.rng.choice((None, 1.0, 6.0)))
    if t.op.startswith("Global") and 0 in s.dims(x):
        raise Unfit("nothing to pool")
    return [x, *(s.make(arg, partner(s, s.dims(x), arg)) for arg in t.args[1:])], 1


def cast(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """An operand and the type to cast it to."""
    kinds = onnx.TensorProto
    a(
        "to",
        kinds.FLOAT,
        lambda: s.rng.choice((kinds.FLOAT, kinds.FLOAT, kinds.DOUBLE, kinds.FLOAT16, kinds.INT32, kinds.INT64, kinds.BOOL)),
    )
    return [s.make(t.args[0], s.shape() if want is None else want)], 1


def broadcast(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Operands that broadcast with one another, those first on which the others depend."""
    args = list(t.args)
    if len(args) == 1 and (isinstance(args[0], Each) or (isinstance(args[0], Var) and args[0].star)):
        shape = want if want is not None else s.shape_for(t, (1, 2, 3, 4))
        return list(s.several(args[0], lambda k: shape if s.coin(0.7) else partner(s, shape, args[0]))), 1
    if t.op == "Mod":
        a("fmod", 0, lambda: s.rng.choice((0, 1)))
    made: dict[int, Value | None] = {}
    now: Shape | None = want

    def urgency(k: int) -> int:
        arg = args[k]
        if s.known(arg) is not None:
            return 0
        if isinstance(arg, Var):
            inside = any(arg.name == v.name for b in args if isinstance(b, Apply) for v in walk(b) if isinstance(v, Var))
            return 1 if inside and not arg.optional else 3
        return 2

    for k in sorted(range(len(args)), key=urgency):
        if t.op == "Where" and k == 0:
            continue
        arg, sign = args[k], {"Div": "nonzero", "Pow": ""}.get(t.op, "") if k == 1 else "positive" if t.op == "Pow" and s.coin(0.5) else ""
        if not made:
            first = want if want is not None else s.shape_for(t, (0, 1, 2, 2, 3, 3, 4, 4, 5))
            if isinstance(arg, Var) and s.known(arg) is None and s.coin(0.15):
                first = partner(s, first, arg)
            made[k] = s.make(arg, first, sign=sign)
            now = s.dims(made[k])
        else:
            assert now is not None
            made[k] = s.make(arg, partner(s, now, arg) if isinstance(arg, Var) else now, sign=sign)
            if made[k] is not None:
                now = np.broadcast_shapes(now, s.dims(made[k])) if _fit(now, s.dims(made[k])) else now
    if t.op == "Where":
        assert now is not None
        made[0] = s.make(args[0], partner(s, now, args[0]), dtype=onnx.TensorProto.BOOL)
    return [made[k] for k in range(len(args))], 1


def _fit(a: Shape, b: Shape) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


def partner(s: Sketch, shape: Shape, term: Term) -> Shape:
    """A shape that broadcasts with `shape`: along one axis where conditions say so, into it mostly, rarely widening it."""
    along = s.leanings.along(term.name) if isinstance(term, Var) else ""
    if isinstance(term, Var) and s.leanings.is_single(term.name) and s.coin(0.95):
        return s.rng.choice(((), (1,), (1,) * len(shape)))
    if along == "last_vector" and s.coin(0.95):
        return shape[-1:]
    wanted = s.leanings.rank(term, s.env)
    if wanted is not None and s.coin(0.9):
        return shape[max(0, len(shape) - s.rng.randint(*wanted)) :]
    if along and s.coin(0.85) and shape:
        axis = min(1 if along == "channelwise" else len(shape) - 1, len(shape) - 1)
        full = tuple(d if k == axis else 1 for k, d in enumerate(shape))
        return s.rng.choice((full, full, full[axis:], full[axis:], full[1:] if axis else full, (1,), (), (1,) * len(shape)))
    draw = s.rng.random()
    if draw < 0.5:
        return shape
    if draw < 0.6:
        return (s.size(), *shape) if len(shape) < 5 else shape
    kept = shape[s.rng.randint(0, len(shape)) if s.coin(0.4) else 0 :]
    if draw < 0.75 and kept:
        axis = s.rng.randrange(len(kept))
        return tuple(d if k == axis else 1 for k, d in enumerate(kept))
    return tuple(s.size() if d == 1 and s.coin(0.2) else 1 if s.coin(0.35) else d for d in kept)


def matmul(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Two matrices, or stacks of them that broadcast, or vectors."""
    left, right = s.made(t.args[0], want), None
    if left is None:
        right = s.made(t.args[1], want)
    depth = s.size()
    if left is None:
        rank = len(want) if want is not None and len(want) > 1 else None
        base = want if want is not None and len(want) > 1 else s.shape_for(t.args[0], (1, 2, 2, 2, 3, 3, 4))
        if right is not None:
            inner = s.dims(right)
            depth = inner[-2] if len(inner) > 1 else inner[0] if inner else 1
            if rank is None and len(inner) > 2:
                base = (*inner[:-2], s.size(), 1)
        left = s.make(t.args[0], (*base[:-1], depth))
    x = s.dims(left)
    if not x:
        raise Unfit("a product of a scalar")
    if right is None:
        columns = want[-1] if want else s.size()
        matrix = (x[-1], columns)
        draw = 0.0 if s.leanings.rank(t.args[1], s.env) == (2, 2) and s.coin(0.9) else s.rng.random()
        if draw < 0.65:
            shape: Shape = matrix
        elif draw < 0.7:
            shape = (x[-1],)
        elif draw < 0.95:
            shape = (*(d if s.coin(0.8) else 1 for d in x[:-2]), *matrix)
        else:
            shape = (s.size(), *x[:-2], *matrix)[-4:]
        if isinstance(t.args[1], Apply) and len(x) > 2 and s.coin(0.7):
            shape = (*x[:-2], *matrix)
        right = s.make(t.args[1], shape)
    return [left, right], 1


def gemm(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Two matrices, either transposed, and a bias that broadcasts to their product."""
    scales = (1.0, 1.0, 2.0, -1.0, 3.0) if s.span else (1.0, 1.0, 0.5, 2.0, -1.25)
    a("alpha", 1.0, lambda: s.rng.choice(scales))
    a("beta", 1.0, lambda: s.rng.choice(scales))
    ta = a("transA", 0, lambda: s.rng.choice((0, 0, 1)))
    tb = a("transB", 0, lambda: s.rng.choice((0, 0, 1)))
    rows, columns = want if want is not None and len(want) == 2 else (s.batch(), s.size())
    right = s.made(t.args[1], None) if s.known(t.args[0]) is None and s.known(t.args[1]) is not None else None
    depth = s.size() if right is None else s.dims(right)[1 if tb else 0]
    x = s.make(t.args[0], (depth, rows) if ta else (rows, depth))
    if len(s.dims(x)) != 2:
        raise Unfit("Gemm takes matrices")
    rows, depth = s.dims(x)[::-1] if ta else s.dims(x)
    w = right if right is not None else s.make(t.args[1], (columns, depth) if tb else (depth, columns))
    columns = s.dims(w)[0 if tb else -1]
    shapes = [(columns,), (columns,), (1, columns), (rows, columns), (1,), (), (rows, 1)]
    bias = [s.make(arg, s.rng.choice(shapes)) for arg in t.args[2:]]
    if s.opset < 11 and (not bias or bias[0] is None):
        raise Unfit("Gemm needs a bias before opset 11")
    return [x, w, *bias], 1


def normalization(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Batch or instance normalization: one number a channel; BatchNormalization takes means and variances too."""
    a("epsilon", None, lambda: s.rng.choice((0.5, 0.125, 2.0**-7, 2.0**-10)))
    a("momentum", None, lambda: s.rng.choice((0.5, 0.75)))
    low = 2 if t.op == "BatchNormalization" else 3
    x = s.make(t.args[0], want if want is not None and len(want) >= low else s.shape_for(t.args[0], (low, 3, 4, 4, 5)))
    if len(s.dims(x)) < 2 or not s.dims(x)[1]:
        raise Unfit("no channels")
    if s.symbolic and s.dims(x)[1] in MARKS:
        raise Unfit("their number is that of the scales")
    size = (s.dims(x)[1],)
    return [x, *(s.make(arg, size, sign="positive" if k == 3 else "") for k, arg in enumerate(t.args[1:]))], 1


def layer_normalization(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Normalization over the last dims, scale and shift of their shape."""
    x = s.make(t.args[0], want if want else s.shape_for(t.args[0], (1, 2, 3, 3, 4)))
    rank = len(s.dims(x))
    if s.symbolic and any(d in MARKS for d in s.dims(x)[1:]):
        raise Unfit("the sizes are those of the scales")
    axis = a("axis", -1, lambda: s.rng.choice((-1, -1, rank - 1, s.rng.randrange(rank) if rank else 0)))
    a("epsilon", None, lambda: s.rng.choice((0.5, 0.125, 2.0**-7)))
    return [x, *(s.make(arg, s.dims(x)[axis:]) for arg in t.args[1:])], 1


def along_axis(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Softmax and its like."""
    x = s.make(t.args[0], want if want else s.shape_for(t.args[0], (1, 2, 3, 4)))
    a("axis", None, partial(_axis, s, len(s.dims(x))))
    return [x], 1


def _axis(s: Sketch, rank: int, low: int = 1) -> int:
    if rank < low:
        raise Unfit("no axis to choose")
    axis = s.rng.choice((rank - 1, s.rng.randrange(max(rank, 1)), s.rng.randrange(max(rank, 1)), min(1, rank - 1)))
    return axis - rank if s.coin(0.25) and s.opset >= 11 else axis


def concat(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Operands that differ along one axis at most."""
    base = want if want else s.shape_for(t, (1, 2, 3, 4, 4))
    ready = [k for k in (s.known(arg) for arg in t.args) if k]
    base = ready[0] if ready else base
    axis = a("axis", 1, lambda: _axis(s, len(base)))
    equal, size = s.coin(0.4), s.size()

    def shape(now: Shape, _: int = 0) -> Shape:
        at = axis % len(now)
        return tuple((size if equal else s.size()) if k == at else d for k, d in enumerate(now))

    made: dict[int, list[Value]] = {}
    now = base if ready else shape(base)
    for k in sorted(range(len(t.args)), key=lambda k: (s.known(t.args[k]) is None, not isinstance(t.args[k], Apply | Each))):
        arg = t.args[k]
        if isinstance(arg, Each) or (isinstance(arg, Var) and arg.star):
            made[k] = s.several(arg, partial(shape, now), 1 if len(t.args) > 1 else 2)
        else:
            one = s.make(arg, shape(now))
            if one is None:
                raise Unfit("an absent part")
            made[k] = [one]
        now = s.dims(made[k][0]) if made[k] else now
        if not now:
            raise Unfit("a scalar has no axis")
    return [v for k in range(len(t.args)) for v in made[k]], 1


def split(s: Sketch, t: Apply, a: Attributes, want: Shape | None) -> Made:
    """Parts along an axis, even or not."""
    arg = t.args[0]
    x = s.make(arg, _grown(s, want) if want else None if turned(arg) else s.shape_for(arg, (1, 2, 3, 4)))
    dims = s.dims(x)
    axis = a("axis", 0, lambda: _axis(s, len(dims)))
    if not -len(dims) <= axis < len(dims):
        raise Unfit("no such axis")
    size, count = dims[axis], s.rng.choice((1, 2, 2, 3))
    cuts = sorted(s.rng.randint(0 if s.empty else 1, max(size - 1, 1)) for _ in range(count - 1))
    parts = a("split", None, lambda: tuple(b - c for c, b in pairwise((0, *cuts, size))))
    if parts is None:
        parts = (size // 2,) * 2 if s.opset < 18 else None
        if s.opset >= 18:
            a.values["num_outputs"] = 2
    return [x], 2 if parts is None else len(parts)


def _grown(s: Sketch, want: Shape | None) -> Shape | None:
    if not want:
        return want
    axis = s.rng.randrange(len(want))
    return tuple(d * 2 if k == axis else d for k, d in enumerate(want))


_PLAIN: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "LeakyRelu": {"alpha": (0.5, 0.125, -0.5, 2.0, 0.0)},
    "ThresholdedRelu": {"alpha": (0.5, 1.0)},
    "Elu": {"alpha": (0.5, 1.0)},
    "Celu": {"alpha": (0.5, 1.0)},
    "HardSigmoid": {"alpha": (0.25, 0.5), "beta": (0.5, 0.25)},
    "Gelu": {"approximate": ("none", "tanh")},
}


def _table() -> Mapping[str, Sampler]:
    many = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Where", "Mod", "And", "Or", "Xor", "Equal", "Greater", "Less")
    found: dict[str, Sampler] = dict.fromkeys((*many, "GreaterOrEqual", "LessOrEqual", "PRelu"), broadcast)
    found |= {op: partial(unary, sign="positive") for op in ("Sqrt", "Log")} | {"Reciprocal": partial(unary, sign="nonzero"), "": unary}
    found |= {op: partial(unary, ranks=(3, 4, 4, 5)) for op in ("GlobalAveragePool", "GlobalMaxPool")}
    found |= {"MatMul": matmul, "Gemm": gemm, "Conv": conv, "ConvTranspose": conv_transpose, "Cast": cast, "Concat": concat, "Split": split}
    found |= dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool) | dict.fromkeys(
        ("BatchNormalization", "InstanceNormalization"), normalization
    )
    found |= {"LayerNormalization": layer_normalization} | dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along_axis)
    found.update(MOVEMENTS)
    return found


SAMPLERS: Mapping[str, Sampler] = _table()
