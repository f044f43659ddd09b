"""Encoder: a vector for each node of a batch of graphs, by graph layers of PyTorch Geometric; `none` looks at each node alone.

Shape suffixes: N nodes, E edges, H hidden.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINEConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from cgorl.agent.batch import Batch
from cgorl.env.nodes import OPS, PORTS, F

KINDS = ("gcn", "gat", "gin", "none")


class EncoderError(ValueError):
    """An encoder that cannot be; the message names the option."""


class Encoder(nn.Module):
    """Node vectors [N, H] of a batch.

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
        self.alone = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        if kind != "none":
            self.down = nn.ModuleList(_layer(kind, hidden) for _ in range(layers))
            self.up = nn.ModuleList(_layer(kind, hidden) for _ in range(layers))
            self.port = nn.Embedding(PORTS, 1 if kind == "gcn" else hidden)
            if kind == "gcn":
                nn.init.zeros_(self.port.weight)

    def forward(self, b: Batch) -> Any:
        """The node vectors."""
        h_NH = self.op(b.op_N) + self.features(b.x_NF)
        if self.kind != "none":
            back_2E = b.edge_2E.flip(0)
            down_E = up_E = self.port(b.port_E)
            if self.kind == "gcn":  # normalised once for all layers
                weight_E, count = down_E.squeeze(-1).exp(), h_NH.shape[0]
                down_E = gcn_norm(b.edge_2E, weight_E, count, add_self_loops=False)[1]
                up_E = gcn_norm(back_2E, weight_E, count, add_self_loops=False)[1]
        for k in range(self.layers):
            z_NH = self.norms[k](h_NH)
            passed_NH = self.alone[k](z_NH)
            if self.kind != "none":
                passed_NH = passed_NH + self.down[k](z_NH, b.edge_2E, down_E) + self.up[k](z_NH, back_2E, up_E)
            h_NH = h_NH + torch.relu(passed_NH)
        return h_NH


def _layer(kind: str, hidden: int) -> Any:
    if kind == "gcn":
        return GCNConv(hidden, hidden, normalize=False, add_self_loops=False)
    if kind == "gat":
        return GATConv(hidden, hidden // 4 or 1, heads=4 if hidden >= 4 else 1, edge_dim=hidden, add_self_loops=False)
    return GINEConv(nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden)))
