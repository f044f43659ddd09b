"""NodeTable: what an agent sees of each running node and edge; after an edit only the rows round it are looked up anew.

Shape suffixes: N nodes, F features of a node, E edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from cgorl.cost.model import CostModel, Now
from cgorl.env.node_rows import OPS, NodeRows
from cgorl.ir.graph import OUTPUT, Graph

PORTS = 4
"""Operands that are told apart by their place; later ones count as the last of these."""
_KINDS = np.random.default_rng(1).integers(1, 2**63, len(OPS) + 1, dtype=np.uint64)


class NodeTable:
    """The running nodes of a graph (constants are features of who reads them), in rows; edges by node id. Immutable.

    `ids_N` node ids, `edge_E3` producer id, reader id, operand; what is seen of the nodes is held once for all that look alike
    (`NodeRows`).
    """

    __slots__ = ("_alike", "_place", "_row_N", "edge_E3", "ids_N")

    def __init__(self, graph: Graph, cost: CostModel, scale: float) -> None:
        """Looks at the whole graph; `scale` is 100 over the first cost."""
        self._alike = NodeRows(cost, scale)
        none = np.zeros(0, np.int64)
        self._fill(graph, none, none, np.zeros((0, 3), np.int64), graph.nodes)

    def after(self, graph: Graph, touched: Collection[int]) -> NodeTable:
        """The table of the edited graph; `touched` are its nodes that are new, read something else or are read by others."""
        made = object.__new__(NodeTable)
        made._alike = self._alike
        # the price of an activation rests on who else reads its producer: readers of what is touched are looked at again
        users = graph.users
        again = set(touched).union([u.node for i in touched for u in users[i]])
        again.discard(OUTPUT)
        keep_I = np.ones(graph.next_id, bool)
        keep_I[list(again)] = False
        keep_I[list(graph.gone)] = False
        keep_N, keep_E = keep_I[self.ids_N], keep_I[self.edge_E3[:, 1]]
        made._fill(graph, self.ids_N[keep_N], self._row_N[keep_N], self.edge_E3[keep_E], again)
        return made

    def _fill(self, graph: Graph, ids_N: Any, row_N: Any, edge_E3: Any, fresh: Iterable[int]) -> None:
        nodes, view, number = graph.nodes, Now(graph), self._alike.number
        new = sorted([i for i in fresh if not nodes[i].constant])
        edges = [
            (v.node, i, min(k, PORTS - 1))
            for i in new
            for k, v in enumerate((*nodes[i].inputs, *(v for _, v in nodes[i].captures)))
            if v is not None and not nodes[v.node].constant
        ]
        self.ids_N = np.concatenate([ids_N, np.array(new, np.int64)])
        self._row_N = np.concatenate([row_N, np.array([number(view, graph, i) for i in new], np.int64)])
        self.edge_E3 = np.concatenate([edge_E3, np.array(edges, np.int64).reshape(-1, 3)])
        self._place = np.full(graph.next_id, -1, np.int64)
        self._place[self.ids_N] = np.arange(len(self.ids_N))

    @property
    def scale(self) -> float:
        """100 over the first cost."""
        return self._alike.scale

    @property
    def op_N(self) -> Any:
        """Operators by number (int64)."""
        return self._alike.op_R.take(self._row_N)

    @property
    def x_NF(self) -> Any:
        """Features (float32)."""
        return self._alike.x_RF.take(self._row_N, 0)

    @property
    def key_N(self) -> Any:
        """What stands for operators and features (uint64)."""
        return self._alike.key_R.take(self._row_N)

    @property
    def kinds(self) -> int:
        """A number that stands for how many nodes of each operator there are."""
        return int(_KINDS.take(self.op_N).sum())

    def rows(self, ids: Any) -> Any:
        """The rows of nodes by id; -1 for those that have none."""
        return self._place[ids]
