"""Floating-point operations and bytes that one node takes, by operator."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cgorl.ir.node import Node

Shape = tuple[int, ...] | None

FREE = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout", "Shape", "Size"})
"""Operators that move and compute nothing."""

PICKING = frozenset({"Gather", "GatherND", "GatherElements", "Slice"})
"""Operators that read no more of their first operand than they give: a table of embeddings is not read whole."""

READS = {"Conv": 2, "ConvTranspose": 2, "BatchNormalization": 1}
"""How many operands are read at a price, where not all: what is left out is a number for each channel, as in TASO's list."""

_POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_MOVES = frozenset({"Concat", "Split", "Slice", "Pad", "Transpose", "Gather", "GatherND", "GatherElements", "Expand", "Tile", "Cast"})


def flops(node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> float:
    """Operations (a multiply-add counts two) from the shapes of operands and results."""
    out = elements(outputs[0]) if outputs else 0
    if node.op in ("Conv", "ConvTranspose") and len(inputs) > 1 and inputs[1] is not None:
        weight, data = inputs[1], inputs[0]
        if node.op == "ConvTranspose":
            return 2.0 * elements(data) * math.prod(weight[1:])
        return 2.0 * out * math.prod(weight[1:])
    if node.op in ("MatMul", "Gemm") and inputs[0]:
        inner = inputs[0][0] if node.op == "Gemm" and node.attrs.get("transA") else inputs[0][-1]
        return 2.0 * out * inner
    if node.op in _POOLS:
        kernel = node.attrs.get("kernel_shape", ())
        return float(out * math.prod(kernel) if isinstance(kernel, tuple) else out)
    if node.op in ("BatchNormalization", "LayerNormalization", "Softmax", "LogSoftmax", "InstanceNormalization", "GroupNormalization"):
        return 2.0 * out
    if node.op.startswith(("Reduce", "Global", "Arg")) or node.op in ("TopK", "CumSum"):
        return float(elements(inputs[0]) if inputs else 0)
    if node.op in _MOVES or node.op in FREE:
        return 0.0
    return float(out)


def elements(shape: Shape) -> int:
    """The number of elements; 0 where the shape is not known."""
    return 0 if shape is None else math.prod(shape)
