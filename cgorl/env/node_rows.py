"""NodeRows: what an agent can see of a node, each distinct sight once, by number; most nodes of most graphs look like one seen before.

Shape suffixes: R rows, F features of a node.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np

from cgorl.cost.model import CostModel, View
from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import Node, TensorType
from cgorl.ir.tensor import element_bits

OPS = (
    *("Input", "Conv", "ConvTranspose", "MatMul", "Gemm", "BatchNormalization", "LayerNormalization", "InstanceNormalization"),
    *("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", "Elu", "Gelu", "Erf", "Exp", "Log", "Sqrt"),
    *("Reciprocal", "Neg", "Abs", "Pow", "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Concat", "Split", "Slice", "Gather"),
    *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile", "Pad", "Identity", "Cast", "Shape", "Dropout"),
    *("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceSum", "ReduceMax", "Softmax", "LogSoftmax"),
    *("Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "Where", "Equal", "ArgMax", "TopK", "LSTM", "GRU"),
    *("Floor", "Ceil", "Sign", "Sin", "Cos", "Softplus", "PRelu", "ReduceMin", "ReduceProd", "Einsum"),
)
"""The operators that have a number of their own; 0 stands for any other."""
NUMBER = {op: k for k, op in enumerate(OPS, 1)}
_ATTRIBUTES = ("kernel_shape", "strides", "dilations")
F = 28
"""How many features a node has beside its operator."""
_WEIGHTS_F = np.random.default_rng(28).integers(1, 2**63, F + 1, dtype=np.uint64)
_SERIAL = count()


class NodeRows:
    """Rows by number: `op_R` operators by number, `x_RF` features (float32), `key_R` what stands for both (uint64).

    `scale` is 100 over the first cost, so that a node's cost is a percentage. Rows are added, and never change.
    """

    def __init__(self, cost: CostModel, scale: float) -> None:
        """Knows no row."""
        self.scale, self._cost = scale, cost
        self.op_R = np.zeros(256, np.int64)
        self.x_RF = np.zeros((256, F), np.float32)
        self.key_R = np.zeros(256, np.uint64)
        self._numbers: dict[tuple[float, ...], int] = {}
        self._memo = f"row {next(_SERIAL)}"

    def number(self, view: View, graph: Graph, i: int) -> int:
        """The number of the row of node `i`; `view` is of `graph`."""
        nodes, node, users = graph.nodes, graph.nodes[i], graph.users[i]
        # what a row rests on besides the node: its price, its readers, and which of the values that it reads are constant
        weights = tuple([v for v in node.inputs if v is not None and nodes[v.node].constant])
        about = self._cost.node_ms(view, i), len(users), any([u.node == OUTPUT for u in users]), weights
        known = node.memo.get(self._memo)
        if known is None or known[0] != about:
            kinds = [nodes[v.node].types[v.port] for v in weights]
            op = NUMBER.get(node.op, 0) if node.domain in ("", "cgorl.source") else 0
            known = node.memo[self._memo] = about, self._numbered(op, self._features(node, kinds, *about[:3]))
        number: int = known[1]
        return number

    def _features(self, node: Node, weights: list[TensorType | None], ms: float, users: int, output: bool) -> list[float]:
        alone = node.memo.get("look")
        if alone is None:
            alone = node.memo["look"] = _alone(node)
        first = next((w for w in weights if w is not None and w.rank), None)
        percent = ms * self.scale
        return [
            *alone,
            *(min(percent, 20.0), math.log1p(percent), float(ms == 0.0)),
            *(_log(users), float(output)),
            *(len(weights) / 4, sum([_log(_elements(w)) for w in weights]) / 20, *_dims(first)),
        ]

    def _numbered(self, op: int, x_F: list[float]) -> int:
        number = self._numbers.setdefault((op, *x_F), len(self._numbers))
        if number == len(self.op_R):
            self.op_R, self.x_RF, self.key_R = (np.concatenate([a, np.zeros_like(a)]) for a in (self.op_R, self.x_RF, self.key_R))
        if number == len(self._numbers) - 1:
            self.op_R[number], self.x_RF[number] = op, x_F
            self.key_R[number] = row_keys(self.op_R[number : number + 1], self.x_RF[number : number + 1])[0]
        return number


def _alone(node: Node) -> tuple[float, ...]:
    """The features that a node has whatever is around it."""
    kind = node.types[0] if node.types else None
    group, axis, pads = node.attrs.get("group", 1), node.attrs.get("axis", 0), node.attrs.get("pads", ())
    return (
        *(_log(_elements(kind)) / 10, (0 if kind is None or kind.rank is None else kind.rank) / 4, *_dims(kind)),
        *(len(node.types) / 4, len(node.inputs) / 4),
        *(_number(node.attrs.get(name)) for name in _ATTRIBUTES),
        *(_log(group if isinstance(group, int) else 1) / 4, (axis if isinstance(axis, int) else 0) / 4),
        float(isinstance(pads, tuple) and any(pads)),
        (0 if kind is None else element_bits(kind.dtype)) / 32,
        float("auto_pad" in node.attrs),
        float(bool(node.attrs.get("ceil_mode", 0)) or bool(node.attrs.get("count_include_pad", 0))),
    )


def row_keys(op_R: Any, x_RF: Any) -> Any:
    """A number of 64 bits for each row of an operator and features (float32), equal for equal rows."""
    return mixed(row_sums(op_R, x_RF))


def row_sums(op_R: Any, x_RF: Any) -> Any:
    """The same before it is `mixed`: the sum over all features, each its bits times a number of its own."""
    bits_RF = np.ascontiguousarray(x_RF + np.float32(0)).view(np.uint32).astype(np.uint64)  # + 0: -0 is 0
    return (bits_RF * _WEIGHTS_F[: x_RF.shape[1]]).sum(1, dtype=np.uint64) + op_R.astype(np.uint64) * _WEIGHTS_F[-1]


def mixed(x_R: Any) -> Any:
    """Each number with its bits stirred."""
    x_R = (x_R ^ (x_R >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return x_R ^ (x_R >> np.uint64(31))


def _log(n: float) -> float:
    return math.log2(1 + n)


def _elements(kind: TensorType | None) -> int:
    return 0 if kind is None or kind.shape is None else math.prod(d if isinstance(d, int) else 1 for d in kind.shape)


def _dims(kind: TensorType | None) -> list[float]:
    """The last four dims, as logarithms; 0 where there is none or it is not known."""
    shape = () if kind is None or kind.shape is None else kind.shape[-4:]
    known = [_log(d) / 5 if isinstance(d, int) else 0.0 for d in shape]
    return [0.0] * (4 - len(known)) + known


def _number(value: Any) -> float:
    return _log(max(value)) / 2 if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value) else 0.0
