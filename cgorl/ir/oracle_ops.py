"""Operators for onnx's reference evaluator: vectorised where its own are slow, right where its own are wrong.

`VECTORISED` replaces operators of `onnx.reference` (1.23) by class name, at every opset: an attribute that the model's opset does
not have arrives with the newest opset's default, so an operator whose default changed asks `_opset`. A class that corrects
the reference, rather than speeding it up, says what was wrong. Arithmetic is done in `widened(dtype)`, at least float32.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_attention import Attention as ReferenceAttention
from onnx.reference.ops.op_resize import Resize as ReferenceResize

from cgorl.ir.oracle_windows import WINDOWED, Array, per_channel, widened


class OracleError(ValueError):
    """A model that the oracle would evaluate wrongly."""


def _opset(op: OpRun) -> int:
    """Returns the version of the operator set that a node is read in."""
    return int(op.run_params["opsets"][op.onnx_node.domain])


class GlobalMaxPool(OpRun):
    """GlobalMaxPool. The reference takes the maximum over wrong axes unless the image is 2-d."""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class LRN(OpRun):
    """LRN. The reference counts channels by the batch: it leaves the others as they are."""

    def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        square = np.pad(np.square(widened(x)), [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
        total = sum(square[:, i : i + x.shape[1]] for i in range(size))
        return ((widened(x) / (float(bias) + float(alpha) / size * total) ** float(beta)).astype(x.dtype),)


class BatchNormalization(OpRun):
    """BatchNormalization. The reference trains on opsets 7 to 13, where one output means inference."""

    def _run(
        self, x: Array, scale: Array, b: Array, mean: Array, var: Array, epsilon: float, momentum: float, training_mode: int, **old: Any
    ) -> tuple[Array, ...]:
        train = training_mode if _opset(self) >= 14 else len(self.output) > 1
        if old.get("spatial", 1) == 0:
            raise OracleError("BatchNormalization with spatial=0")
        wide, axes, kept = widened(x), (0, *range(2, x.ndim)), float(momentum)
        now = (wide.mean(axis=axes), wide.var(axis=axes)) if train else (widened(mean), widened(var))
        factor = widened(scale) / np.sqrt(now[1] + float(epsilon))
        y = ((wide - per_channel(now[0], x)) * per_channel(factor, x) + per_channel(b, x)).astype(x.dtype, copy=False)
        running = [(widened(old) * kept + new * (1 - kept)).astype(old.dtype) for old, new in zip((mean, var), now, strict=True)]
        return (y, *running, *now) if train else (y,)


class _AlongAxis(OpRun):
    """Softmax and its relatives. The reference knows only opset 13: before, axis was 1 by default and began a flat matrix."""

    def _run(self, x: Array, axis: int) -> tuple[Array]:
        if x.size == 0:
            return (x,)
        if _opset(self) >= 13:
            return (self.along(widened(x), axis).astype(x.dtype, copy=False),)
        given = any(a.name == "axis" for a in self.onnx_node.attribute)
        flat = x.reshape(math.prod(x.shape[: axis if given else 1]), -1)
        return (self.along(widened(flat), -1).astype(x.dtype, copy=False).reshape(x.shape),)

    @abstractmethod
    def along(self, x: Array, axis: int) -> Array:
        """Returns the function of x along one axis."""


class Softmax(_AlongAxis):
    """Softmax."""

    def along(self, x: Array, axis: int) -> Array:
        """Returns the softmax of x along one axis."""
        y: Array = np.exp(x - x.max(axis=axis, keepdims=True))
        y /= y.sum(axis=axis, keepdims=True)
        return y


class LogSoftmax(_AlongAxis):
    """LogSoftmax. The reference takes the logarithm of a softmax that has underflowed."""

    def along(self, x: Array, axis: int) -> Array:
        """Returns the logarithm of the softmax of x along one axis."""
        y: Array = x - x.max(axis=axis, keepdims=True)
        y -= np.log(np.exp(y).sum(axis=axis, keepdims=True))
        return y


class Hardmax(_AlongAxis):
    """Hardmax."""

    def along(self, x: Array, axis: int) -> Array:
        """Returns 1 at the first maximum of x along one axis, else 0."""
        y = np.zeros_like(x)
        np.put_along_axis(y, np.expand_dims(x.argmax(axis=axis), axis), 1, axis=axis)
        return y


class Erf(OpRun):
    """Erf, to the last bit. The reference rounds it to float32."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape).astype(x.dtype),)


class LayerNormalization(OpRun):
    """LayerNormalization, statistics in at least the stash type. The reference takes no other than float32."""

    def _run(
        self, x: Array, scale: Array, b: Array | None = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
    ) -> tuple[Array, ...]:
        wide = x.astype(np.result_type(widened(x), tensor_dtype_to_np_dtype(stash_type)))
        axes = tuple(range(axis % x.ndim, x.ndim))
        mean = wide.mean(axis=axes, keepdims=True)
        inverse = 1 / np.sqrt(wide.var(axis=axes, keepdims=True) + float(epsilon))
        y = (wide - mean) * inverse * widened(scale)
        return ((y if b is None else y + widened(b)).astype(x.dtype), mean, inverse)


class RMSNormalization(OpRun):
    """RMSNormalization, as LayerNormalization."""

    def _run(self, x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> tuple[Array]:
        wide = x.astype(np.result_type(widened(x), tensor_dtype_to_np_dtype(stash_type)))
        mean = np.square(wide).mean(axis=tuple(range(axis % x.ndim, x.ndim)), keepdims=True)
        return ((wide / np.sqrt(mean + float(epsilon)) * widened(scale)).astype(x.dtype),)


class Attention(ReferenceAttention):
    """Attention. The reference takes the square root of scale in float32."""

    _validate_attention25 = False

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        exact = {"scale": None if attributes.get("scale") is None else float(attributes["scale"])}
        return super()._run(*inputs, **{**attributes, **exact})


class MatMul(OpRun):
    """MatMul, accumulated in float32 for the half precisions."""

    def _run(self, a: Array, b: Array) -> tuple[Array]:
        if a.dtype.kind in "iu":
            return (np.matmul(a, b),)
        return (np.matmul(widened(a), widened(b)).astype(a.dtype, copy=False),)


class Gemm(OpRun):
    """Gemm, accumulated in float32 for the half precisions."""

    def _run(
        self, a: Array, b: Array, c: Array | None = None, alpha: float = 1, beta: float = 1, transA: int = 0, transB: int = 0
    ) -> tuple[Array]:
        y = (widened(a).T if transA else widened(a)) @ (widened(b).T if transB else widened(b)) * float(alpha)
        return ((y if c is None else y + widened(c) * float(beta)).astype(a.dtype, copy=False),)


class Flatten(OpRun):
    """Flatten. The reference fails on an empty batch."""

    def _run(self, x: Array, axis: int = 1) -> tuple[Array]:
        return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)


class GatherElements(OpRun):
    """GatherElements. The reference fails on more than 64 elements along the axis where other axes are shorter than the data's."""

    def _run(self, x: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        at: list[Array] = list(np.indices(indices.shape, sparse=True))
        at[axis] = indices
        return (x[tuple(at)],)


class Pad(OpRun):
    """Pad. The reference fails on negative pads, which crop."""

    def _run(
        self, x: Array, pads: Sequence[int], value: Any = None, axes: Sequence[int] | None = None, mode: str = "constant", **_: Any
    ) -> tuple[Array]:
        widths = [(0, 0)] * x.ndim
        given = range(x.ndim) if axes is None else axes
        for i, axis in enumerate(given):
            widths[axis] = (int(pads[i]), int(pads[i + len(given)]))
        x = x[tuple(slice(max(0, -begin), n - max(0, -end)) for n, (begin, end) in zip(x.shape, widths, strict=True))]
        constant: Any = {} if mode != "constant" else {"constant_values": 0 if value is None else np.asarray(value).item()}
        how: Any = mode
        return (np.pad(x, [(max(0, begin), max(0, end)) for begin, end in widths], how, **constant),)


class Resize(ReferenceResize):
    """Resize. The reference does not take the inputs of opset 10, and makes 6 of 10 x 0.7f, where shape inference says 7."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        slots: list[Any] = [*inputs, None, None]
        x, roi, scales, sizes = slots[:4]
        if _opset(self) <= 10:
            roi, scales = None, roi
            # what opset 10 leaves open, as onnxruntime does it
            rounding = "ceil" if np.less(inputs[1], 1).any() else "floor"
            attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
        if sizes is not None:
            return super()._run(x, roi, None, sizes, **attributes)
        dims = np.array([x.shape[axis] for axis in attributes["axes"] or range(x.ndim)])
        # the size is the floor of a product of float32 values: the least scale that gives it in float64, if that is more
        sized = np.floor(scales.astype(np.float32) * dims.astype(np.float32))
        exact = np.maximum(scales.astype(np.float64), sized / np.maximum(dims, 1))
        return super()._run(x, roi, exact, None, **attributes)


class Upsample(Resize):
    """Upsample: the Resize of opset 10. The reference knows only the nearest element and whole scales."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        x, scales = (*inputs, np.array(attributes.get("scales", ()), np.float64))[:2]
        new = {"antialias": 0, "axes": None, "exclude_outside": 0, "extrapolation_value": 0.0, "keep_aspect_ratio_policy": "stretch"}
        return super()._run(x, scales, mode=attributes["mode"], cubic_coeff_a=-0.75, **new)


VECTORISED: tuple[type[OpRun], ...] = (
    *WINDOWED,
    *(Attention, BatchNormalization, Erf, Flatten, GatherElements, Gemm, GlobalMaxPool, Hardmax, LRN, LayerNormalization, LogSoftmax),
    *(MatMul, Pad, RMSNormalization, Resize, Softmax, Upsample),
)
