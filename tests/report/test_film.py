"""The film of an optimization: the graphs between its steps, what is marked, and where things came from."""

from __future__ import annotations

import json
from functools import cache

import pytest

import cgorl
from cgorl.pipeline import Outcome
from cgorl.report.film import Film
from cgorl.report.graphs.colours import ADDED, MATCHED, REMOVED
from cgorl.report.ledger import ledger
from cgorl.search.trace import TraceError


@cache
def outcome() -> Outcome:
    return cgorl.optimize("repvgg_a0", zoo={"image": 32}, prove=False, expansions=12)


def test_the_film_runs_from_the_first_graph_to_the_last() -> None:
    film = Film.of(outcome())
    assert len(film.steps) >= 5
    assert film.graphs[0] is outcome().start
    assert film.graphs[-1].key == outcome().trace_json()["final_key"]
    assert film.costs_ms[0] == outcome().initial_cost_ms
    assert len(film.costs_ms) == len(film.graphs) == len(film.rows) + 1


def test_a_kept_trace_gives_the_same_film() -> None:
    data = json.loads(json.dumps(outcome().trace_json()))
    film = Film.read(data, json.loads(json.dumps(ledger(outcome()))), outcome().start, outcome().rules)
    assert [g.key for g in film.graphs] == [g.key for g in Film.of(outcome()).graphs]
    assert film.costs_ms == Film.of(outcome()).costs_ms
    assert film.rows[0]["measured"] == {"share": None, "why": "not measured"}
    with pytest.raises(TraceError, match="starts from another graph"):
        Film.read(data, None, film.graphs[1], outcome().rules)


def test_what_goes_and_what_comes_is_marked_and_all_else_stays() -> None:
    film = Film.of(outcome())
    for k in range(len(film.steps)):
        before, after = film.around(k)
        gone = {i for i, m in before.marks.items() if m == REMOVED}
        new = {i for i, m in after.marks.items() if m == ADDED}
        assert before.nodes - gone == after.nodes - new
        assert gone == {i for i, n in before.graph.nodes.items() if i not in after.graph.nodes and not n.constant}
        assert new == {i for i, n in after.graph.nodes.items() if i not in before.graph.nodes and not n.constant}
        assert all(i in after.graph.nodes for i, m in before.marks.items() if m == MATCHED)
        assert gone


def test_each_step_knows_where_in_the_first_graph_it_is() -> None:
    film = Film.of(outcome())
    for at in film.origins():
        assert at
        assert all(i in film.graphs[0].nodes for i in at)
