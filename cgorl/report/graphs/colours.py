"""Colours of boxes: one for each family of operators, for light and for dark paper."""

from __future__ import annotations

from typing import NamedTuple

from cgorl.report.graphs.scene import BLOCK, CONSTANT, INPUT, OUTPUT_BOX


class Family(NamedTuple):
    """Operators that people think of as one kind, and the fill of their boxes on light and on dark paper."""

    name: str
    light: str
    dark: str


_FAMILIES: dict[Family, str] = {
    Family("convolution", "#bcd7f2", "#24507c"): "Conv ConvTranspose ConvInteger QLinearConv DeformConv",
    Family("matrix product", "#d3c9f0", "#4b3b86"): "MatMul Gemm MatMulInteger QLinearMatMul Einsum LSTM GRU RNN Attention",
    Family("normalization", "#f3cfe0", "#78345a"): (
        "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization RMSNormalization LRN Softmax LogSoftmax"
    ),
    Family("activation", "#fbdcb4", "#7d4f14"): (
        "Relu LeakyRelu PRelu Sigmoid Tanh Elu Selu Celu Gelu HardSigmoid HardSwish Swish Mish Softplus Softsign ThresholdedRelu Clip Erf"
    ),
    Family("arithmetic", "#cfe6c2", "#37602a"): "Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Reciprocal Sum Mean Max Min Where",
    Family("pooling", "#bfe6e2", "#1c5f5a"): (
        "MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL2"
    ),
    Family("joining and cutting", "#ecd9c0", "#674a2a"): "Concat Split Slice Gather GatherND ScatterND Pad Tile Expand Resize",
    Family("shape", "#dcdfe4", "#454b55"): "Reshape Transpose Flatten Squeeze Unsqueeze Shape Identity Cast Dropout",
    Family("input or output", "#ffffff", "#2b2b2b"): f"{INPUT} {OUTPUT_BOX}",
    Family("constant", "#f4f4f0", "#3a3a36"): CONSTANT,
    Family("folded block", "#f6e9a6", "#665a17"): BLOCK,
}
OTHER = Family("other", "#e6e6e6", "#505050")
FAMILIES = (*_FAMILIES, OTHER)
_OF = {op: family for family, ops in _FAMILIES.items() for op in ops.split()}


def family(op: str) -> Family:
    """The family of an operator as boxes name it."""
    return _OF.get(op, OTHER)


_BANDS = (
    (0.005, Family("up to 0.5 % of all", "#f7f5f1", "#343434")),
    (0.02, Family("up to 2 %", "#fbdcc8", "#5a3329")),
    (0.05, Family("up to 5 %", "#f5b795", "#7d3a2a")),
    (0.1, Family("up to 10 %", "#ec8a62", "#a5412a")),
)
_DEAR = Family("more than 10 % of all", "#de4628", "#e04828")


def band(share: float) -> Family:
    """How dear a box is, by its share of the whole cost."""
    return next((family for most, family in _BANDS if share <= most), _DEAR)


STAYS, REMOVED, ADDED, MATCHED = range(4)
"""Marks of boxes in a picture of a rewrite: untouched, gone by it, new by it, and read by the rule but kept."""

MARKS = {
    STAYS: Family("untouched", "#eeeeee", "#3b3b3b"),
    REMOVED: Family("removed", "#f4b6ae", "#8c3129"),
    ADDED: Family("added", "#b4e0b8", "#236b2d"),
    MATCHED: Family("matched and kept", "#f6e1a1", "#6f5a12"),
}
