"""One function for each kind of node that a drawn model may have; `KINDS` are those for any model, `BODIES` those with bodies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh

from cgorl.ir.run import random_array
from tests.sketch import ANY, FLOATS, NUMBERS, WIDE, Known, Sketch, info


def unary(s: Sketch) -> None:
    v = s.pick(ANY)
    ops = ["Identity"]
    if v.dtype in FLOATS:
        ops += ["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Floor", "Ceil", "Sqrt_"]
    if v.dtype in (T.FLOAT, T.FLOAT16):
        ops += ["LeakyRelu", "Elu", "Softplus", "Erf", "HardSigmoid", "Sin"]
    if v.dtype in (T.INT32, T.INT64):
        ops += ["Abs", "Sign"]
    if v.dtype == T.BOOL:
        ops += ["Not", "Not"]
    op = s.of(ops)
    if op == "Sqrt_":
        v, op = s.add("Abs", [v], [(v.dtype, v.shape)])[0], "Sqrt"
    attrs = {"alpha": s.of((0.01, 0.5, 1.0))} if op in ("LeakyRelu", "Elu") and s.coin() else {}
    s.add(op, [v], [(v.dtype, v.shape)], **attrs)


def binary(s: Sketch) -> None:
    v = s.pick((*WIDE, T.BOOL))
    w = s.partner(v)
    pair = [v, w] if s.coin() else [w, v]
    s.add(s.of(("And", "Or", "Xor") if v.dtype == T.BOOL else ("Add", "Sub", "Mul")), pair, [(v.dtype, v.shape)])


def variadic(s: Sketch) -> None:
    op = s.of(("Max", "Min", "Sum", "Mean"))
    v = s.pick((T.FLOAT, T.DOUBLE) if op in ("Max", "Min") else (T.FLOAT,))
    s.add(op, [v, *(s.partner(v) for _ in range(s.number(0, 2)))], [(v.dtype, v.shape)])


def compare(s: Sketch) -> None:
    op = s.of(("Equal", "Greater", "Less"))
    v = s.pick((T.INT32, T.INT64) if op == "Equal" else (T.FLOAT, T.DOUBLE, T.INT32, T.INT64))
    s.add(op, [v, s.partner(v)], [(T.BOOL, v.shape)])


def where(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.INT64, T.INT32, T.UINT8, T.STRING))
    s.add("Where", [s.partner(Known("", T.BOOL, v.shape)), v, s.partner(v)], [(v.dtype, v.shape)])


def cast(s: Sketch) -> None:
    v = s.pick((*NUMBERS, T.BOOL))
    to = s.of((T.FLOAT, T.DOUBLE, T.BOOL, *((T.FLOAT16,) if s.half else ()), *((T.INT32, T.INT64) if v.dtype not in FLOATS else ())))
    s.add("Cast", [v], [(to, v.shape)], to=to)


def reshape(s: Sketch) -> None:
    v = s.pick(ANY, low=1, static=True)
    total, target = int(np.prod(v.shape)), []
    while total > 1 and len(target) < 3:
        d = s.of([k for k in range(1, total + 1) if total % k == 0])
        target.append(d)
        total //= d
    target.append(total)
    asked = list(target)
    if s.coin():
        asked[s.number(0, len(asked) - 1)] = -1
    s.add("Reshape", [v, s.weight(np.array(asked, np.int64))], [(v.dtype, tuple(target))])


def transpose(s: Sketch) -> None:
    v = s.pick(ANY, low=1)
    perm = s.draw(st.permutations(range(v.rank)))
    given = {"perm": perm} if list(perm) != list(reversed(range(v.rank))) or s.coin() else {}
    s.add("Transpose", [v], [(v.dtype, tuple(v.shape[p] for p in perm))], **given)


def unsqueeze(s: Sketch) -> None:
    v = s.pick(ANY, high=3)
    axis = s.number(0, v.rank)
    extra, attrs = s.parameter(13, "axes", [axis - v.rank - 1 if s.opset >= 11 and s.coin() else axis])
    s.add("Unsqueeze", [v, *extra], [(v.dtype, (*v.shape[:axis], 1, *v.shape[axis:]))], **attrs)


def squeeze(s: Sketch) -> None:
    v = s.pick(ANY, low=1)
    ones = [k for k, d in enumerate(v.shape) if d == 1]
    if not ones:
        v = s.fresh(v.dtype, (1, *v.shape))
        ones = [0]
    axis = s.of(ones)
    extra, attrs = s.parameter(13, "axes", [axis])
    s.add("Squeeze", [v, *extra], [(v.dtype, (*v.shape[:axis], *v.shape[axis + 1 :]))], **attrs)


def concat(s: Sketch) -> None:
    v = s.pick(ANY, low=1, static=True)
    axis = s.number(0, v.rank - 1)
    parts, total = [v], v.shape[axis]
    for _ in range(s.number(0, 2)):
        size = s.number(1, 3)
        shape = tuple(size if k == axis else d for k, d in enumerate(v.shape))
        same = [w for w in s.values if w.dtype == v.dtype and w.shape == shape]
        parts.append(s.of(same) if same and s.coin() else s.fresh(v.dtype, shape))
        total += size
    out = tuple(total if k == axis else d for k, d in enumerate(v.shape))
    s.add("Concat", parts, [(v.dtype, out)], axis=axis if s.opset < 11 or s.coin() else axis - v.rank)


def slices(s: Sketch) -> None:
    v = s.pick((*WIDE, T.BOOL), low=1, static=True)
    axis = s.number(0, v.rank - 1)
    size = v.shape[axis]
    start = s.number(0, size - 1)
    end = s.number(start + 1, size)
    step = s.number(1, 2) if s.opset >= 10 else 1
    out = tuple(len(range(start, end, step)) if k == axis else d for k, d in enumerate(v.shape))
    end = 2**62 if end == size and s.coin() else end
    if s.opset >= 10:
        parts = [start], [end], [axis], *(([step],) if step > 1 or s.coin() else ())
        s.add("Slice", [v, *(s.weight(np.array(p, np.int64)) for p in parts)], [(v.dtype, out)])
    else:
        s.add("Slice", [v], [(v.dtype, out)], starts=[start], ends=[end], axes=[axis])


def gather(s: Sketch) -> None:
    v = s.pick(ANY, low=1, high=3, static=True)
    axis = s.number(0, v.rank - 1)
    shape = s.of(((), (2,), (1, 2)))
    index = s.rng.integers(0, v.shape[axis], shape)
    s.add("Gather", [v, s.weight(np.array(index, np.int64))], [(v.dtype, (*v.shape[:axis], *shape, *v.shape[axis + 1 :]))], axis=axis)


def expand(s: Sketch) -> None:
    v = s.pick(WIDE, static=True, high=3)
    out = (s.number(1, 3), *(s.number(1, 3) if d == 1 else d for d in v.shape))
    s.add("Expand", [v, s.weight(np.array(out, np.int64))], [(v.dtype, out)])


def repeat(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.INT64, T.BOOL), low=1, static=True)
    times = [s.number(1, 2) for _ in v.shape]
    out = tuple(d * k for d, k in zip(v.shape, times, strict=True))
    s.add("Tile", [v, s.weight(np.array(times, np.int64))], [(v.dtype, out)])


def pad(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.DOUBLE), low=1, static=True)
    pads = [s.number(0, 2) for _ in range(2 * v.rank)]
    out = tuple(d + pads[k] + pads[k + v.rank] for k, d in enumerate(v.shape))
    extra, attrs = s.parameter(11, "pads", pads)
    if s.coin() and extra:
        extra.append(s.weight(dtype=v.dtype, shape=()))
    elif s.coin() and not extra:
        attrs["value"] = 0.5
    s.add("Pad", [v, *extra], [(v.dtype, out)], **attrs)


def split(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.INT64, T.INT32), low=1, static=True)
    axis = s.number(0, v.rank - 1)
    if v.shape[axis] == 1:
        v = s.fresh(v.dtype, tuple(3 if k == axis else d for k, d in enumerate(v.shape)))
    first = s.number(1, v.shape[axis] - 1)
    parts = [first, v.shape[axis] - first]
    extra, attrs = s.parameter(13, "split", parts)
    types = [(v.dtype, tuple(p if k == axis else d for k, d in enumerate(v.shape))) for p in parts]
    s.add("Split", [v, *extra], types, axis=axis, **attrs)


def topk(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.DOUBLE), low=1, static=True)
    axis = s.number(0, v.rank - 1)
    k = s.number(1, v.shape[axis])
    extra = [s.weight(np.array([k], np.int64))] if s.opset >= 10 else []
    out = tuple(k if j == axis else d for j, d in enumerate(v.shape))
    s.add("TopK", [v, *extra], [(v.dtype, out), (T.INT64, out)], axis=axis, **({} if extra else {"k": k}))


def reduce(s: Sketch) -> None:
    op = s.of(("ReduceSum", "ReduceMean", "ReduceMax", "ArgMax"))
    v = s.pick((T.FLOAT, T.INT32) if op != "ReduceSum" else (T.FLOAT, T.DOUBLE, T.INT32, T.INT64), low=1)
    keep = s.number(0, 1)
    axes = [s.number(0, v.rank - 1)]
    if op == "ArgMax":
        extra, attrs, dtype = [], {"axis": axes[0]}, T.INT64
    else:
        if s.coin():
            axes = sorted({*axes, s.number(0, v.rank - 1)})
        if s.number(0, 4) == 0:
            extra, attrs, axes = [], {}, list(range(v.rank))
        else:
            extra, attrs = s.parameter(13 if op == "ReduceSum" else 18, "axes", axes)
        dtype = v.dtype
    out = tuple(1 if k in axes else d for k, d in enumerate(v.shape) if keep or k not in axes)
    s.add(op, [v, *extra], [(dtype, out)], **({"keepdims": keep} if not keep or s.coin() else {}), **attrs)


def softmax(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.DOUBLE), low=1)
    attrs = {"axis": s.number(0, v.rank - 1)} if s.coin() or v.rank < 2 else {}
    s.add(s.of(("Softmax", "LogSoftmax")), [v], [(v.dtype, v.shape)], **attrs)


def matmul(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.DOUBLE, T.FLOAT16), low=2)
    if not isinstance(v.shape[-1], int):
        v = s.fresh(v.dtype, (*v.shape, 2))
    w = s.fresh(v.dtype, (v.shape[-1], s.number(1, 4)))
    s.add("MatMul", [v, w], [(v.dtype, (*v.shape[:-1], w.shape[-1]))])


def gemm(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.DOUBLE), low=2, high=2, static=True)
    left, right, out = s.number(0, 1), s.number(0, 1), s.number(1, 4)
    rows, inner = (v.shape[1], v.shape[0]) if left else (v.shape[0], v.shape[1])
    w = s.fresh(v.dtype, (out, inner) if right else (inner, out))
    bias = [s.fresh(v.dtype, s.of(((out,), (1, out), (rows, 1), ())))] if s.opset < 11 or s.coin() else []
    attrs = {k: x for k, x in (("transA", left), ("transB", right)) if x or s.coin()}
    if s.coin():
        attrs["alpha"] = 0.5
    s.add("Gemm", [v, w, *bias], [(v.dtype, (rows, out))], **attrs)


def image(s: Sketch) -> Known:
    fit = [v for v in s.values if v.dtype == T.FLOAT and v.rank == 4 and isinstance(v.shape[1], int) and {4, 5, 6} >= set(v.shape[2:])]
    return s.of(fit) if fit and s.coin() else s.fresh(T.FLOAT, (s.of((1, 2, "N")), s.of((1, 2, 4)), 5, 6))


def conv(s: Sketch) -> None:
    v = image(s)
    group = s.of([g for g in (1, 2) if v.shape[1] % g == 0])
    out, kernel, stride = group * s.number(1, 2), s.of(((1, 1), (3, 3), (1, 3))), s.number(1, 2)
    w = s.weight(dtype=T.FLOAT, shape=(out, v.shape[1] // group, *kernel))
    bias = [s.weight(dtype=T.FLOAT, shape=(out,))] if s.coin() else []
    attrs: dict[str, Any] = {"strides": [stride, stride]} if stride > 1 or s.coin() else {}
    pad = s.of(("none", "same", "pads"))
    sizes = [(d - k) // stride + 1 for d, k in zip(v.shape[2:], kernel, strict=True)]
    if pad == "same":
        attrs["auto_pad"] = s.of(("SAME_UPPER", "SAME_LOWER"))
        sizes = [-(-d // stride) for d in v.shape[2:]]
    elif pad == "pads":
        attrs["pads"] = [1, 0, 0, 1]
        sizes = [(d + 1 - k) // stride + 1 for d, k in zip(v.shape[2:], kernel, strict=True)]
    if group > 1 or s.coin():
        attrs["group"] = group
    if s.coin():
        attrs["kernel_shape"] = kernel
    (made,) = s.add("Conv", [v, w, *bias], [(T.FLOAT, (v.shape[0], out, *sizes))], **attrs)
    if s.coin():
        batch_norm(s, made)


def pool(s: Sketch) -> None:
    v = image(s)
    op = s.of(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if op == "GlobalAveragePool":
        s.add(op, [v], [(T.FLOAT, (*v.shape[:2], 1, 1))])
        return
    out = (T.FLOAT, (*v.shape[:2], *(d - 1 for d in v.shape[2:])))
    types = [out, (T.INT64, out[1])] if op == "MaxPool" and s.coin() else [out]
    s.add(op, [v], types, kernel_shape=[2, 2])


def norm(s: Sketch) -> None:
    if s.opset >= 17 and s.coin():
        v = s.pick((T.FLOAT, T.DOUBLE), low=2)
        if isinstance(v.shape[-1], int):
            scale = s.weight(dtype=v.dtype, shape=(v.shape[-1],))
            bias = [s.weight(dtype=v.dtype, shape=(v.shape[-1],))] if s.coin() else []
            s.add("LayerNormalization", [v, scale, *bias], [(v.dtype, v.shape)])
            return
    batch_norm(s, image(s))


def batch_norm(s: Sketch, v: Known) -> None:
    c = (v.shape[1],)
    parts = [s.weight(dtype=T.FLOAT, shape=c) for _ in range(3)]
    s.add("BatchNormalization", [v, *parts, s.weight(s.rng.uniform(0.5, 2, c).astype(np.float32))], [(T.FLOAT, v.shape)])


def clip(s: Sketch) -> None:
    v = s.pick((T.FLOAT,) if s.opset < 12 else (T.FLOAT, T.DOUBLE, T.INT64))
    low, high = s.coin(), s.coin()
    if s.opset < 11:
        s.add("Clip", [v], [(v.dtype, v.shape)], **({"min": -0.5} if low else {}), **({"max": 0.75} if high else {}))
        return
    kind = oh.tensor_dtype_to_np_dtype(v.dtype)
    bounds: list[Known | str] = [s.weight(np.array(-1, kind)) if low else "", s.weight(np.array(1, kind)) if high else ""]
    s.add("Clip", [v, *(bounds if high or s.coin() else bounds[:1] if low else [])], [(v.dtype, v.shape)])


def dropout(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.DOUBLE))
    mask = [(T.BOOL, v.shape)] if s.opset >= 10 and s.coin() else []
    s.add("Dropout", [v], [(v.dtype, v.shape), *mask])


def plumbing(s: Sketch) -> None:
    """Flatten all but the first dim, as exporters write it."""
    v = s.pick((T.FLOAT, T.INT64, T.BOOL), low=1)
    (shape,) = s.add("Shape", [v], [(T.INT64, (v.rank,))])
    (first,) = s.add("Gather", [shape, s.weight(np.array([0], np.int64))], [(T.INT64, (1,))], axis=0)
    (both,) = s.add("Concat", [first, s.weight(np.array([-1], np.int64))], [(T.INT64, (2,))], axis=0)
    if all(isinstance(d, int) for d in v.shape[1:]):
        s.add("Reshape", [v, both], [(v.dtype, (v.shape[0], int(np.prod(v.shape[1:], dtype=int))))])


def constant(s: Sketch) -> None:
    how = s.number(0, 3 if s.opset >= 12 else 2)
    if how < 2:
        dtype, shape = s.of((T.FLOAT, T.INT64, T.DOUBLE, T.BOOL)), s.shape(symbols=False)
        s.add("Constant", [], [(dtype, shape)], value=nh.from_array(random_array(s.rng, dtype, shape)))
    elif how == 2:
        shape = s.shape(low=1, symbols=False)
        fill = {"value": nh.from_array(np.array([3], np.int64))} if s.coin() else {}
        s.add("ConstantOfShape", [s.weight(np.array(shape, np.int64))], [(T.INT64 if fill else T.FLOAT, shape)], **fill)
    else:
        s.add("Constant", [], [(T.FLOAT, (2,))], value_floats=[0.5, -1.0])


def quantize(s: Sketch) -> None:
    if s.opset < 10:
        return unary(s)
    v = s.pick((T.FLOAT,))
    scale, zero = s.weight(np.array(0.1, np.float32)), s.weight(np.array(3, np.uint8))
    (q,) = s.add("QuantizeLinear", [v, scale, zero], [(T.UINT8, v.shape)])
    s.add("DequantizeLinear", [q, scale, zero], [(T.FLOAT, v.shape)])


def one_hot(s: Sketch) -> None:
    index = s.weight(s.rng.integers(0, 3, 2))
    values = s.weight(np.array([0, 1], np.float32))
    s.add("OneHot", [index, s.weight(np.array([3], np.int64)), values], [(T.FLOAT, (2, 3))], axis=-1)


def branch(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.INT64))
    cond = s.pick((T.BOOL,), high=0)
    bodies = [drawn_body(s, [], [lambda v=v: step(s, v)]) for _ in range(2)]
    s.add("If", [cond], [(v.dtype, v.shape)], then_branch=bodies[0], else_branch=bodies[1])


def loop(s: Sketch) -> None:
    v = s.pick((T.FLOAT, T.INT64))
    state, turn, go = Known(s.name("s"), v.dtype, v.shape), Known(s.name("i"), T.INT64, ()), Known(s.name("c"), T.BOOL, ())
    scan = s.coin()

    def on() -> Known:
        return s.add("Identity", [go], [(T.BOOL, ())])[0]

    body = drawn_body(s, [turn, go, state], [on, lambda: step(s, state), *([lambda: step(s, v)] if scan else [])])
    count = s.weight(np.array(s.number(1, 3), np.int64))
    times = int(nh.to_array(s.weights[count.name]))
    outs = [(v.dtype, v.shape), *([(v.dtype, (times, *v.shape))] if scan else [])]
    s.add("Loop", [count, s.of(("", s.weight(np.array(True)))), v], outs, body=body)


def step(s: Sketch, v: Known) -> Known:
    """A value in a body of the type of `v`, from `v` and something captured."""
    if s.number(0, 3) == 0:
        return s.add("Identity", [v], [(v.dtype, v.shape)])[0]
    return s.add(s.of(("Add", "Sub", "Mul")), [v, s.partner(v)], [(v.dtype, v.shape)])[0]


def drawn_body(s: Sketch, inputs: list[Known], outputs: list[Callable[[], Known]]) -> onnx.GraphProto:
    """A body whose nodes may read all values so far; weights and inputs that it asks for belong to the model."""
    nodes, s.nodes = s.nodes, []
    results = [make() for make in outputs]
    made, s.nodes = s.nodes, nodes
    inner = {o for n in made for o in n.output}
    s.values = [v for v in s.values if v.name not in inner]
    return oh.make_graph(made, s.name("body"), [info(v) for v in inputs], [info(v) for v in results])


KINDS: tuple[Callable[[Sketch], None], ...] = (
    unary, unary, binary, binary, binary, variadic, compare, where, cast, reshape, transpose, unsqueeze, squeeze, concat, slices,
    gather, expand, pad, split, topk, reduce, reduce, softmax, matmul, gemm, conv, pool, norm, clip, dropout, plumbing, constant,
    repeat, one_hot, quantize,
)  # fmt: skip
BODIES: tuple[Callable[[Sketch], None], ...] = (branch, loop)
