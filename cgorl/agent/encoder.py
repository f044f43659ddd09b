"""Encoder: a vector for each node of a batch of graphs, by graph layers of PyTorch Geometric; `none` looks at each node alone.

Shape suffixes: N nodes, U distinct neighbourhoods, D edges of a layer, P operands, H hidden.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch_geometric.nn import GATConv, GINEConv, SimpleConv

from cgorl.agent.shared import Nodes, share
from cgorl.env.node_rows import OPS, F
from cgorl.env.nodes import PORTS

KINDS = ("gcn", "gat", "gin", "none")


class EncoderError(ValueError):
    """An encoder that cannot be; the message names the option."""


class Encoded(NamedTuple):
    """Vectors [U, H] of distinct neighbourhoods, which of them each node has, and its key (numpy, uint64)."""

    h_UH: Any
    of_N: Any
    key_N: Any


class Encoder(nn.Module):
    """Vectors of the nodes of several graphs, one for each distinct neighbourhood (see cgorl.agent.shared).

    Each layer passes messages from producers to readers and, apart from that, back; which operand an edge is enters as a
    weight (gcn, learnt) or as a feature of the edge (gat, gin). Layers add to what was there.
    """

    def __init__(self, kind: str = "gcn", hidden: int = 64, layers: int = 3) -> None:
        """Raises EncoderError."""
        super().__init__()
        if kind not in KINDS:
            raise EncoderError(f"encoder.kind must be one of {', '.join(KINDS)}, not {kind!r}")
        for name, value in (("hidden", hidden), ("layers", layers)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise EncoderError(f"encoder.{name} must be a whole number of at least 1, not {value!r}")
        self.kind, self.hidden, self.layers = kind, hidden, layers
        self.op = nn.Embedding(len(OPS) + 1, hidden)
        self.features = nn.Linear(F, hidden)
        # of a gcn all three linear maps of a layer are one product: the node itself, what comes down, what comes up
        self.alone = nn.ModuleList(nn.Linear(hidden, 3 * hidden if kind == "gcn" else hidden) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        if kind != "none":
            self.down = nn.ModuleList(_layer(kind, hidden) for _ in range(layers))
            self.up = nn.ModuleList(_layer(kind, hidden) for _ in range(layers))
            self.port = nn.Embedding(PORTS, 1 if kind == "gcn" else hidden)
            if kind == "gcn":
                nn.init.zeros_(self.port.weight)

    def forward(self, nodes: Nodes) -> Encoded:
        """The vectors."""
        s = share(nodes, 0 if self.kind == "none" else self.layers)
        h_UH = self.op(s.op_U) + self.features(s.x_UF)
        if self.kind == "none":
            for norm, alone in zip(self.norms, self.alone, strict=True):
                h_UH = h_UH + torch.relu(alone(norm(h_UH)))
            return Encoded(h_UH, s.of_N, s.key_N)
        port_P = inside_U = outside_U = s.x_UF  # of a gcn alone
        if self.kind == "gcn":  # an edge counts by how many its producer has and how many its reader, whichever way it is gone
            port_P = self.port.weight.squeeze(-1).exp()
            inside_U, outside_U = ((count_UP @ port_P).clamp(min=1e-6).rsqrt() for count_UP in (s.inside_UP, s.outside_UP))
        for k, level in enumerate(s.levels):
            z_UH = self.norms[k](h_UH)
            passed_UH, *out = self.alone[k](z_UH).split(self.hidden, 1)
            passed_UH = passed_UH.index_select(0, level.own_U)
            size = (z_UH.shape[0], passed_UH.shape[0])
            if self.kind == "gcn":
                down_D = inside_U[level.down_first_2D[1]] * port_P[level.down_port_D] * outside_U[level.down_first_2D[0]]
                up_D = inside_U[level.up_first_2D[0]] * port_P[level.up_port_D] * outside_U[level.up_first_2D[1]]
                passed_UH = passed_UH + self.down[k]((out[0], passed_UH), level.down_2D, down_D, size)
                passed_UH = passed_UH + self.up[k]((out[1], passed_UH), level.up_2D, up_D, size)
            else:
                both = (z_UH, z_UH.index_select(0, level.own_U))
                passed_UH = passed_UH + self.down[k](both, level.down_2D, self.port(level.down_port_D), size)
                passed_UH = passed_UH + self.up[k](both, level.up_2D, self.port(level.up_port_D), size)
            h_UH = h_UH.index_select(0, level.own_U) + torch.relu(passed_UH)
        return Encoded(h_UH, s.of_N, s.key_N)


def _layer(kind: str, hidden: int) -> Any:
    if kind == "gcn":
        return SimpleConv(aggr="sum")
    if kind == "gat":
        return GATConv(hidden, hidden // 4 or 1, heads=4 if hidden >= 4 else 1, edge_dim=hidden, add_self_loops=False)
    return GINEConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
