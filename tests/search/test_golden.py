"""The traces of five graphs as they were: a change of the engine that is meant to change nothing changes none of them.

One that is meant to (a rule added, a price mended) is recorded anew: python -m tests.search.test_golden
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cgorl import config, zoo
from cgorl.ir.from_proto import from_proto
from cgorl.ir.simplify import simplify
from cgorl.search import trace
from cgorl.search.searcher import Budget

GOLDEN = Path(__file__).parent / "golden.json"
GRAPHS: dict[str, dict[str, Any]] = {
    "bert": {"layers": 1, "hidden": 32, "heads": 2, "seq": 8, "batch": 1},
    "inception_v3": {"image": 75, "width": 0.125},
    "nasnet_a": {"image": 32, "width": 0.125, "depth": (1, 1, 1)},
    "resnext50": {"image": 32, "depth": (1, 1, 1, 1)},
    "squeezenet1_1": {"image": 32, "width": 0.25},
}
EXPANSIONS = 40


def ran(name: str) -> dict[str, Any]:
    """Device, rules and method as a user gets them; the numbers of a price list and of a search alike."""
    graph = simplify(from_proto(zoo.build(name, **GRAPHS[name]))).graph
    cfg = config.load_config("optimize", ["model=none", "search=backtracking", "device=v100"])
    options: dict[str, Any] = config.plain(cfg)
    rules, cost = config.rule_set(options["rules"]), config.build(cfg.cost, dims={}, unbound=None)
    found = config.build(cfg.search)(graph, rules, cost, Budget(expansions=EXPANSIONS))
    told = trace.to_json(graph, found.graph, found.trace, rules)
    steps = [[s["rule"], s["nodes"], s["after_ms"]] for s in told["steps"]]
    ends = {"initial_key": told["initial_key"], "final_key": told["final_key"], "initial_ms": found.initial_cost_ms}
    return {**ends, "expansions": found.expansions, "evaluations": found.evaluations, "steps": steps}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_trace_is_as_it_was(name: str) -> None:
    told, golden = ran(name), json.loads(GOLDEN.read_text())[name]
    assert [s[:2] for s in told["steps"]] == [s[:2] for s in golden["steps"]]
    assert told == golden


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: ran(name) for name in GRAPHS}, indent=1) + "\n")
