"""Observation: the current graph once, where each match sits and what it gains, and what the return depends on.

Shape suffixes: N nodes, F features of a node, E edges, M matches, Y features of a match, K places (a match at one of its nodes),
Q features of the whole. Nothing of it is the graph that a match would lead to.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from cgorl.env.match_table import BETTER, MatchTable, Y
from cgorl.env.node_rows import mixed, row_sums
from cgorl.env.nodes import NodeTable
from cgorl.rules.rule import Match

Q = 7
LEAST_PERCENT = 0.01
"""Where nothing gains more, what is lost is held against so many percent of the first cost."""
ROLES = 8
"""Places of a match that are told apart; the first is the root, later ones count as the last of these."""
_BETTER_SUM = row_sums(np.zeros(1, np.int64), (np.arange(Y) == BETTER).astype(np.float32)[None])[0]


class Standing(NamedTuple):
    """How an episode stands: costs in ms of the first graph, the best and the current one, the steps left of how many.

    `again`: the episode has been at the current graph before.
    """

    initial_ms: float
    best_ms: float
    cost_ms: float
    left: int
    horizon: int
    again: bool = False


class Observation(NamedTuple):
    """Numpy arrays, float32 and int64; `src_E` and `dst_E` are rows, `rule_M` numbers in the rule set, `place_K` rows, `owner_K` matches.

    `key_N` and `key_M` (uint64) stand for a node's operator and features, and for a match's rule and features. `rank_M` is what a
    match gains against the largest gain there is, from -1 to 1, and its root, so that small gains are told from none: whatever the
    size of the graph, and so what is learnt on small ones holds on large ones.

    Action `m < M` performs match m, action `M` stops.
    """

    ids_N: Any
    op_N: Any
    x_NF: Any
    key_N: Any
    src_E: Any
    dst_E: Any
    port_E: Any
    rule_M: Any
    y_MY: Any
    rank_M: Any
    key_M: Any
    place_K: Any
    owner_K: Any
    role_K: Any
    g_Q: Any
    left: int

    @property
    def actions(self) -> int:
        """How many actions there are: the matches and to stop."""
        return len(self.rule_M) + 1

    def rows(self, ids: Any) -> Any:
        """The rows of those nodes that have one, by id."""
        return np.flatnonzero(np.isin(self.ids_N, np.fromiter(ids, np.int64)))


def observe(nodes: NodeTable, matches: MatchTable, hidden: Collection[Match], standing: Standing) -> Observation:
    """What an agent sees of a graph and those of its matches that have a price, but for the `hidden` ones."""
    edge_E3 = nodes.edge_E3
    initial = standing.initial_ms or 1.0
    best = (standing.cost_ms - standing.best_ms) * (100 / initial)
    percent_M = matches.percent_M
    better_M = percent_M > best + 1e-9
    y_MY = matches.y_MY.copy()
    y_MY[:, BETTER] = better_M
    key_M = mixed(matches.sum_M + better_M * _BETTER_SUM)
    rule_M, size_M, place_K, role_K = matches.rule_M, matches.size_M, nodes.rows(matches.ids_K), matches.role_K
    listing = matches.prices.found.listing
    if hidden or len(matches.prices) < len(listing.matches):
        offered_M = np.array([m in matches.prices and m not in hidden for m in listing.matches], bool)
        offered_K = np.repeat(offered_M, size_M)
        rule_M, percent_M, y_MY, key_M, size_M = (column[offered_M] for column in (rule_M, percent_M, y_MY, key_M, size_M))
        place_K, role_K = place_K[offered_K], role_K[offered_K]
    count = len(rule_M)
    owner_K, role_K = np.repeat(np.arange(count), size_M), np.minimum(role_K, ROLES - 1)
    if len(place_K) and place_K.min() < 0:  # a matched constant has no row
        owner_K, role_K, place_K = (a[place_K >= 0] for a in (owner_K, role_K, place_K))
    share_M = np.clip(percent_M / max(percent_M.max(initial=0.0), LEAST_PERCENT), -1, 1)
    rank_M = (np.sign(share_M) * np.sqrt(np.abs(share_M))).astype(np.float32)
    return Observation(
        *(nodes.ids_N, nodes.op_N, nodes.x_NF, nodes.key_N, nodes.rows(edge_E3[:, 0]), nodes.rows(edge_E3[:, 1]), edge_E3[:, 2]),
        *(rule_M, y_MY, rank_M, key_M, place_K, owner_K, role_K),
        np.array(
            [
                *(10 * (standing.cost_ms / initial - 1), 10 * (standing.best_ms / initial - 1)),
                *(standing.left / max(1, standing.horizon), math.log1p(standing.left) / 5),
                *(math.log2(1 + len(nodes.ids_N)) / 10, math.log2(1 + count) / 10, float(standing.again)),
            ],
            np.float32,
        ),
        standing.left,
    )
