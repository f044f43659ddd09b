"""Batch: several observations as one set of tensors, graphs side by side without padding; and sums and softmax over segments.

Shape suffixes as in cgorl.env.observation, over all graphs of the batch: N nodes, E edges, M matches, K places; B graphs; A = M + B
actions, those of matches first, then a stop for each graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from cgorl.env.observation import Observation


class Batch(NamedTuple):
    """Tensors; `graph_N`, `graph_M` and `graph_A` say of which graph a row is, `first_B` is a graph's first match, `count_B` how many."""

    op_N: Any
    x_NF: Any
    graph_N: Any
    edge_2E: Any
    port_E: Any
    rule_M: Any
    y_MY: Any
    graph_M: Any
    place_K: Any
    owner_K: Any
    role_K: Any
    g_BQ: Any
    left_B: Any
    first_B: Any
    count_B: Any
    graph_A: Any

    @property
    def size(self) -> int:
        """The number of graphs."""
        return int(self.g_BQ.shape[0])

    def flat(self, action_B: Any) -> Any:
        """The rows of actions (numbered within their graph) among all A."""
        stop_B = self.rule_M.shape[0] + torch.arange(self.size)
        return torch.where(action_B < self.count_B, self.first_B + action_B, stop_B)


def batch(seen: Sequence[Observation]) -> Batch:
    """The observations as one batch."""
    nodes = [len(o.ids_N) for o in seen]
    matches = [len(o.rule_M) for o in seen]
    first_N, first_M = np.cumsum([0, *nodes[:-1]]), np.cumsum([0, *matches[:-1]])
    graphs = np.arange(len(seen))

    def join(name: str) -> Any:
        return torch.from_numpy(np.concatenate([getattr(o, name) for o in seen]))

    def shifted(name: str, by: Any) -> Any:
        return torch.from_numpy(np.concatenate([getattr(o, name) + d for o, d in zip(seen, by, strict=True)]))

    graph_M = torch.from_numpy(np.repeat(graphs, matches))
    return Batch(
        *(join("op_N"), join("x_NF"), torch.from_numpy(np.repeat(graphs, nodes))),
        *(torch.stack([shifted("src_E", first_N), shifted("dst_E", first_N)]), join("port_E")),
        *(join("rule_M"), join("y_MY"), graph_M, shifted("place_K", first_N), shifted("owner_K", first_M), join("role_K")),
        *(torch.from_numpy(np.stack([o.g_Q for o in seen])), torch.tensor([o.left for o in seen])),
        *(torch.from_numpy(first_M), torch.tensor(matches), torch.cat([graph_M, torch.from_numpy(graphs)])),
    )


def segment_sum(x_RH: Any, segment_R: Any, size: int) -> Any:
    """Sums of rows [size, H] (or of numbers [size]) by segment."""
    return x_RH.new_zeros((size, *x_RH.shape[1:])).index_add(0, segment_R, x_RH)


def segment_mean(x_RH: Any, segment_R: Any, size: int) -> Any:
    """Means of rows by segment; 0 for an empty one."""
    count = torch.bincount(segment_R, minlength=size).clamp(min=1).to(x_RH.dtype)
    return segment_sum(x_RH, segment_R, size) / count.unsqueeze(-1)


def pooled(x_RH: Any, row_K: Any, owner_K: Any, size: int) -> Any:
    """Means [size, H] of the rows that each owner has; `owner_K` ascends. 0 for an owner without."""
    count = torch.bincount(owner_K, minlength=size)
    return functional.embedding_bag(row_K, x_RH, count.cumsum(0) - count, mode="mean")


def segment_log_softmax(x_R: Any, segment_R: Any, size: int) -> Any:
    """The logarithm of the softmax over each segment."""
    top = x_R.detach().new_full((size,), -torch.inf).scatter_reduce(0, segment_R, x_R.detach(), "amax")
    shifted_R = x_R - top[segment_R]
    return shifted_R - segment_sum(shifted_R.exp(), segment_R, size).log().index_select(0, segment_R)
