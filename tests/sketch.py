"""What a model is drawn with: a sketch holds the values and nodes so far, and finds or makes values of a wanted type."""

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


class Sketch:
    """A model being drawn: values so far and nodes so far."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], opset: int, half: bool) -> None:
        self.draw, self.opset, self.half = draw, opset, half
        self.rng = np.random.default_rng(self.number(0, 2**32 - 1))
        self.values: list[Known] = []
        self.weights: dict[str, onnx.TensorProto] = {}
        self.inputs: dict[str, Known] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.count = 0

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
        fit = [w for w in self.values if w.dtype == v.dtype and into(w.shape, v.shape)]
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


def into(shape: Shape, target: Shape) -> bool:
    """Whether `shape` broadcasts to `target`."""
    return len(shape) <= len(target) and all(d in (1, t) for d, t in zip(reversed(shape), reversed(target), strict=False))


def info(v: Known, vague: bool = False) -> onnx.ValueInfoProto:
    """A declaration of `v`; `vague`: without the name of symbol N."""
    return oh.make_tensor_value_info(v.name, v.dtype, [None if vague and d == "N" else d for d in v.shape])
