"""Operators for onnx's reference evaluator whose kernel slides over an image: convolutions and pools, vectorised."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_max_pool import MaxPool as ReferenceMaxPool

Array = np.ndarray[Any, Any]
Size = Sequence[int]
Ints = Size | None
Index = tuple[Any, ...]

_COLUMN_BYTES = 1 << 24  # of one im2col block: large enough for BLAS, small enough to stay near the cache


def widened(array: Array) -> Array:
    """Returns the array in the dtype to compute in: float64 (BLAS, exact) for integers, float32 for the half precisions."""
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def per_channel(vector: Array, like: Array) -> Array:
    """Returns a vector over channels so that it broadcasts against `like` (N, C, ...)."""
    return widened(vector).reshape(-1, *[1] * (like.ndim - 2))


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
        y = _convolve(widened(x), widened(w), group, _Window(x.shape[2:], w.shape[2:], **window))
        if b is not None:
            y += per_channel(b, y)
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
        columns = widened(x).reshape(n, group, c // group, math.prod(size))
        weights = np.moveaxis(widened(w).reshape(group, c // group, m, *w.shape[2:]), (0, 1, 2), (-3, -1, -2))
        y = np.zeros((n, group * m, *reach), columns.dtype)
        for index, view in at.taps(y, size):
            view += (weights[index] @ columns).reshape(n, group * m, *size)
        crop: Index = (..., *(slice(begin, begin + o) for (begin, _), o in zip(padding, out, strict=True)))
        return ((y[crop] if b is None else y[crop] + per_channel(b, y)).astype(x.dtype),)


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
        return ((at.fold(widened(x), np.add, 0) / at.counts(count_include_pad)).astype(x.dtype, copy=False),)


class LpPool(OpRun):
    """LpPool: an axis at a time. The reference scales a mean over fewer elements where a window overhangs."""

    def _run(self, x: Array, p: int = 2, kernel_shape: Sequence[int] = (), **window: Any) -> tuple[Array]:
        at = _Window(x.shape[2:], kernel_shape, **window)
        return ((at.fold(np.abs(widened(x)) ** p, np.add, 0) ** (1.0 / p)).astype(x.dtype),)


WINDOWED: tuple[type[OpRun], ...] = (AveragePool, Conv, ConvTranspose, LpPool, MaxPool)
