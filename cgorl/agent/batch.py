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

from cgorl.agent.shared import Nodes, distinct, mixed
from cgorl.env.observation import Observation


class Batch(NamedTuple):
    """Nodes as `cgorl.agent.shared` takes them, the rest tensors.

    `graph_M` and `graph_A` say of which graph a row is, `first_B` is a graph's first match, `count_B` how many it has, `nodes_B`
    how many nodes; `key_M` (numpy, uint64) stands for a match's rule and features.
    """

    nodes: Nodes
    nodes_B: Any
    rule_M: Any
    y_MY: Any
    rank_M: Any
    key_M: Any
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


def _join(seen: Sequence[Observation], name: str, by: Any = None) -> Any:
    parts = [getattr(o, name) for o in seen]
    return np.concatenate(parts if by is None else [p + d for p, d in zip(parts, by, strict=True)])


def nodes(seen: Sequence[Observation]) -> Nodes:
    """The nodes and edges of observations, side by side."""
    counts = [len(o.ids_N) for o in seen]
    first = np.cumsum([0, *counts[:-1]])
    return Nodes(
        *(_join(seen, "op_N"), [o.x_NF for o in seen], _join(seen, "key_N"), np.repeat(np.arange(len(seen)), counts)),
        *(_join(seen, "src_E", first), _join(seen, "dst_E", first), _join(seen, "port_E")),
    )


def batch(seen: Sequence[Observation]) -> Batch:
    """The observations as one batch."""
    matches = [len(o.rule_M) for o in seen]
    counts = [len(o.ids_N) for o in seen]
    first_N, first_M = np.cumsum([0, *counts[:-1]]), np.cumsum([0, *matches[:-1]])
    graph_M = torch.from_numpy(np.repeat(np.arange(len(seen)), matches))
    return Batch(
        *(nodes(seen), torch.tensor(counts), torch.from_numpy(_join(seen, "rule_M")), torch.from_numpy(_join(seen, "y_MY"))),
        *(torch.from_numpy(_join(seen, "rank_M")), _join(seen, "key_M"), graph_M, torch.from_numpy(_join(seen, "place_K", first_N))),
        *(torch.from_numpy(_join(seen, "owner_K", first_M)), torch.from_numpy(_join(seen, "role_K"))),
        *(torch.from_numpy(np.stack([o.g_Q for o in seen])), torch.tensor([o.left for o in seen])),
        *(torch.from_numpy(first_M), torch.tensor(matches), torch.cat([graph_M, torch.arange(len(seen))])),
    )


def distinct_matches(b: Batch, key_N: Any) -> tuple[Any, Any]:
    """Matches [U] that stand for all that are alike, and for each match [M] which of them (numpy); `key_N` are the nodes' keys."""
    at_K = mixed(key_N[b.place_K.numpy()] + mixed(b.role_K.numpy().astype(np.uint64)))
    key_M = b.key_M.copy()
    np.add.at(key_M, b.owner_K.numpy(), at_K)
    return distinct(mixed(key_M))


def places(b: Batch, rows_U: Any) -> tuple[Any, Any, Any]:
    """The places of some matches (ascending): rows of nodes, which of the matches, roles (numpy)."""
    here_M = np.full(b.rule_M.shape[0], -1)
    here_M[rows_U] = np.arange(len(rows_U))
    owner_K = here_M[b.owner_K.numpy()]
    wanted = owner_K >= 0
    return b.place_K.numpy()[wanted], owner_K[wanted], b.role_K.numpy()[wanted]


def means(x_UH: Any, row_R: Any, count_B: Any) -> Any:
    """Means [B, H] of rows, the first `count_B[0]` of `row_R` for the first, and so on. 0 where there are none."""
    return functional.embedding_bag(row_R, x_UH, count_B.cumsum(0) - count_B, mode="mean")


def segment_sum(x_RH: Any, segment_R: Any, size: int) -> Any:
    """Sums of rows [size, H] (or of numbers [size]) by segment."""
    return x_RH.new_zeros((size, *x_RH.shape[1:])).index_add(0, segment_R, x_RH)


def segment_mean(x_RH: Any, segment_R: Any, size: int) -> Any:
    """Means of rows by segment; 0 for an empty one."""
    count = torch.bincount(segment_R, minlength=size).clamp(min=1).to(x_RH.dtype)
    return segment_sum(x_RH, segment_R, size) / count.unsqueeze(-1)


def pooled(x_RH: Any, row_K: Any, owner_K: Any, size: int) -> Any:
    """Means [size, H] of the rows that each owner has; `owner_K` ascends. 0 for an owner without."""
    return means(x_RH, row_K, torch.bincount(owner_K, minlength=size))


def segment_log_softmax(x_R: Any, segment_R: Any, size: int) -> Any:
    """The logarithm of the softmax over each segment."""
    top = x_R.detach().new_full((size,), -torch.inf).scatter_reduce(0, segment_R, x_R.detach(), "amax")
    shifted_R = x_R - top[segment_R]
    return shifted_R - segment_sum(shifted_R.exp(), segment_R, size).log().index_select(0, segment_R)
