"""Operators for onnx's reference evaluator: vectorised where its own are slow, right where its own are wrong.

`VECTORISED` replaces operators of `onnx.reference` (1.23) by class name, at every opset: an attribute that the model's opset does
not have arrives with the newest opset's default, so an operator whose default changed asks `_opset`. A class that corrects
the reference, rather than speeding it up, says what was wrong. Arithmetic is done in `_wide(dtype)`, at least float32.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_attention import Attention as ReferenceAttention
from onnx.reference.ops.op_max_pool import MaxPool as ReferenceMaxPool
from onnx.reference.ops.op_resize import Resize as ReferenceResize

Array = np.ndarray[Any, Any]
Size = Sequence[int]
Ints = Size | None
Index = tuple[Any, ...]

_COLUMN_BYTES = 1 << 24  # of one im2col block: large enough for BLAS, small enough to stay near the cache


class OracleError(ValueError):
    """A model that the oracle would evaluate wrongly."""


def _opset(op: OpRun) -> int:
    """Returns the version of the operator set that a node is read in."""
    return int(op.run_params["opsets"][op.onnx_node.domain])


def _wide(array: Array) -> Array:
    """Returns the array in the dtype to compute in: float64 (BLAS, exact) for integers, float32 for the half precisions."""
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def _per_channel(vector: Array, like: Array) -> Array:
    """Returns a vector over channels so that it broadcasts against `like` (N, C, ...)."""
    return _wide(vector).reshape(-1, *[1] * (like.ndim - 2))


class _Window:
    """Where a kernel lies on an image, from the attributes of Conv and the pools: a list entry for each spatial axis."""

    def __init__(
        self, size: Size, kernel: Size, auto_pad: str = "", ceil_mode: int = 0, dilations: Ints = None, pads: Ints = None, **more: Any
    ) -> None:
        rank = len(kernel)
        self.size, self.kernel = size, kernel
        self.strides, self.dilations = more.get("strides") or [1] * rank, dilations or [1] * rank
        self.extent = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations, strict=True)]
        self.padding = list(zip(pads[:rank], pads[rank:], strict=True)) if pads else [(0, 0)] * rank
        if auto_pad == "VALID":
            self.padding = [(0, 0)] * rank
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            # never negative, though where a stride passes over the kernel onnxruntime's pools crop or refuse
            totals = [max(0, (-(-n // s) - 1) * s + k - n) for n, k, s in zip(size, self.extent, self.strides, strict=True)]
            self.padding = [(t // 2, t - t // 2) if auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in totals]
        self.out = []
        for n, k, s, (begin, end) in zip(size, self.extent, self.strides, self.padding, strict=True):
            room = n + begin + end - k
            # rounding up is for explicit pads only, and a window that would start in the end padding is dropped
            up = ceil_mode and auto_pad in ("", "NOTSET") and -(-room // s) * s < n + begin
            self.out.append((-(-room // s) if up else room // s) + 1)

    def taps(self, x: Array, count: Sequence[int]) -> list[tuple[tuple[int, ...], Array]]:
        """Returns for each kernel element its index and the view of x (N, C, *padded) it meets at `count` positions an axis."""
        axes, taps = list(zip(self.strides, self.dilations, count, strict=True)), []
        for index in np.ndindex(*self.kernel):
            at: Index = (..., *(slice(t * d, t * d + (n - 1) * s + 1, s) for t, (s, d, n) in zip(index, axes, strict=True)))
            taps.append((index, x[at]))
        return taps

    def fold(self, x: Array, combine: np.ufunc, fill: float) -> Array:
        """Returns `combine` over each window of x (N, C, *size), an axis at a time: maximum and sum are separable."""
        for i, (k, s, d, n) in enumerate(zip(self.kernel, self.strides, self.dilations, self.out, strict=True)):
            begin = self.padding[i][0]
            after = max(0, (n - 1) * s + self.extent[i] - begin - self.size[i])
            widths = [(0, 0) if axis != i + 2 else (begin, after) for axis in range(x.ndim)]
            padded = np.moveaxis(np.pad(x, widths, constant_values=fill), i + 2, 0)
            total = padded[: (n - 1) * s + 1 : s].copy()
            for t in range(1, k):
                combine(total, padded[t * d : t * d + (n - 1) * s + 1 : s], out=total)
            x = np.moveaxis(total, 0, i + 2)
        return np.ascontiguousarray(x)

    def counts(self, include_pad: int | None) -> Array:
        """Returns how many elements each window averages over, shape `out`: explicit padding if asked, what overhangs it never."""
        total: Array = np.ones(())
        for i, (k, s, d, n) in enumerate(zip(self.kernel, self.strides, self.dilations, self.out, strict=True)):
            begin, end = self.padding[i]
            low, high = (-begin, self.size[i] + end) if include_pad else (0, self.size[i])
            at = np.arange(n)[:, None] * s + np.arange(k) * d - begin
            total = np.multiply.outer(total, ((at >= low) & (at < high)).sum(axis=1))
        return total


def _convolve(x: Array, w: Array, group: int, window: _Window) -> Array:
    """Returns the convolution, without bias, of x (N, C, *size) with w (M, C / group, *kernel)."""
    x = np.pad(x, [(0, 0), (0, 0), *window.padding])
    n, c, m, out = x.shape[0], x.shape[1], w.shape[0], window.out
    if w.shape[1] * group != c or m % group:
        raise ValueError(f"Conv of {c} channels with weights {w.shape} in {group} groups")
    if group == c and m <= 4 * group:  # depthwise: a matmul would have a row or two
        y = np.zeros((n, group, m // group, *out), x.dtype)
        scales = np.moveaxis(w, (0, 1), (-2, -1)).reshape(*w.shape[2:], group, m // group, *[1] * len(out))
        for index, view in window.taps(x, out):
            y += scales[index] * view[:, :, None]
        return y.reshape(n, m, *out)
    along = [b * d for b, d in zip(x.strides[2:], window.dilations, strict=True)]
    across = [b * s for b, s in zip(x.strides[2:], window.strides, strict=True)]
    shape, strides = (n, c, *w.shape[2:], *out), (*x.strides[:2], *along, *across)
    windows = np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    y, rows = np.empty((n, m, *out), x.dtype), w.reshape(group, m // group, -1)
    block = max(1, _COLUMN_BYTES // max(1, math.prod(shape[1:]) // max(1, out[0]) * x.itemsize))
    for image in range(n):
        for start in range(0, out[0], block):
            part: Index = (image, ..., slice(start, start + block), *[slice(None)] * (len(out) - 1))
            columns = windows[part].reshape(group, rows.shape[2], -1)
            y[part] = (rows @ columns).reshape(m, -1, *out[1:])
    return y


class Conv(OpRun):
    """Conv: im2col and BLAS in bounded blocks."""

    def _run(self, x: Array, w: Array, b: Array | None = None, group: int = 1, **window: Any) -> tuple[Array]:
        y = _convolve(_wide(x), _wide(w), group, _Window(x.shape[2:], w.shape[2:], **window))
        if b is not None:
            y += _per_channel(b, y)
        return (y.astype(x.dtype, copy=False),)


class ConvTranspose(OpRun):
    """ConvTranspose: a matmul for each kernel element. The reference mixes up groups, and pads when output_shape is given."""

    def _run(self, x: Array, w: Array, b: Array | None = None, group: int = 1, auto_pad: str = "", **window: Any) -> tuple[Array]:
        at, (n, c, *size), m = _Window(x.shape[2:], w.shape[2:], **window), x.shape, w.shape[1]
        extra, output_shape = window.get("output_padding") or [0] * len(size), window.get("output_shape")
        full = [(i - 1) * s + k + e for i, s, k, e in zip(size, at.strides, at.extent, extra, strict=True)]
        if output_shape is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            output_shape = [i * s for i, s in zip(size, at.strides, strict=True)]
        if output_shape is None:
            padding = at.padding if auto_pad != "VALID" else [(0, 0)] * len(size)
        else:
            totals = [max(0, f - o) for f, o in zip(full, output_shape, strict=True)]
            padding = [(t // 2, t - t // 2) if auto_pad == "SAME_UPPER" else (t - t // 2, t // 2) for t in totals]
        out = output_shape or [f - begin - end for f, (begin, end) in zip(full, padding, strict=True)]
        reach = [max(f, begin + o) for f, (begin, _), o in zip(full, padding, out, strict=True)]
        columns = _wide(x).reshape(n, group, c // group, math.prod(size))
        weights = np.moveaxis(_wide(w).reshape(group, c // group, m, *w.shape[2:]), (0, 1, 2), (-3, -1, -2))
        y = np.zeros((n, group * m, *reach), columns.dtype)
        for index, view in at.taps(y, size):
            view += (weights[index] @ columns).reshape(n, group * m, *size)
        crop: Index = (..., *(slice(begin, begin + o) for (begin, _), o in zip(padding, out, strict=True)))
        return ((y[crop] if b is None else y[crop] + _per_channel(b, y)).astype(x.dtype),)


class MaxPool(ReferenceMaxPool):
    """MaxPool: an axis at a time; onnx's own code gives the indices. The reference is wrong for SAME_LOWER."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        if len(self.output) > 1 and self.output[1]:
            missing = dict.fromkeys(("ceil_mode", "dilations", "pads", "strides"))
            return self._max_pool(*inputs, **{**missing, **attributes})  # type: ignore[no-untyped-call]
        window = {name: value for name, value in attributes.items() if name != "storage_order"}
        (x,) = inputs
        lowest = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        return (_Window(x.shape[2:], window["kernel_shape"], **window).fold(x, np.maximum, lowest),)


class AveragePool(OpRun):
    """AveragePool: an axis at a time."""

    def _run(self, x: Array, count_include_pad: int = 0, kernel_shape: Sequence[int] = (), **window: Any) -> tuple[Array]:
        at = _Window(x.shape[2:], kernel_shape, **window)
        return ((at.fold(_wide(x), np.add, 0) / at.counts(count_include_pad)).astype(x.dtype, copy=False),)


class LpPool(OpRun):
    """LpPool: an axis at a time. The reference scales a mean over fewer elements where a window overhangs."""

    def _run(self, x: Array, p: int = 2, kernel_shape: Sequence[int] = (), **window: Any) -> tuple[Array]:
        at = _Window(x.shape[2:], kernel_shape, **window)
        return ((at.fold(np.abs(_wide(x)) ** p, np.add, 0) ** (1.0 / p)).astype(x.dtype),)


class GlobalMaxPool(OpRun):
    """GlobalMaxPool. The reference takes the maximum over wrong axes unless the image is 2-d."""

    def _run(self, x: Array) -> tuple[Array]:
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class LRN(OpRun):
    """LRN. The reference counts channels by the batch: it leaves the others as they are."""

    def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        square = np.pad(np.square(_wide(x)), [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
        total = sum(square[:, i : i + x.shape[1]] for i in range(size))
        return ((_wide(x) / (float(bias) + float(alpha) / size * total) ** float(beta)).astype(x.dtype),)


class BatchNormalization(OpRun):
    """BatchNormalization. The reference trains on opsets 7 to 13, where one output means inference."""

    def _run(
        self, x: Array, scale: Array, b: Array, mean: Array, var: Array, epsilon: float, momentum: float, training_mode: int, **old: Any
    ) -> tuple[Array, ...]:
        train = training_mode if _opset(self) >= 14 else len(self.output) > 1
        if old.get("spatial", 1) == 0:
            raise OracleError("BatchNormalization with spatial=0")
        wide, axes, kept = _wide(x), (0, *range(2, x.ndim)), float(momentum)
        now = (wide.mean(axis=axes), wide.var(axis=axes)) if train else (_wide(mean), _wide(var))
        factor = _wide(scale) / np.sqrt(now[1] + float(epsilon))
        y = ((wide - _per_channel(now[0], x)) * _per_channel(factor, x) + _per_channel(b, x)).astype(x.dtype, copy=False)
        running = [(_wide(old) * kept + new * (1 - kept)).astype(old.dtype) for old, new in zip((mean, var), now, strict=True)]
        return (y, *running, *now) if train else (y,)


class _AlongAxis(OpRun):
    """Softmax and its relatives. The reference knows only opset 13: before, axis was 1 by default and began a flat matrix."""

    def _run(self, x: Array, axis: int) -> tuple[Array]:
        if x.size == 0:
            return (x,)
        if _opset(self) >= 13:
            return (self.along(_wide(x), axis).astype(x.dtype, copy=False),)
        given = any(a.name == "axis" for a in self.onnx_node.attribute)
        flat = x.reshape(math.prod(x.shape[: axis if given else 1]), -1)
        return (self.along(_wide(flat), -1).astype(x.dtype, copy=False).reshape(x.shape),)

    def along(self, x: Array, axis: int) -> Array:
        """Returns the function of x along one axis."""
        raise NotImplementedError


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
        wide = x.astype(np.result_type(_wide(x), tensor_dtype_to_np_dtype(stash_type)))
        axes = tuple(range(axis % x.ndim, x.ndim))
        mean = wide.mean(axis=axes, keepdims=True)
        inverse = 1 / np.sqrt(wide.var(axis=axes, keepdims=True) + float(epsilon))
        y = (wide - mean) * inverse * _wide(scale)
        return ((y if b is None else y + _wide(b)).astype(x.dtype), mean, inverse)


class RMSNormalization(OpRun):
    """RMSNormalization, as LayerNormalization."""

    def _run(self, x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> tuple[Array]:
        wide = x.astype(np.result_type(_wide(x), tensor_dtype_to_np_dtype(stash_type)))
        mean = np.square(wide).mean(axis=tuple(range(axis % x.ndim, x.ndim)), keepdims=True)
        return ((wide / np.sqrt(mean + float(epsilon)) * _wide(scale)).astype(x.dtype),)


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
        return (np.matmul(_wide(a), _wide(b)).astype(a.dtype, copy=False),)


class Gemm(OpRun):
    """Gemm, accumulated in float32 for the half precisions."""

    def _run(
        self, a: Array, b: Array, c: Array | None = None, alpha: float = 1, beta: float = 1, transA: int = 0, transB: int = 0
    ) -> tuple[Array]:
        y = (_wide(a).T if transA else _wide(a)) @ (_wide(b).T if transB else _wide(b)) * float(alpha)
        return ((y if c is None else y + _wide(c) * float(beta)).astype(a.dtype, copy=False),)


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
    *(Attention, AveragePool, BatchNormalization, Conv, ConvTranspose, Erf, Flatten, GatherElements, Gemm, GlobalMaxPool, Hardmax, LRN),
    *(LayerNormalization, LogSoftmax, LpPool, MatMul, MaxPool, Pad, RMSNormalization, Resize, Softmax, Upsample),
)
