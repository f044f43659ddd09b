"""Random small ONNX models for property tests: `models()` draws one, `feeds(model, rng)` makes inputs for it.

Every model passes onnx.checker and runs in onnxruntime: it is built by tracking types, never by filtering. Drawn are opset
and IR version (initializers listed as inputs in IR 3, some as overridable defaults later), float and integer types, bool and
strings, broadcasts, shared and dead values, several-output operators, absent optional inputs, shape plumbing, If and Loop
with captured values, symbolic and anonymous dims, outputs that are inputs, weights or Identities, nodes without names.
All numbers stay finite; nothing is random when run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh

from cgorl.ir.run import random_array

SIZES = {"N": 3, "M": 2}
"""What the symbolic dims of drawn models are bound to by `feeds`; a dim without a name is an N."""

OPSETS = (9, 11, 13, 17, 18, 20, 22)

FLOATS = (T.FLOAT, T.FLOAT16, T.DOUBLE)
WIDE = (*FLOATS, T.INT32, T.INT64)
NUMBERS = (*WIDE, T.INT8, T.UINT8)
ANY = (*NUMBERS, T.BOOL, T.STRING)

Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Known:
    """A value of the model being drawn."""

    name: str
    dtype: int
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)


@st.composite
def models(draw: Any, max_nodes: int = 10, opsets: Sequence[int] = OPSETS, bodies: bool = True, half: bool = True) -> onnx.ModelProto:
    """A valid model of up to about `max_nodes` nodes at one of `opsets`, with If, Loop and float16 where `bodies` and `half` say so.

    onnxruntime runs float16 nodes in float32 and rounds where it likes: outputs of `half` models change with the graph.
    """
    return _Sketch(draw, draw(st.sampled_from(opsets)), bodies, half).model(max_nodes)


def feeds(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """An array for each input of a drawn model that has no default; symbols are bound as in SIZES."""
    given = {t.name for t in model.graph.initializer}
    found = {}
    for info in model.graph.input:
        if info.name not in given:
            kind = info.type.tensor_type
            shape = [d.dim_value if d.HasField("dim_value") else SIZES[d.dim_param or "N"] for d in kind.shape.dim]
            found[info.name] = random_array(rng, kind.elem_type, shape)
    return found


class _Sketch:
    """A model being drawn: values so far, nodes so far, and one method for each kind of node."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], opset: int, bodies: bool, half: bool) -> None:
        self.draw, self.opset, self.half = draw, opset, half
        self.rng = np.random.default_rng(self.number(0, 2**32 - 1))
        self.values: list[Known] = []
        self.weights: dict[str, onnx.TensorProto] = {}
        self.inputs: dict[str, Known] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.count = 0
        self.kinds: list[Callable[[], None]] = [
            self.unary, self.unary, self.binary, self.binary, self.binary, self.variadic, self.compare, self.where, self.cast,
            self.reshape, self.transpose, self.unsqueeze, self.squeeze, self.concat, self.slice, self.gather, self.expand, self.pad,
            self.split, self.topk, self.reduce, self.reduce, self.softmax, self.matmul, self.gemm, self.conv, self.pool, self.norm,
            self.clip, self.dropout, self.plumbing, self.constant, self.repeat, self.one_hot, *([self.quantize] if opset >= 10 else []),
        ]  # fmt: skip
        if bodies:
            self.kinds += [self.branch, self.branch, self.loop]

    # ------------------------------------------------------------ draws
    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def coin(self) -> bool:
        return self.draw(st.booleans())

    def of(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def name(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def shape(self, low: int = 0, high: int = 4, symbols: bool = True) -> Shape:
        dims: list[Any] = [self.number(1, 4) for _ in range(self.number(low, high))]
        if symbols and dims and self.number(0, 3) == 0:
            dims[0] = self.of(("N", "M"))
        return tuple(dims)

    def weight(self, array: np.ndarray | None = None, dtype: int = T.FLOAT, shape: Shape = ()) -> Known:
        """An initializer, sometimes one that stood there before with the same contents."""
        array = random_array(self.rng, dtype, shape) if array is None else array
        name = self.name("w")
        if array.dtype == object:
            proto = oh.make_tensor(name, T.STRING, array.shape, [s.encode() for s in array.reshape(-1)])
        else:
            proto = nh.from_array(np.array(array, order="C"), name)
        if self.coin() and proto.data_type == T.FLOAT and array.ndim:
            proto = oh.make_tensor(name, T.FLOAT, array.shape, array.reshape(-1).tolist())  # float_data, not raw_data
        self.weights[name] = proto
        found = Known(name, proto.data_type, tuple(array.shape))
        self.values.append(found)
        return found

    def fresh(self, dtype: int, shape: Shape) -> Known:
        """A new input (or weight) of a wanted type."""
        if self.number(0, 2) == 0 and all(isinstance(d, int) for d in shape):
            return self.weight(dtype=dtype, shape=shape)
        found = Known(self.name("x"), dtype, shape)
        self.inputs[found.name] = found
        self.values.append(found)
        return found

    def pick(self, dtypes: Sequence[int], low: int = 0, high: int = 4, static: bool = False, dtype: int | None = None) -> Known:
        """A value so far that fits, or a new one."""
        dtypes = [d for d in dtypes if self.half or d != T.FLOAT16]
        fit = [v for v in self.values if v.dtype in dtypes and low <= v.rank <= high and (v.static or not static)]
        if fit and self.number(0, 5):
            return self.of(fit[-8:])
        return self.fresh(dtype or self.of(dtypes), self.shape(low, high, not static))

    def partner(self, v: Known) -> Known:
        """A value that broadcasts with `v` to the shape of `v`."""
        fit = [w for w in self.values if w.dtype == v.dtype and _into(w.shape, v.shape)]
        if fit and self.number(0, 3):
            return self.of(fit[-8:])
        keep = self.number(0, v.rank)
        return self.fresh(v.dtype, tuple(1 if self.number(0, 3) == 0 else d for d in v.shape[v.rank - keep :]))

    def add(self, op: str, inputs: Sequence[Known | str], types: Sequence[tuple[int, Shape]], **attrs: Any) -> list[Known]:
        """A node; its outputs."""
        outs = [Known(self.name(), d, tuple(s)) for d, s in types]
        names = [i if isinstance(i, str) else i.name for i in inputs]
        label = self.of(("", self.name("n")))
        node = oh.make_node(op, names, [o.name for o in outs], name=label, **attrs)
        if self.number(0, 7) == 0:
            node.doc_string = "a node"
        self.nodes.append(node)
        self.values += outs
        return outs

    def parameter(self, since: int, name: str, value: list[int]) -> tuple[list[Known], dict[str, Any]]:
        """A list as an attribute, or as an input where the operator has it so from opset `since` on."""
        if self.opset >= since:
            return [self.weight(np.array(value, np.int64))], {}
        return [], {name: value}

    # ------------------------------------------------------------ nodes
    def unary(self) -> None:
        v = self.pick(ANY)
        ops = ["Identity"]
        if v.dtype in FLOATS:
            ops += ["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Floor", "Ceil", "Sqrt_"]
        if v.dtype in (T.FLOAT, T.FLOAT16):
            ops += ["LeakyRelu", "Elu", "Softplus", "Erf", "HardSigmoid", "Sin"]
        if v.dtype in (T.INT32, T.INT64):
            ops += ["Abs", "Sign"]
        if v.dtype == T.BOOL:
            ops += ["Not", "Not"]
        op = self.of(ops)
        if op == "Sqrt_":
            v, op = self.add("Abs", [v], [(v.dtype, v.shape)])[0], "Sqrt"
        attrs = {"alpha": self.of((0.01, 0.5, 1.0))} if op in ("LeakyRelu", "Elu") and self.coin() else {}
        self.add(op, [v], [(v.dtype, v.shape)], **attrs)

    def binary(self) -> None:
        v = self.pick((*WIDE, T.BOOL))
        w = self.partner(v)
        pair = [v, w] if self.coin() else [w, v]
        self.add(self.of(("And", "Or", "Xor") if v.dtype == T.BOOL else ("Add", "Sub", "Mul")), pair, [(v.dtype, v.shape)])

    def variadic(self) -> None:
        op = self.of(("Max", "Min", "Sum", "Mean"))
        v = self.pick((T.FLOAT, T.DOUBLE) if op in ("Max", "Min") else (T.FLOAT,))
        self.add(op, [v, *(self.partner(v) for _ in range(self.number(0, 2)))], [(v.dtype, v.shape)])

    def compare(self) -> None:
        op = self.of(("Equal", "Greater", "Less"))
        v = self.pick((T.INT32, T.INT64) if op == "Equal" else (T.FLOAT, T.DOUBLE, T.INT32, T.INT64))
        self.add(op, [v, self.partner(v)], [(T.BOOL, v.shape)])

    def where(self) -> None:
        v = self.pick((T.FLOAT, T.INT64, T.INT32, T.UINT8, T.STRING))
        self.add("Where", [self.partner(Known("", T.BOOL, v.shape)), v, self.partner(v)], [(v.dtype, v.shape)])

    def cast(self) -> None:
        v = self.pick((*NUMBERS, T.BOOL))
        to = self.of((T.FLOAT, T.DOUBLE, T.BOOL, *((T.FLOAT16,) if self.half else ()), *((T.INT32, T.INT64) if v.dtype not in FLOATS else ())))
        self.add("Cast", [v], [(to, v.shape)], to=to)

    def reshape(self) -> None:
        v = self.pick(ANY, low=1, static=True)
        total, target = int(np.prod(v.shape)), []
        while total > 1 and len(target) < 3:
            d = self.of([k for k in range(1, total + 1) if total % k == 0])
            target.append(d)
            total //= d
        target.append(total)
        asked = list(target)
        if self.coin():
            asked[self.number(0, len(asked) - 1)] = -1
        self.add("Reshape", [v, self.weight(np.array(asked, np.int64))], [(v.dtype, tuple(target))])

    def transpose(self) -> None:
        v = self.pick(ANY, low=1)
        perm = self.draw(st.permutations(range(v.rank)))
        given = {"perm": perm} if list(perm) != list(reversed(range(v.rank))) or self.coin() else {}
        self.add("Transpose", [v], [(v.dtype, tuple(v.shape[p] for p in perm))], **given)

    def unsqueeze(self) -> None:
        v = self.pick(ANY, high=3)
        axis = self.number(0, v.rank)
        extra, attrs = self.parameter(13, "axes", [axis - v.rank - 1 if self.opset >= 11 and self.coin() else axis])
        self.add("Unsqueeze", [v, *extra], [(v.dtype, (*v.shape[:axis], 1, *v.shape[axis:]))], **attrs)

    def squeeze(self) -> None:
        v = self.pick(ANY, low=1)
        ones = [k for k, d in enumerate(v.shape) if d == 1]
        if not ones:
            v = self.fresh(v.dtype, (1, *v.shape))
            ones = [0]
        axis = self.of(ones)
        extra, attrs = self.parameter(13, "axes", [axis])
        self.add("Squeeze", [v, *extra], [(v.dtype, (*v.shape[:axis], *v.shape[axis + 1 :]))], **attrs)

    def concat(self) -> None:
        v = self.pick(ANY, low=1, static=True)
        axis = self.number(0, v.rank - 1)
        parts, total = [v], v.shape[axis]
        for _ in range(self.number(0, 2)):
            size = self.number(1, 3)
            shape = tuple(size if k == axis else d for k, d in enumerate(v.shape))
            same = [w for w in self.values if w.dtype == v.dtype and w.shape == shape]
            parts.append(self.of(same) if same and self.coin() else self.fresh(v.dtype, shape))
            total += size
        out = tuple(total if k == axis else d for k, d in enumerate(v.shape))
        self.add("Concat", parts, [(v.dtype, out)], axis=axis if self.opset < 11 or self.coin() else axis - v.rank)

    def slice(self) -> None:
        v = self.pick((*WIDE, T.BOOL), low=1, static=True)
        axis = self.number(0, v.rank - 1)
        size = v.shape[axis]
        start = self.number(0, size - 1)
        end = self.number(start + 1, size)
        step = self.number(1, 2) if self.opset >= 10 else 1
        out = tuple(len(range(start, end, step)) if k == axis else d for k, d in enumerate(v.shape))
        end = 2**62 if end == size and self.coin() else end
        if self.opset >= 10:
            parts = [start], [end], [axis], *(([step],) if step > 1 or self.coin() else ())
            self.add("Slice", [v, *(self.weight(np.array(p, np.int64)) for p in parts)], [(v.dtype, out)])
        else:
            self.add("Slice", [v], [(v.dtype, out)], starts=[start], ends=[end], axes=[axis])

    def gather(self) -> None:
        v = self.pick(ANY, low=1, high=3, static=True)
        axis = self.number(0, v.rank - 1)
        shape = self.of(((), (2,), (1, 2)))
        index = self.rng.integers(0, v.shape[axis], shape)
        self.add(
            "Gather", [v, self.weight(np.array(index, np.int64))], [(v.dtype, (*v.shape[:axis], *shape, *v.shape[axis + 1 :]))], axis=axis
        )

    def expand(self) -> None:
        v = self.pick(WIDE, static=True, high=3)
        out = (self.number(1, 3), *(self.number(1, 3) if d == 1 else d for d in v.shape))
        self.add("Expand", [v, self.weight(np.array(out, np.int64))], [(v.dtype, out)])

    def repeat(self) -> None:
        v = self.pick((T.FLOAT, T.INT64, T.BOOL), low=1, static=True)
        times = [self.number(1, 2) for _ in v.shape]
        out = tuple(d * k for d, k in zip(v.shape, times, strict=True))
        self.add("Tile", [v, self.weight(np.array(times, np.int64))], [(v.dtype, out)])

    def pad(self) -> None:
        v = self.pick((T.FLOAT, T.DOUBLE), low=1, static=True)
        pads = [self.number(0, 2) for _ in range(2 * v.rank)]
        out = tuple(d + pads[k] + pads[k + v.rank] for k, d in enumerate(v.shape))
        extra, attrs = self.parameter(11, "pads", pads)
        if self.coin() and extra:
            extra.append(self.weight(dtype=v.dtype, shape=()))
        elif self.coin() and not extra:
            attrs["value"] = 0.5
        self.add("Pad", [v, *extra], [(v.dtype, out)], **attrs)

    def split(self) -> None:
        v = self.pick((T.FLOAT, T.INT64, T.INT32), low=1, static=True)
        axis = self.number(0, v.rank - 1)
        if v.shape[axis] == 1:
            v = self.fresh(v.dtype, tuple(3 if k == axis else d for k, d in enumerate(v.shape)))
        first = self.number(1, v.shape[axis] - 1)
        parts = [first, v.shape[axis] - first]
        extra, attrs = self.parameter(13, "split", parts)
        types = [(v.dtype, tuple(p if k == axis else d for k, d in enumerate(v.shape))) for p in parts]
        self.add("Split", [v, *extra], types, axis=axis, **attrs)

    def topk(self) -> None:
        v = self.pick((T.FLOAT, T.DOUBLE), low=1, static=True)
        axis = self.number(0, v.rank - 1)
        k = self.number(1, v.shape[axis])
        extra = [self.weight(np.array([k], np.int64))] if self.opset >= 10 else []
        out = tuple(k if j == axis else d for j, d in enumerate(v.shape))
        self.add("TopK", [v, *extra], [(v.dtype, out), (T.INT64, out)], axis=axis, **({} if extra else {"k": k}))

    def reduce(self) -> None:
        op = self.of(("ReduceSum", "ReduceMean", "ReduceMax", "ArgMax"))
        v = self.pick((T.FLOAT, T.INT32) if op != "ReduceSum" else (T.FLOAT, T.DOUBLE, T.INT32, T.INT64), low=1)
        keep = self.number(0, 1)
        axes = [self.number(0, v.rank - 1)]
        if op == "ArgMax":
            extra, attrs, dtype = [], {"axis": axes[0]}, T.INT64
        else:
            if self.coin():
                axes = sorted({*axes, self.number(0, v.rank - 1)})
            if self.number(0, 4) == 0:
                extra, attrs, axes = [], {}, list(range(v.rank))
            else:
                extra, attrs = self.parameter(13 if op == "ReduceSum" else 18, "axes", axes)
            dtype = v.dtype
        out = tuple(1 if k in axes else d for k, d in enumerate(v.shape) if keep or k not in axes)
        self.add(op, [v, *extra], [(dtype, out)], **({"keepdims": keep} if not keep or self.coin() else {}), **attrs)

    def softmax(self) -> None:
        v = self.pick((T.FLOAT, T.DOUBLE), low=1)
        attrs = {"axis": self.number(0, v.rank - 1)} if self.coin() or v.rank < 2 else {}
        self.add(self.of(("Softmax", "LogSoftmax")), [v], [(v.dtype, v.shape)], **attrs)

    def matmul(self) -> None:
        v = self.pick((T.FLOAT, T.DOUBLE, T.FLOAT16), low=2)
        if not isinstance(v.shape[-1], int):
            v = self.fresh(v.dtype, (*v.shape, 2))
        w = self.fresh(v.dtype, (v.shape[-1], self.number(1, 4)))
        self.add("MatMul", [v, w], [(v.dtype, (*v.shape[:-1], w.shape[-1]))])

    def gemm(self) -> None:
        v = self.pick((T.FLOAT, T.DOUBLE), low=2, high=2, static=True)
        left, right, out = self.number(0, 1), self.number(0, 1), self.number(1, 4)
        rows, inner = (v.shape[1], v.shape[0]) if left else (v.shape[0], v.shape[1])
        w = self.fresh(v.dtype, (out, inner) if right else (inner, out))
        bias = [self.fresh(v.dtype, self.of(((out,), (1, out), (rows, 1), ())))] if self.opset < 11 or self.coin() else []
        attrs = {k: x for k, x in (("transA", left), ("transB", right)) if x or self.coin()}
        if self.coin():
            attrs["alpha"] = 0.5
        self.add("Gemm", [v, w, *bias], [(v.dtype, (rows, out))], **attrs)

    def image(self) -> Known:
        fit = [
            v for v in self.values if v.dtype == T.FLOAT and v.rank == 4 and isinstance(v.shape[1], int) and {4, 5, 6} >= set(v.shape[2:])
        ]
        return self.of(fit) if fit and self.coin() else self.fresh(T.FLOAT, (self.of((1, 2, "N")), self.of((1, 2, 4)), 5, 6))

    def conv(self) -> None:
        v = self.image()
        group = self.of([g for g in (1, 2) if v.shape[1] % g == 0])
        out, kernel, stride = group * self.number(1, 2), self.of(((1, 1), (3, 3), (1, 3))), self.number(1, 2)
        w = self.weight(dtype=T.FLOAT, shape=(out, v.shape[1] // group, *kernel))
        bias = [self.weight(dtype=T.FLOAT, shape=(out,))] if self.coin() else []
        attrs: dict[str, Any] = {"strides": [stride, stride]} if stride > 1 or self.coin() else {}
        pad = self.of(("none", "same", "pads"))
        sizes = [(d - k) // stride + 1 for d, k in zip(v.shape[2:], kernel, strict=True)]
        if pad == "same":
            attrs["auto_pad"] = self.of(("SAME_UPPER", "SAME_LOWER"))
            sizes = [-(-d // stride) for d in v.shape[2:]]
        elif pad == "pads":
            attrs["pads"] = [1, 0, 0, 1]
            sizes = [(d + 1 - k) // stride + 1 for d, k in zip(v.shape[2:], kernel, strict=True)]
        if group > 1 or self.coin():
            attrs["group"] = group
        if self.coin():
            attrs["kernel_shape"] = kernel
        (made,) = self.add("Conv", [v, w, *bias], [(T.FLOAT, (v.shape[0], out, *sizes))], **attrs)
        if self.coin():
            self.batch_norm(made)

    def pool(self) -> None:
        v = self.image()
        op = self.of(("MaxPool", "AveragePool", "GlobalAveragePool"))
        if op == "GlobalAveragePool":
            self.add(op, [v], [(T.FLOAT, (*v.shape[:2], 1, 1))])
            return
        out = (T.FLOAT, (*v.shape[:2], *(d - 1 for d in v.shape[2:])))
        types = [out, (T.INT64, out[1])] if op == "MaxPool" and self.coin() else [out]
        self.add(op, [v], types, kernel_shape=[2, 2])

    def norm(self) -> None:
        if self.opset >= 17 and self.coin():
            v = self.pick((T.FLOAT, T.DOUBLE), low=2)
            if isinstance(v.shape[-1], int):
                scale = self.weight(dtype=v.dtype, shape=(v.shape[-1],))
                bias = [self.weight(dtype=v.dtype, shape=(v.shape[-1],))] if self.coin() else []
                self.add("LayerNormalization", [v, scale, *bias], [(v.dtype, v.shape)])
                return
        self.batch_norm(self.image())

    def batch_norm(self, v: Known) -> None:
        c = (v.shape[1],)
        parts = [self.weight(dtype=T.FLOAT, shape=c) for _ in range(3)]
        self.add("BatchNormalization", [v, *parts, self.weight(self.rng.uniform(0.5, 2, c).astype(np.float32))], [(T.FLOAT, v.shape)])

    def clip(self) -> None:
        v = self.pick((T.FLOAT,) if self.opset < 12 else (T.FLOAT, T.DOUBLE, T.INT64))
        low, high = self.coin(), self.coin()
        if self.opset < 11:
            self.add("Clip", [v], [(v.dtype, v.shape)], **({"min": -0.5} if low else {}), **({"max": 0.75} if high else {}))
            return
        kind = oh.tensor_dtype_to_np_dtype(v.dtype)
        bounds: list[Known | str] = [self.weight(np.array(-1, kind)) if low else "", self.weight(np.array(1, kind)) if high else ""]
        self.add("Clip", [v, *(bounds if high or self.coin() else bounds[:1] if low else [])], [(v.dtype, v.shape)])

    def dropout(self) -> None:
        v = self.pick((T.FLOAT, T.DOUBLE))
        mask = [(T.BOOL, v.shape)] if self.opset >= 10 and self.coin() else []
        self.add("Dropout", [v], [(v.dtype, v.shape), *mask])

    def plumbing(self) -> None:
        """Flatten all but the first dim, as exporters write it."""
        v = self.pick((T.FLOAT, T.INT64, T.BOOL), low=1)
        (shape,) = self.add("Shape", [v], [(T.INT64, (v.rank,))])
        (first,) = self.add("Gather", [shape, self.weight(np.array([0], np.int64))], [(T.INT64, (1,))], axis=0)
        (both,) = self.add("Concat", [first, self.weight(np.array([-1], np.int64))], [(T.INT64, (2,))], axis=0)
        if all(isinstance(d, int) for d in v.shape[1:]):
            self.add("Reshape", [v, both], [(v.dtype, (v.shape[0], int(np.prod(v.shape[1:], dtype=int))))])

    def constant(self) -> None:
        how = self.number(0, 3 if self.opset >= 12 else 2)
        if how < 2:
            dtype, shape = self.of((T.FLOAT, T.INT64, T.DOUBLE, T.BOOL)), self.shape(symbols=False)
            self.add("Constant", [], [(dtype, shape)], value=nh.from_array(random_array(self.rng, dtype, shape)))
        elif how == 2:
            shape = self.shape(low=1, symbols=False)
            fill = {"value": nh.from_array(np.array([3], np.int64))} if self.coin() else {}
            self.add("ConstantOfShape", [self.weight(np.array(shape, np.int64))], [(T.INT64 if fill else T.FLOAT, shape)], **fill)
        else:
            self.add("Constant", [], [(T.FLOAT, (2,))], value_floats=[0.5, -1.0])

    def quantize(self) -> None:
        v = self.pick((T.FLOAT,))
        scale, zero = self.weight(np.array(0.1, np.float32)), self.weight(np.array(3, np.uint8))
        (q,) = self.add("QuantizeLinear", [v, scale, zero], [(T.UINT8, v.shape)])
        self.add("DequantizeLinear", [q, scale, zero], [(T.FLOAT, v.shape)])

    def one_hot(self) -> None:
        index = self.weight(self.rng.integers(0, 3, 2))
        values = self.weight(np.array([0, 1], np.float32))
        self.add("OneHot", [index, self.weight(np.array([3], np.int64)), values], [(T.FLOAT, (2, 3))], axis=-1)

    # ------------------------------------------------------------ bodies
    def branch(self) -> None:
        v = self.pick((T.FLOAT, T.INT64))
        cond = self.pick((T.BOOL,), high=0)
        bodies = [self.body([], [lambda v=v: self.step(v)]) for _ in range(2)]
        self.add("If", [cond], [(v.dtype, v.shape)], then_branch=bodies[0], else_branch=bodies[1])

    def loop(self) -> None:
        v = self.pick((T.FLOAT, T.INT64))
        state, turn, go = Known(self.name("s"), v.dtype, v.shape), Known(self.name("i"), T.INT64, ()), Known(self.name("c"), T.BOOL, ())
        scan = self.coin()

        def on() -> Known:
            return self.add("Identity", [go], [(T.BOOL, ())])[0]

        body = self.body([turn, go, state], [on, lambda: self.step(state), *([lambda: self.step(v)] if scan else [])])
        count = self.weight(np.array(self.number(1, 3), np.int64))
        times = int(nh.to_array(self.weights[count.name]))
        outs = [(v.dtype, v.shape), *([(v.dtype, (times, *v.shape))] if scan else [])]
        self.add("Loop", [count, self.of(("", self.weight(np.array(True)))), v], outs, body=body)

    def step(self, v: Known) -> Known:
        """A value in a body of the type of `v`, from `v` and something captured."""
        if self.number(0, 3) == 0:
            return self.add("Identity", [v], [(v.dtype, v.shape)])[0]
        return self.add(self.of(("Add", "Sub", "Mul")), [v, self.partner(v)], [(v.dtype, v.shape)])[0]

    def body(self, inputs: list[Known], outputs: list[Callable[[], Known]]) -> onnx.GraphProto:
        """A body whose nodes may read all values so far; weights and inputs that it asks for belong to the model."""
        nodes, self.nodes = self.nodes, []
        results = [make() for make in outputs]
        made, self.nodes = self.nodes, nodes
        inner = {o for n in made for o in n.output}
        self.values = [v for v in self.values if v.name not in inner]
        return oh.make_graph(made, self.name("body"), [_info(v) for v in inputs], [_info(v) for v in results])

    # ------------------------------------------------------------ the whole
    def model(self, max_nodes: int) -> onnx.ModelProto:
        self.fresh(T.FLOAT, self.shape(1, 4))
        for _ in range(self.number(1, max_nodes)):
            self.of(self.kinds)()
        ir = self.of((3, 4, 8, 10) if self.opset < 21 else (10,))
        made = {o for n in self.nodes for o in n.output}
        computed = [v for v in self.values if v.name in made]
        outputs = [computed[-1]]
        if self.coin():
            outputs += [self.of(computed) for _ in range(self.number(1, 3))]
        if self.number(0, 3) == 0:
            outputs.append(self.of(self.values if ir >= 4 else [v for v in self.values if v.name not in self.weights]))
        outputs = list(dict.fromkeys(outputs))
        for v in outputs[: self.number(0, 1)]:  # one value under two names
            outputs += self.add("Identity", [v], [(v.dtype, v.shape)])
        listed = [v for v in self.values if v.name in self.weights and (ir < 4 or self.number(0, 9) == 0)]
        inputs = [_info(v, self.number(0, 4) == 0) for v in self.inputs.values()] + [_info(v) for v in listed]
        told = [_info(v) for v in computed if v not in outputs and self.number(0, 3) == 0]
        graph = oh.make_graph(
            self.nodes,
            "drawn",
            self.draw(st.permutations(inputs)),
            [_info(v, self.number(0, 4) == 0) for v in outputs],
            list(self.weights.values()),
            value_info=told,
        )
        opsets = [oh.make_opsetid("", self.opset), *([oh.make_opsetid("com.microsoft", 1)] if self.number(0, 4) == 0 else [])]
        model = oh.make_model(graph, ir_version=ir, opset_imports=opsets, producer_name="strategies")
        if self.number(0, 3) == 0:
            oh.set_model_props(model, {"author": "hypothesis"})
        return model


def _into(shape: Shape, target: Shape) -> bool:
    """Whether `shape` broadcasts to `target`."""
    return len(shape) <= len(target) and all(d in (1, t) for d, t in zip(reversed(shape), reversed(target), strict=False))


def _info(v: Known, vague: bool = False) -> onnx.ValueInfoProto:
    """A declaration of `v`; `vague`: without the name of symbol N."""
    return oh.make_tensor_value_info(v.name, v.dtype, [None if vague and d == "N" else d for d in v.shape])
