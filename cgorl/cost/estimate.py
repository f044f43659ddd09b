"""What a kernel without a price may take: the nearest measured one of its operator, scaled by what a roofline says of both."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cgorl.cost.kernels.kernel import Kernel
from cgorl.ir.tensor import element_bits

PEAK_FLOPS, BANDWIDTH, LAUNCH_MS = 60e9, 12e9, 0.0006
"""One core with AVX2, as far as a kernel without any measured kin is concerned."""

DOUBT = 0.3
"""How far an estimate may be off, as a share of it."""


def roofline_ms(kernel: Kernel) -> float:
    """An analytic price from arithmetic and bytes."""
    return 1000 * max(flops(kernel) / PEAK_FLOPS, moved(kernel) / BANDWIDTH) + LAUNCH_MS


def flops(kernel: Kernel) -> float:
    """Operations, a multiply-add counting two."""
    out = sum(s.elements for s in kernel.outputs if s is not None)
    operands = [s for s in kernel.inputs if s is not None]
    if kernel.op in ("Conv", "FusedConv") and len(operands) > 1:
        return 2.0 * out * math.prod(operands[1].shape[1:])
    if kernel.op in ("MatMul", "Gemm", "FusedGemm", "FusedMatMul") and operands and operands[0].shape:
        return 2.0 * out * operands[0].shape[0 if dict(kernel.attrs).get("transA") else -1]
    window = dict(kernel.attrs).get("kernel_shape")
    if window and "Pool" in kernel.op:
        return float(out * math.prod(window))
    return float(max([out, *(s.elements for s in operands if not s.fixed)]))


def moved(kernel: Kernel) -> float:
    """Bytes of operands and results."""
    slots = [s for s in (*kernel.inputs, *kernel.outputs) if s is not None]
    if kernel.op in ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Shape", "Dropout"):
        return 0.0
    if kernel.op in ("Gather", "Slice") and slots:
        slots = slots[1:]
    return sum(s.elements * element_bits(s.dtype) / 8 for s in slots)


class Nearest:
    """Measured kernels by operator, to estimate others from."""

    def __init__(self, measured: Iterable[tuple[Kernel, float]], elsewhere: Iterable[tuple[Kernel, float]] = ()) -> None:
        """Takes kernels with their price in ms; those measured `elsewhere` count where there is no kin of this target."""
        self._kin: tuple[dict[tuple[str, str], list[tuple[Kernel, float]]], ...] = ({}, {})
        for table, given in zip(self._kin, (measured, elsewhere), strict=True):
            for kernel, ms in given:
                table.setdefault((kernel.domain, kernel.op), []).append((kernel, ms))

    def ms(self, kernel: Kernel) -> float:
        """The estimate."""
        for table in self._kin:
            if kin := table.get((kernel.domain, kernel.op)):
                near, ms = min(kin, key=lambda pair: _distance(pair[0], kernel))
                return roofline_ms(kernel) * ms / roofline_ms(near)
        return roofline_ms(kernel)


def _distance(a: Kernel, b: Kernel) -> float:
    return sum(abs(math.log1p(f(a)) - math.log1p(f(b))) for f in (flops, moved)) + (0.0 if a.attrs == b.attrs else 0.1)
