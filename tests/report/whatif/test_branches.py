"""Branches: they part where they say, go on as a search would, and never disturb each other."""

from __future__ import annotations

from functools import cache

import pytest

import cgorl
from cgorl.pipeline import Outcome
from cgorl.report.film import Film
from cgorl.report.whatif.branches import GAIN, MOST, POLICY, TRACE, BranchError, Branches
from cgorl.report.whatif.candidates import SHOWN, candidates
from cgorl.report.whatif.told import listed, reel
from cgorl.search.trace import replay, to_json


@cache
def outcome() -> Outcome:
    return cgorl.optimize("repvgg_a0", zoo={"image": 32}, prove=False, expansions=8)


def made(done: Outcome | None = None) -> Branches:
    done = done or outcome()
    assert done.cost is not None
    return Branches(Film.of(done), done.cost)


def branched(b: Branches, k: int, rank: int, by: str = GAIN, of: int = TRACE) -> int:
    row = candidates(b, of, k)["rows"][rank - 1]
    return b.off(of, k, row["rule"], row["nodes"], by)


def test_greed_goes_on_as_the_greedy_search_went() -> None:
    b = made()
    assert candidates(b, TRACE, 2)["rows"][0]["taken"]
    n = branched(b, 2, 1)
    b.go_on(n, 5, 60)
    assert [(s.match.rule.name, s.match.nodes) for s in b.all[n].film.steps] == [
        (s.match.rule.name, s.match.nodes) for s in outcome().trace
    ]
    assert b.costs_ms(n) == pytest.approx(b.costs_ms(TRACE))
    whole = cgorl.optimize("repvgg_a0", zoo={"image": 32}, prove=False)
    b.go_on(n, 1000, 60)
    assert b.all[n].ended == "no rewrite gains" and b.costs_ms(n)[-1] == pytest.approx(whole.cost_ms)
    assert b.go_on(n, 5, 60) == 0


def test_a_branch_is_a_film_that_replays() -> None:
    b = made()
    n = branched(b, 3, 4)
    b.go_on(n, 6, 60)
    film = b.all[n].film
    assert len(film.steps) == 10 and film.steps[:3] == b.all[TRACE].film.steps[:3]
    told = to_json(film.graphs[0], film.graphs[-1], film.steps, film.rules)
    assert replay(told, film.graphs[0], film.rules).key == film.graphs[-1].key
    assert outcome().cost is not None
    assert b.costs_ms(n)[-1] == pytest.approx(outcome().cost.cost_ms(film.graphs[-1]))
    assert [r["rule"] for r in film.rows] == [s.match.rule.name for s in film.steps]


def test_a_slice_does_one_step_at_least_and_slices_come_to_the_same() -> None:
    slow, quick = made(), made()
    n, m = branched(slow, 1, 3), branched(quick, 1, 3)
    assert [slow.go_on(n, 4, 0.0) for _ in range(4)] == [1, 1, 1, 1]
    assert quick.go_on(m, 4, 60) == 4
    assert slow.costs_ms(n) == quick.costs_ms(m)


def test_a_branch_of_a_branch_parts_from_whose_step_it_takes_the_place_of() -> None:
    b = made()
    first = branched(b, 2, 3)
    b.go_on(first, 4, 60)
    early, same, late = branched(b, 1, 2, of=first), branched(b, 2, 5, of=first), branched(b, 4, 2, of=first)
    assert [b.all[n].parent for n in (early, same, late)] == [TRACE, TRACE, first]
    assert [b.owner(late, k) for k in range(5)] == [TRACE, TRACE, first, first, late]
    assert branched(b, 4, 2, of=first) == late  # not made again
    rows = candidates(b, TRACE, 2)["rows"]
    assert {tuple(r["branches"]) for r in rows if r["branches"]} == {(TRACE,), (first, late), (same,)}
    b.drop(first)
    assert set(b.all) == {TRACE, early, same}
    with pytest.raises(BranchError, match="there is no branch"):
        b.view(late, 0)


def test_one_goes_on_from_the_end_and_from_a_trace_without_steps() -> None:
    b = made()
    end = len(outcome().trace)
    n = branched(b, end, 1)
    b.go_on(n, 2, 60)
    assert b.all[n].at == end and len(b.all[n].film.steps) == end + 3
    assert not any(r["taken"] for r in candidates(b, TRACE, end)["rows"][1:])
    empty = made(cgorl.optimize("squeezenet1_1", zoo={"image": 64}, prove=False, expansions=0))
    m = branched(empty, 0, 1)
    assert empty.costs_ms(TRACE)[0] > empty.costs_ms(m)[-1]


def test_candidates_are_those_of_the_graph_best_first() -> None:
    b = made()
    found = candidates(b, TRACE, 2)
    gains = [round(r["gain_ms"], 12) for r in found["rows"][:SHOWN]]
    assert gains == sorted(gains, reverse=True) and found["by"] == "gain" and found["count"] > SHOWN
    [taken] = [r for r in found["rows"] if r["taken"]]
    step = outcome().trace[2]
    assert (taken["rule"], tuple(taken["nodes"])) == (step.match.rule.name, step.match.nodes)
    assert taken["gain_ms"] == pytest.approx(step.before_ms - step.after_ms)
    far = candidates(b, TRACE, 2)["rows"][SHOWN - 1]
    n = b.off(TRACE, 2, far["rule"], far["nodes"], GAIN)
    assert candidates(b, n, 2)["rows"][SHOWN - 1]["taken"] and not candidates(b, n, 2)["rows"][0]["taken"]


def test_what_is_told_of_a_branch_is_its_own_part_alone() -> None:
    b = made()
    n = branched(b, 3, 2)
    b.go_on(n, 5, 60)
    told = reel(b.all[n].film, {}, 3)
    assert len(told["rows"]) == len(told["costs"]) == len(told["where"]) == 6
    [trace, branch] = listed(b)
    assert (trace["number"], trace["rewrites"], trace["cost_ms"]) == (0, 8, pytest.approx(outcome().cost_ms))
    assert (branch["parent"], branch["at"], branch["rewrites"], branch["by"]) == (0, 3, 9, "gain")
    assert branch["rule"] == b.all[n].film.steps[3].match.rule.name


def test_what_cannot_be_is_told_in_a_sentence() -> None:
    b = made()
    with pytest.raises(BranchError, match="does not apply at nodes"):
        b.off(TRACE, 0, "conv-batchnorm", [1], GAIN)
    with pytest.raises(BranchError, match="there is no step 31 in the trace: it has 8"):
        b.view(TRACE, 30)
    with pytest.raises(BranchError, match=r"goes on by 'gain' or not at all \(''\), not by 'policy'"):
        branched(b, 0, 1, POLICY)
    with pytest.raises(BranchError, match="the trace itself stays"):
        b.drop(TRACE)
    rows = iter(r for k in range(8) for r in [dict(r, k=k) for r in candidates(b, TRACE, k)["rows"]])
    for r in rows:
        if len(b.all) > MOST:
            break
        b.off(TRACE, r["k"], r["rule"], r["nodes"], "")
    with pytest.raises(BranchError, match="there are 24 branches: drop one first"):
        branched(b, 8, 1)
