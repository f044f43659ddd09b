"""The next best graphs of a search: real ones, other than the best and than what led to it."""

from __future__ import annotations

import pytest

from cgorl.search import course, trace
from cgorl.search.backtracking import Backtracking
from cgorl.search.greedy import Greedy
from cgorl.search.runners_up import MOST, NEAR, runners_up
from cgorl.search.searcher import Budget
from cgorl.search.state import State
from cgorl.search.way import Way
from tests.search.test_searchers import METHODS, RULES, cost
from tests.texts import small


def test_the_cheapest_that_do_not_lead_to_the_best() -> None:
    start = Way(10.0, 5)
    half = Way(8.0, 5, start)
    best, twin, dear = Way(6.0, 4, half), Way(6.0, 4, start), Way(7.0, 4, start)
    third, same, near = Way(6.2, 4, start), Way(6.2, 4, half), Way(6.4, 4, start)
    assert runners_up(best, [dear, start, near, same, twin, half, third, best]) == (same, near)  # the first of two that cost the same
    assert runners_up(best, [start, half, best, twin, dear]) == ()
    beyond = Way(6.1, 4, best)  # goes on from the best
    assert runners_up(best, [third, near, beyond, dear]) == (beyond, third) and MOST == 2


@pytest.mark.parametrize("method", ["lookahead", "backtracking", "beam", "random_walk"])
def test_they_are_graphs_of_their_own_that_cost_what_they_say(method: str) -> None:
    graph = small("inception_v3")
    found = METHODS[method](graph, RULES, cost(), Budget(expansions=45))
    keys, end = {graph.key}, graph
    for step in found.trace:
        end = end.replace(step.match.edit)
        keys.add(end.key)
    assert len(found.runners_up) == MOST
    for way in found.runners_up:
        steps, end = way.trace(graph), graph
        for step in steps:
            end = end.replace(step.match.edit)
        assert end.key not in keys and trace.replay(trace.to_json(graph, end, steps, RULES), graph, RULES).key == end.key
        assert cost().cost_ms(end) == pytest.approx(way.cost_ms, abs=1e-9)
        assert found.cost_ms - 1e-12 <= way.cost_ms <= NEAR * found.cost_ms
        keys.add(end.key)


def test_none_is_passed_over_for_a_dearer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all graphs that came since the best one was found."""
    offered: list[Way] = []
    right = course.Course.offer

    def offer(self: course.Course, state: State) -> bool:
        better = right(self, state)
        if better:
            offered.clear()
        offered.append(state.way)
        return better

    monkeypatch.setattr(course.Course, "offer", offer)
    found = Backtracking()(small("inception_v3"), RULES, cost(), Budget(expansions=60))
    later = runners_up(offered[0], offered)
    assert offered[0].cost_ms == pytest.approx(found.cost_ms) and len(later) == MOST
    assert all(kept.cost_ms <= way.cost_ms + 1e-12 for kept, way in zip(found.runners_up, later, strict=True))


def test_greed_sees_no_other_graph() -> None:
    assert Greedy()(small("repvgg_a0"), RULES, cost(), Budget()).runners_up == ()
