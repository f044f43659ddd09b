"""Shared: which nodes of a batch have the same vector whatever is learnt, so that each such vector is made once.

The graphs of a rollout are those of a few episodes one rewrite apart: all but a few of their nodes have seen this neighbourhood
before. A node's key at level l stands for its features and those of all nodes within l hops, with directions and operands;
nodes with equal keys have equal vectors after l layers (keys have 64 bits: a false likeness is not to be feared).

Shape suffixes: N nodes of all graphs, E edges, U distinct keys of a level, D edges that lead to one of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from cgorl.env.nodes import PORTS

_RNG = np.random.default_rng(20)
_DOWN, _UP, _IN, _OUT = _RNG.integers(1, 2**63, (4, PORTS), dtype=np.uint64)
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Nodes(NamedTuple):
    """Nodes and edges of several graphs side by side: numpy arrays, `parts` the features of each graph's nodes, `graph_N` ascending."""

    op_N: Any
    parts: list[Any]
    key_N: Any
    graph_N: Any
    src_E: Any
    dst_E: Any
    port_E: Any


class Level(NamedTuple):
    """Tensors: for each distinct key of a level `own_U`, its row one level below; and the edges that lead to it, along them and back.

    `down_2D` has the row below of who is heard and the row here of who hears, `down_first_2D` the rows of both at the bottom.
    """

    own_U: Any
    down_2D: Any
    down_port_D: Any
    down_first_2D: Any
    up_2D: Any
    up_port_D: Any
    up_first_2D: Any


class Shared(NamedTuple):
    """How to make the vectors of all nodes: distinct nodes at the bottom, what leads from level to level, and where each node is.

    `inside_UP` and `outside_UP` count the edges into and out of a node at the bottom by operand. `of_N` are rows of the
    last level (int64), `key_N` its keys (uint64, numpy).
    """

    op_U: Any
    x_UF: Any
    inside_UP: Any
    outside_UP: Any
    levels: list[Level]
    of_N: Any
    key_N: Any


def share(nodes: Nodes, layers: int) -> Shared:
    """The distinct neighbourhoods of up to `layers` hops; with 0, nodes by themselves, edges not looked at."""
    src_E, dst_E, port_E, count = nodes.src_E, nodes.dst_E, nodes.port_E, len(nodes.key_N)
    key_N = nodes.key_N
    if layers:
        key_N = key_N.copy()
        np.add.at(key_N, dst_E, _IN[port_E])
        np.add.at(key_N, src_E, _OUT[port_E])
        key_N = mixed(key_N)
    bottom_U, of_N = distinct(key_N)
    first_N = of_N
    sums = [
        np.bincount(at * PORTS + port_E, minlength=count * PORTS).reshape(-1, PORTS)[bottom_U].astype(np.float32) for at in (dst_E, src_E)
    ]
    levels: list[Level] = []
    for _ in range(layers):
        more_N = key_N * _ODD
        np.add.at(more_N, dst_E, mixed(key_N[src_E] + _DOWN[port_E]))
        np.add.at(more_N, src_E, mixed(key_N[dst_E] + _UP[port_E]))
        key_N, below_N = mixed(more_N), of_N
        rows_U, of_N = distinct(key_N)
        here_N = np.full(count, -1)
        here_N[rows_U] = np.arange(len(rows_U))
        led = []
        for a, b in ((src_E, dst_E), (dst_E, src_E)):
            wanted = np.flatnonzero(here_N[b] >= 0)
            a, b = a[wanted], b[wanted]
            led += [np.stack([below_N[a], here_N[b]]), port_E[wanted], np.stack([first_N[a], first_N[b]])]
        levels.append(Level(*map(torch.from_numpy, (below_N[rows_U], *led))))
    begins = np.cumsum([0, *map(len, nodes.parts)])
    ends = np.searchsorted(bottom_U, begins)
    x_UF = np.concatenate([x_NF[bottom_U[a:b] - k] for x_NF, a, b, k in zip(nodes.parts, ends, ends[1:], begins, strict=False)])
    op_U, x_UF, inside_UP, outside_UP = (torch.from_numpy(a) for a in (nodes.op_N[bottom_U], x_UF, *sums))
    return Shared(op_U, x_UF, inside_UP, outside_UP, levels, torch.from_numpy(of_N), key_N)


def distinct(key_N: Any) -> tuple[Any, Any]:
    """The rows [U] where each key stands first, ascending, and for each row [N] which of them has its key."""
    order_N = np.argsort(key_N)
    sorted_N = key_N[order_N]
    new_N = np.ones(len(key_N), bool)
    np.not_equal(sorted_N[1:], sorted_N[:-1], out=new_N[1:])
    rows_U = np.minimum.reduceat(order_N, np.flatnonzero(new_N)) if len(key_N) else order_N
    rank_U = np.argsort(rows_U)
    place_U = np.empty_like(rank_U)
    place_U[rank_U] = np.arange(len(rank_U))
    of_N = np.empty(len(key_N), np.int64)
    of_N[order_N] = place_U[np.cumsum(new_N) - 1]
    return rows_U[rank_U], of_N


def mixed(x: Any) -> Any:
    """Numbers of 64 bits, well mixed (the finish of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
