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


class NodeTable:
    """The running nodes of a graph (constants are features of who reads them), in rows; edges by node id. Immutable.

    `ids_N` node ids, `op_N` operators by number, `x_NF` features, `edge_E3` producer id, reader id, operand. `scale` is 100 over
    the first cost, so that a node's cost is a percentage.
    """

    __slots__ = ("_cost", "_row", "edge_E3", "ids_N", "op_N", "scale", "x_NF")

    def __init__(self, graph: Graph, cost: CostModel, scale: float) -> None:
        """Looks at the whole graph."""
        self._cost, self.scale = cost, scale
        none = np.zeros(0, np.int64)
        self._fill(graph, none, none, np.zeros((0, F), np.float32), np.zeros((0, 3), np.int64), graph.nodes)

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
        made._fill(graph, self.ids_N[keep_N], self.op_N[keep_N], self.x_NF[keep_N], self.edge_E3[keep_E], again)
        return made

    def _fill(self, graph: Graph, ids_N: Any, op_N: Any, x_NF: Any, edge_E3: Any, fresh: Iterable[int]) -> None:
        nodes = graph.nodes
        new = sorted(i for i in fresh if not nodes[i].constant)
        edges = [
            (v.node, i, min(k, PORTS - 1))
            for i in new
            for k, v in enumerate((*nodes[i].inputs, *(v for _, v in nodes[i].captures)))
            if v is not None and not nodes[v.node].constant
        ]
        rows = np.array([self._features(graph, i, nodes[i]) for i in new], np.float32).reshape(-1, F)
        numbers = [NUMBER.get(nodes[i].op, 0) if nodes[i].domain in ("", "cgorl.source") else 0 for i in new]
        self.ids_N = np.concatenate([ids_N, np.array(new, np.int64)])
        self.op_N = np.concatenate([op_N, np.array(numbers, np.int64)])
        self.x_NF = np.concatenate([x_NF, rows])
        self.edge_E3 = np.concatenate([edge_E3, np.array(edges, np.int64).reshape(-1, 3)])
        self._row = np.full(graph.next_id, -1, np.int64)
        self._row[self.ids_N] = np.arange(len(self.ids_N))

    def rows(self, ids: Any) -> Any:
        """The rows of nodes by id; -1 for those that have none."""
        return self._row[ids]

    def _features(self, graph: Graph, i: int, node: Node) -> list[float]:
        kind = node.types[0] if node.types else None
        weights = [graph.nodes[v.node].types[v.port] for v in node.inputs if v is not None and graph.nodes[v.node].constant]
        first = next((w for w in weights if w is not None and w.rank), None)
        sizes = [_log(_elements(w)) for w in weights]
        users = graph.users[i]
        ms = self._cost.node_ms(Now(graph), i)
        percent = ms * self.scale
        attributes = [_number(node.attrs.get(name)) for name in _ATTRIBUTES]
        group, axis = node.attrs.get("group", 1), node.attrs.get("axis", 0)
        pads = node.attrs.get("pads", ())
        return [
            *(_log(_elements(kind)) / 10, (0 if kind is None or kind.rank is None else kind.rank) / 4, *_dims(kind)),
            *(min(percent, 20.0), math.log1p(percent), float(ms == 0.0)),
            *(_log(len(users)), float(any(u.node == OUTPUT for u in users)), len(node.types) / 4, len(node.inputs) / 4),
            *(len(weights) / 4, sum(sizes) / 20, *_dims(first)),
            *attributes,
            *(_log(group if isinstance(group, int) else 1) / 4, (axis if isinstance(axis, int) else 0) / 4),
            float(isinstance(pads, tuple) and any(pads)),
            (0 if kind is None else element_bits(kind.dtype)) / 32,
            float("auto_pad" in node.attrs),
            float(bool(node.attrs.get("ceil_mode", 0)) or bool(node.attrs.get("count_include_pad", 0))),
        ]


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
