"""GraphBuilder: grows an `onnx.ModelProto` node by node, with seeded weights that keep activations O(1)."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8

Shape = tuple[int | str, ...]


class Value(NamedTuple):
    """A tensor of the graph: its name, shape (a dim is an int or a symbol) and onnx element type."""

    name: str
    shape: Shape
    dtype: int = TensorProto.FLOAT


class GraphBuilder:
    """Builds one model; a node is named by the open scopes and its label, and its output has the node's name.

    Weights are drawn from `rng` in node order, and no draw depends on the batch or the image size, so one seed gives the
    same weights at every input size. They keep a deep network at the edge of chaos: activations stay O(1), an input
    change neither dies out nor blows up. He-scaled conv weights alone would let all inputs converge to one output (the
    positive mean that a relu leaves is carried on, what differs shrinks), so each filter's own mean is subtracted, wholly
    where the scatter of a batchnorm's bias and mean holds the chaos down, else in part. Batchnorm's four arrays are far
    from trivial, so that a wrong fold shows.
    """

    def __init__(self, name: str, rng: np.random.Generator, opset: int = OPSET) -> None:
        """Starts an empty graph of this name; weights will be drawn from rng."""
        self._name = name
        self._rng = rng
        self._opset = opset
        self._scopes: list[str] = []
        self._inputs: list[Value] = []
        self._nodes: list[onnx.NodeProto] = []
        self._proto = onnx.ModelProto(producer_name="cgorl.zoo")  # weights go into it one by one, so that they are held once
        self._made: set[str] = set()

    @contextmanager
    def scope(self, label: str) -> Iterator[None]:
        """Yields once; nodes made inside are named `label/...` below the scopes already open."""
        self._scopes.append(label)
        yield
        self._scopes.pop()

    def input(self, name: str, shape: Shape, dtype: int = TensorProto.FLOAT) -> Value:
        """Returns a new input of the graph."""
        value = Value(name, shape, dtype)
        self._inputs.append(value)
        return value

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Returns the name of an initializer outside every scope; asked for again under one name, it is shared."""
        if name not in self._made:
            self._made.add(name)
            self._proto.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, label: str, shape: tuple[int, ...], *, std: float = 1.0) -> Value:
        """Returns a normally distributed weight."""
        return Value(self._weight(label, self._normal(shape, std)), shape)

    def node(self, op: str, inputs: Sequence[Value | str], shape: Shape, label: str, **attributes: Any) -> Value:
        """Returns the output, of the given shape, of a new node; inputs are values or names of initializers."""
        return self.nodes(op, inputs, [(shape, TensorProto.FLOAT)], label, **attributes)[0]

    def nodes(
        self, op: str, inputs: Sequence[Value | str], results: Sequence[tuple[Shape, int]], label: str, **attributes: Any
    ) -> tuple[Value, ...]:
        """Returns the outputs, of the given shapes and element types, of a new node; each but the first is named `label.k`."""
        name = self._path(label)
        made = tuple(Value(f"{name}.{k}" if k else name, *result) for k, result in enumerate(results))
        sources = [source.name if isinstance(source, Value) else source for source in inputs]
        self._nodes.append(helper.make_node(op, sources, [value.name for value in made], name=name, **attributes))
        return made

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: int | tuple[int, int],
        label: str = "conv",
        *,
        stride: int = 1,
        same: bool = True,
        group: int = 1,
        normed: bool = True,
        bias: bool = False,
        gain: float = 1.0,
    ) -> Value:
        """Returns x (N, C, H, W) convolved, weight (channels, C / group, kh, kw).

        Args:
            x: the input.
            channels: output channels.
            kernel: (kh, kw), or one number for both.
            label: the node's label; the weight is `label.weight`.
            stride: of both axes.
            same: pad kernel // 2 on each side (odd kernels), else no padding.
            group: in how many groups of channels; a divisor of C and of channels.
            normed: a batchnorm follows; the two are scaled for one another. Else the conv alone keeps the mean square.
            bias: add a bias, `label.bias` (channels,).
            gain: mean square of the output, relative to what keeps it constant from relu to relu.
        """
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        inner = _channels(x) // group
        fan_in = inner * kh * kw
        variance, centring = (2.0, 1.0) if normed else (2.3, 0.25)
        weight = self._normal((channels, inner, kh, kw), math.sqrt(gain * variance / fan_in))
        if fan_in > 1:
            weight -= np.float32(centring) * weight.mean(axis=(1, 2, 3), keepdims=True)
        attributes = _window((kh, kw), stride, same)
        shape = (x.shape[0], channels, *_sides(x, attributes))
        grouped = {"group": group} if group > 1 else {}
        weights = [self._weight(f"{label}.weight", weight), *([self.bias(channels, label)] if bias else [])]
        return self.node("Conv", [x, *weights], shape, label, **attributes, **grouped)

    def bias(self, channels: int, label: str) -> str:
        """Returns the name of a new bias (channels,), `label.bias`."""
        return self._weight(f"{label}.bias", self._normal((channels,), 0.2))

    def batchnorm(self, x: Value, label: str = "bn", *, gain: float = 1.0, epsilon: float = 1e-5) -> Value:
        """Returns x (N, C, ...) under inference batch normalization; `gain` multiplies the mean square of the result."""
        size = (_channels(x),)
        variance = self._uniform(size, 0.5, 1.5)
        scale = self._uniform(size, 0.7, 1.3) * np.float32(math.sqrt(gain))
        bias = self._normal(size, 0.35 * math.sqrt(gain))
        mean = self._normal(size, 0.3)
        parts = {"scale": scale, "bias": bias, "mean": mean, "var": variance}
        weights = [self._weight(f"{label}.{part}", array) for part, array in parts.items()]
        return self.node("BatchNormalization", [x, *weights], x.shape, label, epsilon=epsilon)

    def relu(self, x: Value, label: str = "relu") -> Value:
        """Returns max(x, 0)."""
        return self.node("Relu", [x], x.shape, label)

    def add(self, a: Value, b: Value, label: str = "add") -> Value:
        """Returns a + b, both of one shape."""
        return self.node("Add", [a, b], a.shape, label)

    def concat(self, values: Sequence[Value], label: str = "concat") -> Value:
        """Returns the values joined on axis 1 (channels)."""
        channels = sum(_channels(value) for value in values)
        return self.node("Concat", values, (values[0].shape[0], channels, *values[0].shape[2:]), label, axis=1)

    def max_pool(self, x: Value, kernel: int, label: str = "maxpool", *, stride: int = 1, same: bool = True) -> Value:
        """Returns the maximum of each window of x (N, C, H, W); padding as in `conv`."""
        attributes = _window((kernel, kernel), stride, same)
        return self.node("MaxPool", [x], (*x.shape[:2], *_sides(x, attributes)), label, **attributes)

    def average_pool(self, x: Value, kernel: int, label: str = "avgpool", *, stride: int = 1, count_include_pad: bool) -> Value:
        """Returns the mean of each window of x (N, C, H, W) at SAME padding."""
        attributes = _window((kernel, kernel), stride, same=True)
        shape = (*x.shape[:2], *_sides(x, attributes))
        return self.node("AveragePool", [x], shape, label, count_include_pad=int(count_include_pad), **attributes)

    def classifier(self, x: Value, classes: int) -> Value:
        """Returns logits (N, classes) of x (N, C, H, W): global average pool, flatten, linear with bias (Gemm)."""
        channels = _channels(x)
        pooled = self.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1), "avgpool")
        flat = self.node("Flatten", [pooled], x.shape[:2], "flatten", axis=1)
        weight = self._weight("fc.weight", self._normal((classes, channels), math.sqrt(2.0 / channels)))
        return self.node("Gemm", [flat, weight, self.bias(classes, "fc")], (x.shape[0], classes), "fc", transB=1)

    def matmul(self, x: Value, features: int, label: str, *, gain: float = 1.0) -> Value:
        """Returns x (..., C) @ weight (C, features)."""
        inner = int(x.shape[-1])
        weight = self._weight(f"{label}.weight", self._normal((inner, features), math.sqrt(gain / inner)))
        return self.node("MatMul", [x, weight], (*x.shape[:-1], features), label)

    def linear(self, x: Value, features: int, label: str, *, gain: float = 1.0) -> Value:
        """Returns x (..., C) @ weight (C, features) + bias, as the two nodes `label/matmul` and `label/add`."""
        with self.scope(label):
            product = self.matmul(x, features, "matmul", gain=gain)
            return self.node("Add", [product, self.bias(features, "add")], product.shape, "add")

    def layer_norm(self, x: Value, label: str, *, epsilon: float = 1e-12) -> Value:
        """Returns x (..., C) normalized over its last axis, with scale and bias (C,)."""
        size = (int(x.shape[-1]),)
        scale = self._weight(f"{label}.scale", self._uniform(size, 0.6, 1.4))
        bias = self._weight(f"{label}.bias", self._normal(size, 0.2))
        return self.node("LayerNormalization", [x, scale, bias], x.shape, label, axis=-1, epsilon=epsilon)

    def model(self, *outputs: Value) -> onnx.ModelProto:
        """Returns the finished model, whose outputs are the given values renamed `output`, `output.1`, ..."""
        renamed = {value.name: f"output.{k}" if k else "output" for k, value in enumerate(outputs)}
        for node in self._nodes:
            node.output[:] = [renamed.get(name, name) for name in node.output]
            node.input[:] = [renamed.get(name, name) for name in node.input]
        graph = self._proto.graph
        graph.name = self._name
        graph.node.extend(self._nodes)
        graph.input.extend(helper.make_tensor_value_info(value.name, value.dtype, value.shape) for value in self._inputs)
        graph.output.extend(helper.make_tensor_value_info(renamed[value.name], value.dtype, value.shape) for value in outputs)
        opset = helper.make_opsetid("", self._opset)
        self._proto.opset_import.append(opset)
        self._proto.ir_version = helper.find_min_ir_version_for([opset]) if self._opset > OPSET else IR_VERSION
        return self._proto

    def _path(self, label: str) -> str:
        return "/".join([*self._scopes, label])

    def _weight(self, label: str, array: NDArray[np.float32]) -> str:
        return self.constant(self._path(label), array)

    def _normal(self, shape: tuple[int, ...], std: float) -> NDArray[np.float32]:
        values = self._rng.standard_normal(shape, dtype=np.float32)
        values *= np.float32(std)
        return values

    def _uniform(self, shape: tuple[int, ...], low: float, high: float) -> NDArray[np.float32]:
        return self._rng.random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low)


def _channels(x: Value) -> int:
    return int(x.shape[1])


def _window(kernel: tuple[int, int], stride: int, same: bool) -> dict[str, list[int]]:
    pads = [kernel[0] // 2, kernel[1] // 2] if same else [0, 0]
    return {"kernel_shape": list(kernel), "strides": [stride, stride], "pads": pads * 2}


def _sides(x: Value, window: dict[str, list[int]]) -> tuple[int, ...]:
    axes = zip(x.shape[2:], window["kernel_shape"], window["strides"], window["pads"], strict=False)
    return tuple((int(side) + 2 * pad - kernel) // stride + 1 for side, kernel, stride, pad in axes)
