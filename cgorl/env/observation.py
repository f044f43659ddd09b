"""Observation: the current graph once, where each match sits and what it gains, and what the return depends on.

Shape suffixes: N nodes, F features of a node, E edges, M matches, Y features of a match, K places (a match at one of its nodes),
Q features of the whole. Nothing of it is the graph that a match would lead to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from cgorl.cost.model import Price
from cgorl.env.nodes import NodeTable, row_keys
from cgorl.ir.graph import Graph
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet

Y, Q = 9, 7
LEAST_PERCENT = 0.01
"""Where nothing gains more, what is lost is held against so many percent of the first cost."""
ROLES = 8
"""Places of a match that are told apart; the first is the root, later ones count as the last of these."""


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


def observe(
    graph: Graph, table: NodeTable, matches: Sequence[Match], prices: Mapping[Match, Price], rules: RuleSet, standing: Standing
) -> Observation:
    """What an agent sees of `graph` and those of its `matches` that are offered."""
    edge_E3 = table.edge_E3
    count = len(matches)
    initial = standing.initial_ms or 1.0
    # what does not depend on the graph is kept with the match: rule, counts of nodes and bytes
    facts = [m.memo.get("seen") or _facts(m, rules) for m in matches]
    gain_M = np.array([prices[m].gain for m in matches], np.float64) * (100 / initial)
    best = (standing.cost_ms - standing.best_ms) * (100 / initial)
    y_MY = np.empty((count, Y), np.float32)
    y_MY[:, 0] = np.sign(gain_M) * np.log1p(10 * np.abs(gain_M))
    y_MY[:, 1] = np.clip(gain_M, -5, 5)
    y_MY[:, 2], y_MY[:, 3], y_MY[:, 4] = gain_M > 1e-9, gain_M < -1e-9, gain_M > best + 1e-9
    facts_M5 = np.array(facts, np.float32).reshape(-1, 5)
    y_MY[:, 5:] = facts_M5[:, 1:]
    sizes_M = np.array([len(m.nodes) for m in matches], np.int64)
    place_K = table.rows(np.array(list(chain.from_iterable([m.nodes for m in matches])), np.int64))
    owner_K = np.repeat(np.arange(count), sizes_M)
    # each counts its nodes from 0 on
    role_K = np.minimum(np.arange(len(place_K)) - np.repeat(np.cumsum(sizes_M) - sizes_M, sizes_M), ROLES - 1)
    if (place_K < 0).any():  # a matched constant has no row
        owner_K, role_K, place_K = (a[place_K >= 0] for a in (owner_K, role_K, place_K))
    rule_M = facts_M5[:, 0].astype(np.int64)
    share_M = np.clip(gain_M / max(gain_M.max(initial=0.0), LEAST_PERCENT), -1, 1)
    rank_M = (np.sign(share_M) * np.sqrt(np.abs(share_M))).astype(np.float32)
    return Observation(
        *(table.ids_N, table.op_N, table.x_NF, table.key_N, table.rows(edge_E3[:, 0]), table.rows(edge_E3[:, 1]), edge_E3[:, 2]),
        *(rule_M, y_MY, rank_M, row_keys(rule_M, y_MY), place_K, owner_K, role_K),
        np.array(
            [
                *(10 * (standing.cost_ms / initial - 1), 10 * (standing.best_ms / initial - 1)),
                *(standing.left / max(1, standing.horizon), math.log1p(standing.left) / 5),
                *(math.log2(1 + len(table.ids_N)) / 10, math.log2(1 + count) / 10, float(standing.again)),
            ],
            np.float32,
        ),
        standing.left,
    )


def _facts(match: Match, rules: RuleSet) -> tuple[float, ...]:
    edit = match.edit
    new = sum(1 for n in edit.added if not n.constant)
    growth = math.copysign(math.log2(1 + abs(match.growth)), match.growth) / 30
    found = match.memo["seen"] = (rules.places[match.rule.name], len(edit.removed) / 8, new / 8, len(match.nodes) / 8, growth)
    return found
