"""Greedy: the same trace in any process, within its budget, and the best so far when interrupted."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cgorl.cost.model import Price
from cgorl.ir.graph import Graph
from cgorl.rules.matches import MatchSet
from cgorl.search.greedy import Greedy
from cgorl.search.searcher import Budget, Progress, SearchError
from tests.search.test_trace import cost, searched
from tests.texts import rules, small

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import json
from cgorl import config
from tests.search.test_trace import searched, told
from tests.texts import small
chosen = config.rule_set(config.plain(config.load_config("optimize", ["model=none"]))["rules"])
g = small("repvgg_a0")
print(json.dumps(told(g, searched(g, chosen), chosen), sort_keys=True))
"""


def test_two_processes_with_other_hash_seeds_give_the_same_trace() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=ROOT, env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and len(said[0]) > 1000


def test_each_step_is_the_best_there_is() -> None:
    g, prices = small("repvgg_a0"), cost()
    for step in searched(g, rules()).trace:
        best = max(prices.gain(g, m.edit) for m in MatchSet(g, rules()))
        assert step.before_ms - step.after_ms == pytest.approx(best, rel=1e-9)
        g = g.replace(step.match.edit)
    assert all(prices.gain(g, m.edit) <= 1e-9 for m in MatchSet(g, rules()))


def test_costs_along_the_trace_are_the_graphs_costs() -> None:
    g = small("inception_v3")
    found = searched(g, rules())
    assert found.initial_cost_ms == cost().cost_ms(g)
    assert found.trace[-1].after_ms == pytest.approx(found.cost_ms, rel=1e-9)
    assert found.cost_ms == cost().cost_ms(found.graph) and found.stopped == "no rewrite gains"


def run(g: Graph, budget: Budget, prices: Any = None, listen: Any = None) -> Any:
    return Greedy()(g, rules(), prices or cost(), budget, listen)


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_no_more_expansions_than_allowed(limit: int) -> None:
    found = run(small("repvgg_a0"), Budget(expansions=limit))
    assert (found.expansions, len(found.trace), found.stopped) == (limit, limit, "expansions")


@pytest.mark.parametrize("limit", [0, 1, 5, 14])
def test_no_more_evaluations_than_allowed(limit: int) -> None:
    found = run(small("repvgg_a0"), Budget(evaluations=limit))
    assert (found.evaluations, found.stopped) == (limit, "evaluations")
    assert len(found.trace) >= (limit > 0)  # the best of what was priced
    assert found.cost_ms <= found.initial_cost_ms


class Slow:
    """Prices that each take a while, or raise at the n-th."""

    def __init__(self, seconds: float = 0.0, interrupt: int = -1) -> None:
        self.inner, self.seconds, self.interrupt, self.asked = cost(), seconds, interrupt, 0

    def price(self, graph: Graph, edit: Any) -> Price:
        self.asked += 1
        time.sleep(self.seconds)
        if self.asked == self.interrupt:
            raise KeyboardInterrupt
        return self.inner.price(graph, edit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_seconds_end_a_long_listing() -> None:
    found = run(small("inception_v3"), Budget(seconds=0.3), Slow(0.02))
    assert found.stopped == "seconds" and found.seconds < 1.0 and 1 <= len(found.trace) <= 2
    assert run(small("inception_v3"), Budget(seconds=0)).trace == ()


@pytest.mark.parametrize("at", [1, 4, 8])
def test_an_interrupt_gives_the_best_so_far(at: int) -> None:
    g = small("repvgg_a0")
    found = run(g, Budget(), Slow(interrupt=at))
    whole = run(g, Budget())
    assert found.stopped == "interrupted" and len(found.trace) < len(whole.trace)
    assert [s.match.rule.name for s in found.trace] == [s.match.rule.name for s in whole.trace[: len(found.trace)]]
    after = g
    for step in found.trace:
        after = after.replace(step.match.edit)
    assert after.key == found.graph.key


def test_an_interrupt_while_it_reports() -> None:
    def listen(p: Progress) -> None:
        if p.rewrites == 2:
            raise KeyboardInterrupt

    found = run(small("repvgg_a0"), Budget(), listen=listen)
    assert (found.stopped, len(found.trace)) == ("interrupted", 2)


def test_progress_is_told_after_each_expansion() -> None:
    seen: list[Progress] = []
    found = run(small("repvgg_a0"), Budget(), listen=seen.append)
    assert [p.expansions for p in seen] == list(range(1, found.expansions + 1))
    assert seen[0].best_ms == found.initial_cost_ms and seen[-1].rewrites == len(found.trace)


@pytest.mark.parametrize("wrong", ["abc", -1.0, None])
def test_a_wrong_parameter_is_named(wrong: Any) -> None:
    with pytest.raises(SearchError, match="least_ms"):
        Greedy(wrong)
