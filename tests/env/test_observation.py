"""What an agent sees: what is kept from before an edit equals what a look at the whole graph gives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from cgorl import config
from cgorl.env.match_table import Y
from cgorl.env.node_rows import F, row_sums
from cgorl.env.nodes import NodeTable
from cgorl.env.observation import Q
from cgorl.env.priced import Priced, Recall
from cgorl.env.rewrite import RewriteEnv, Start
from cgorl.env.rule_features import S, rule_features
from tests.search.test_trace import cost
from tests.texts import small

RULES = config.rule_set(config.plain(config.load_config("optimize", ["model=none"]))["rules"])


def rows(table: NodeTable) -> tuple[Any, ...]:
    order = np.argsort(table.ids_N)
    edges = table.edge_E3[np.lexsort(table.edge_E3.T)]
    return table.ids_N[order], table.op_N[order], table.x_NF[order], edges


def shown(at: Priced) -> list[tuple[Any, ...]]:
    """The rows of the matches that can be performed, by match."""
    t, first = at.seen, 0
    assert (t.sum_M == row_sums(t.rule_M, t.y_MY)).all()
    found = []
    for k, (m, size) in enumerate(zip(at.found.listing.matches, t.size_M.tolist(), strict=True)):
        here = slice(first, first + size)
        assert t.ids_K[here].tolist() == list(m.nodes) and t.role_K[here].tolist() == list(range(size))
        first += size
        if m in at.prices:
            assert t.percent_M[k] == pytest.approx(at.prices[m].gain * t._scale)
            found.append((m.rule.name, m.nodes, t.rule_M[k], *t.y_MY[k, 5:8].tolist(), t.percent_M[k] > 1e-9))
    return sorted(found, key=lambda row: row[:2])


@pytest.mark.parametrize("name", ["repvgg_a0", "inception_v3", "bert"])
def test_after_any_rewrites_the_table_and_the_prices_are_those_of_a_look_at_the_whole(name: str) -> None:
    rng = random.Random(name)
    prices = cost()
    at = Priced(small(name), RULES, prices)
    scale = at.table.scale
    for k in range(12):
        if not at.prices:
            break
        at = at.after(rng.choice(list(at.prices)))
        if k % 3 == 0:
            whole = Priced(at.graph, RULES, prices)
            for a, b in zip(rows(at.table), rows(NodeTable(at.graph, prices, scale)), strict=True):
                assert np.array_equal(a, b)
            told = [{(m.rule.name, m.nodes): round(p.gain, 12) for m, p in x.prices.items()} for x in (at, whole)]
            assert told[0] == told[1]
            assert list(at.prices) == list(at.found.matches) == list(at.prices.matches)
            assert shown(at) == shown(whole)
            assert at.cost_ms == pytest.approx(prices.cost_ms(at.graph))


def test_an_observation_is_whole_and_in_range() -> None:
    env = RewriteEnv([Start.of(small("inception_v3"), RULES, cost())])
    rng = random.Random(0)
    for _ in range(6):
        o = env.observation
        n, m = len(o.ids_N), len(env.matches)
        assert o.x_NF.shape == (n, F) and o.y_MY.shape == (m, Y) and o.g_Q.shape == (Q,) and o.actions == m + 1
        assert all(a.dtype == np.int64 for a in (o.op_N, o.src_E, o.dst_E, o.port_E, o.rule_M, o.place_K, o.owner_K, o.role_K))
        assert np.isfinite(o.x_NF).all() and np.abs(o.x_NF).max() < 40 and np.isfinite(o.y_MY).all()
        for part in (o.src_E, o.dst_E, o.place_K):
            assert part.min() >= 0 and part.max() < n
        assert set(o.owner_K.tolist()) == set(range(m))
        assert [RULES.rules[k].name for k in o.rule_M] == [match.rule.name for match in env.matches]
        assert not any(env.at.graph.nodes[i].constant for i in o.ids_N.tolist())
        env.step(rng.randrange(m))


def test_edges_are_the_reads_of_running_nodes() -> None:
    at = Priced(small("repvgg_a0"), RULES, cost())
    found = {(a, b) for a, b, _ in at.table.edge_E3.tolist()}
    nodes = at.graph.nodes
    assert found == {(v.node, i) for i, n in nodes.items() if not n.constant for v in n.reads() if not nodes[v.node].constant}


def test_what_is_remembered_is_what_would_be_made() -> None:
    at, recall = Priced(small("repvgg_a0"), RULES, cost()), Recall(2)
    matches = list(at.prices)[:3]
    first = [recall.after(at, m) for m in matches]
    assert recall.after(at, matches[2]) is first[2] and recall.after(at, matches[0]) is not first[0]
    assert recall.after(at, matches[0]).graph.key == first[0].graph.key


def test_rules_are_told_apart_by_their_structure() -> None:
    found = rule_features(RULES)
    assert found.shape == (len(RULES), S) and np.isfinite(found).all()
    assert len({row.tobytes() for row in found}) > 0.8 * len(RULES)
