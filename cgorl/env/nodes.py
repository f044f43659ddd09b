"""NodeTable: what an agent sees of each running node and edge; after an edit only the rows round it are made anew.

Shape suffixes: N nodes, F features of a node, E edges.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from cgorl.cost.model import CostModel, Now
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
PORTS = 4
"""Operands that are told apart by their place; later ones count as the last of these."""
_ATTRIBUTES = ("kernel_shape", "strides", "dilations")
F = 28
"""How many features a node has beside its operator."""
_WEIGHTS_F = np.random.default_rng(28).integers(1, 2**63, F + 1, dtype=np.uint64)
_KINDS = np.random.default_rng(1).integers(1, 2**63, len(OPS) + 1, dtype=np.uint64)


class NodeTable:
    """The running nodes of a graph (constants are features of who reads them), in rows; edges by node id. Immutable.

    `ids_N` node ids, `op_N` operators by number, `x_NF` features, `key_N` what stands for both (uint64), `edge_E3` producer id,
    reader id, operand. `scale` is 100 over the first cost, so that a node's cost is a percentage.
    """

    __slots__ = ("_cost", "_row", "edge_E3", "ids_N", "key_N", "op_N", "scale", "x_NF")

    def __init__(self, graph: Graph, cost: CostModel, scale: float) -> None:
        """Looks at the whole graph."""
        self._cost, self.scale = cost, scale
        none = np.zeros(0, np.int64)
        self._fill(graph, none, none, np.zeros((0, F), np.float32), np.zeros(0, np.uint64), np.zeros((0, 3), np.int64), graph.nodes)

    def after(self, graph: Graph, touched: Collection[int]) -> NodeTable:
        """The table of the edited graph; `touched` are its nodes that are new, read something else or are read by others."""
        made = object.__new__(NodeTable)
        made._cost, made.scale = self._cost, self.scale
        # the price of an activation rests on who else reads its producer: readers of what is touched are looked at again
        again = set(touched).union(u.node for i in touched for u in graph.users[i] if u.node != OUTPUT)
        stale_I = np.ones(graph.next_id, bool)
        nodes = graph.nodes
        stale_I[[i for i in self.ids_N.tolist() if i in nodes and i not in again]] = False
        keep_N, keep_E = ~stale_I[self.ids_N], ~stale_I[self.edge_E3[:, 1]]
        kept = self.ids_N[keep_N], self.op_N[keep_N], self.x_NF[keep_N], self.key_N[keep_N], self.edge_E3[keep_E]
        made._fill(graph, *kept, again)
        return made

    def _fill(self, graph: Graph, ids_N: Any, op_N: Any, x_NF: Any, key_N: Any, edge_E3: Any, fresh: Iterable[int]) -> None:
        nodes = graph.nodes
        new = sorted(i for i in fresh if not nodes[i].constant)
        edges = [
            (v.node, i, min(k, PORTS - 1))
            for i in new
            for k, v in enumerate((*nodes[i].inputs, *(v for _, v in nodes[i].captures)))
            if v is not None and not nodes[v.node].constant
        ]
        rows = np.array([self._features(graph, i, nodes[i]) for i in new], np.float32).reshape(-1, F)
        numbers = np.array([NUMBER.get(nodes[i].op, 0) if nodes[i].domain in ("", "cgorl.source") else 0 for i in new], np.int64)
        self.ids_N = np.concatenate([ids_N, np.array(new, np.int64)])
        self.op_N = np.concatenate([op_N, numbers])
        self.x_NF = np.concatenate([x_NF, rows])
        self.key_N = np.concatenate([key_N, row_keys(numbers, rows)])
        self.edge_E3 = np.concatenate([edge_E3, np.array(edges, np.int64).reshape(-1, 3)])
        self._row = np.full(graph.next_id, -1, np.int64)
        self._row[self.ids_N] = np.arange(len(self.ids_N))

    @property
    def kinds(self) -> int:
        """A number that stands for how many nodes of each operator there are."""
        return int(_KINDS[self.op_N].sum())

    def rows(self, ids: Any) -> Any:
        """The rows of nodes by id; -1 for those that have none."""
        return self._row[ids]

    def _features(self, graph: Graph, i: int, node: Node) -> list[float]:
        alone = node.memo.get("look")
        if alone is None:
            alone = node.memo["look"] = _alone(node)
        nodes = graph.nodes
        weights = [n.types[v.port] for v in node.inputs if v is not None and (n := nodes[v.node]).constant]
        first = next((w for w in weights if w is not None and w.rank), None)
        users = graph.users[i]
        ms = self._cost.node_ms(Now(graph), i)
        percent = ms * self.scale
        return [
            *alone,
            *(min(percent, 20.0), math.log1p(percent), float(ms == 0.0)),
            *(_log(len(users)), float(any(u.node == OUTPUT for u in users))),
            *(len(weights) / 4, sum([_log(_elements(w)) for w in weights]) / 20, *_dims(first)),
        ]


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
    bits_RF = np.ascontiguousarray(x_RF + np.float32(0)).view(np.uint32).astype(np.uint64)  # + 0: -0 is 0
    x_R = (bits_RF * _WEIGHTS_F[: x_RF.shape[1]]).sum(1, dtype=np.uint64) + op_R.astype(np.uint64) * _WEIGHTS_F[-1]
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
