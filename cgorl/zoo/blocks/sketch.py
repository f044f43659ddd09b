"""Sketch: a GraphBuilder for a few nodes, which finds names and shapes by itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from cgorl.ir.infer import infer
from cgorl.ir.node import TensorType
from cgorl.ir.tensor import Tensor
from cgorl.zoo.builder import GraphBuilder, Value

OPSET = 20

Operand = Value | float | Sequence[int] | NDArray[Any] | None


class Sketch:
    """Builds one block at opset 20: its operands may be values, numbers, lists of integers, arrays, or None for an absent one."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        """Starts an empty block of this name; weights will be drawn from rng."""
        self._builder = GraphBuilder(name, rng, OPSET)
        self._rng = rng
        self._counts: Counter[str] = Counter()
        self._held: dict[str, Tensor] = {}

    def input(self, *shape: int, dtype: int = TensorProto.FLOAT) -> Value:
        """Returns a new input."""
        return self._builder.input(self._label("x"), shape, dtype)

    def hold(self, array: NDArray[Any]) -> Value:
        """Returns a new initializer."""
        tensor = Tensor.of(array)
        name = self._builder.constant(self._label("c"), array)
        self._held[name] = tensor
        return Value(name, tensor.shape, tensor.dtype)

    def normal(self, *shape: int, std: float = 1.0) -> Value:
        """Returns a normally distributed weight."""
        return self.hold(self._rng.standard_normal(shape, dtype=np.float32) * np.float32(std))

    def uniform(self, *shape: int, low: float = 0.5, high: float = 1.5) -> Value:
        """Returns a uniformly distributed weight, far from 0 by default."""
        return self.hold((self._rng.random(shape, dtype=np.float32) * (high - low) + low).astype(np.float32))

    def apply(self, op: str, *operands: Operand, **attributes: Any) -> Value:
        """Returns the only output of a new node."""
        return self._apply(op, operands, 1, attributes)[0]

    def split(self, x: Value, sizes: Sequence[int], axis: int = 1) -> tuple[Value, ...]:
        """Returns x cut into parts of the given sizes."""
        return self._apply("Split", (x, sizes), len(sizes), {"axis": axis})

    def concat(self, *values: Value, axis: int = 1) -> Value:
        """Returns the values joined."""
        return self.apply("Concat", *values, axis=axis)

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: int = 1,
        *,
        bias: bool = True,
        pad: int | None = None,
        stride: int = 1,
        group: int = 1,
        weight: Value | None = None,
    ) -> Value:
        """Returns x (N, C, H, W) convolved, at SAME padding unless `pad` says otherwise; with `weight`, if it is given."""
        inner = int(x.shape[1]) // group
        if weight is None:
            weight = self.normal(channels, inner, kernel, kernel, std=1 / math.sqrt(inner * kernel**2))
        pads = [kernel // 2 if pad is None else pad] * 4
        window = {"kernel_shape": list(weight.shape[2:]), "pads": pads, "strides": [stride, stride], "group": group}
        return self.apply("Conv", x, weight, *([self.normal(channels, std=0.3)] if bias else []), **window)

    def deconv(self, x: Value, channels: int, *, bias: bool = True) -> Value:
        """Returns x (N, C, H, W) convolved transposed by a 4x4 kernel, (N, channels, 2 H, 2 W)."""
        inner = int(x.shape[1])
        weight = self.normal(inner, channels, 4, 4, std=0.5 / math.sqrt(inner))
        operands = [x, weight, *([self.normal(channels, std=0.3)] if bias else [])]
        return self.apply("ConvTranspose", *operands, kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1])

    def norm(self, x: Value) -> Value:
        """Returns x (N, C, ...) under inference batch normalization."""
        size = int(x.shape[1])
        return self.apply(
            "BatchNormalization", x, self.uniform(size), self.normal(size, std=0.3), self.normal(size, std=0.3), self.uniform(size)
        )

    def linear(self, x: Value, features: int, *, bias: bool = True) -> Value:
        """Returns x (N, C) through a linear layer as PyTorch exports it, a Gemm with the weight (features, C)."""
        inner = int(x.shape[1])
        weight = self.normal(features, inner, std=1 / math.sqrt(inner))
        return self.apply("Gemm", x, weight, *([self.normal(features, std=0.3)] if bias else []), transB=1)

    def matmul(self, x: Value, features: int) -> Value:
        """Returns x (..., C) @ weight (C, features)."""
        inner = int(x.shape[-1])
        return self.apply("MatMul", x, self.normal(inner, features, std=1 / math.sqrt(inner)))

    def transpose(self, x: Value, *perm: int) -> Value:
        """Returns x with its axes in another order."""
        return self.apply("Transpose", x, perm=list(perm))

    def to_nhwc(self, x: Value) -> Value:
        """Returns x (N, C, H, W) as (N, H, W, C)."""
        return self.transpose(x, 0, 2, 3, 1)

    def to_nchw(self, x: Value) -> Value:
        """Returns x (N, H, W, C) as (N, C, H, W)."""
        return self.transpose(x, 0, 3, 1, 2)

    def slice(self, x: Value, start: int, end: int, axis: int = 1) -> Value:
        """Returns x[start:end] along an axis."""
        return self.apply("Slice", x, [start], [end], [axis], [1])

    def model(self, *outputs: Value) -> onnx.ModelProto:
        """Returns the finished block."""
        return self._builder.model(*outputs)

    def _label(self, kind: str) -> str:
        self._counts[kind] += 1
        return f"{kind}{self._counts[kind]}"

    def _apply(self, op: str, operands: Sequence[Operand], outputs: int, attributes: dict[str, Any]) -> tuple[Value, ...]:
        values = [self._value(operand) for operand in operands]
        kinds = [None if v is None else TensorType(v.dtype, v.shape) for v in values]
        contents = [None if v is None else self._held.get(v.name) for v in values]
        frozen = {k: tuple(a) if isinstance(a, list) else a for k, a in attributes.items()}
        found = infer(op, "", OPSET, frozen, kinds, contents, outputs)
        results = [((), 0) if kind is None or kind.shape is None else (kind.shape, kind.dtype) for kind in found]
        return self._builder.nodes(
            op,
            ["" if v is None else v for v in values],
            [(tuple(d for d in shape if d is not None), dtype) for shape, dtype in results],
            self._label(op.lower()),
            **attributes,
        )

    def _value(self, operand: Operand) -> Value | None:
        if operand is None or isinstance(operand, Value):
            return operand
        if isinstance(operand, np.ndarray):
            return self.hold(operand)
        return self.hold(np.array(operand, np.float32 if isinstance(operand, float | int) else np.int64))
