"""Every method against the true optimum of small graphs, and what all of them promise."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from cgorl import config, zoo
from cgorl.cost.model import Price
from cgorl.cost.roofline import Roofline
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Edit, Graph
from cgorl.ir.simplify import simplify
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library
from cgorl.search import trace
from cgorl.search.annealing import Annealing
from cgorl.search.backtracking import Backtracking
from cgorl.search.beam import Beam
from cgorl.search.exhaustive import COMPLETE, Exhaustive
from cgorl.search.greedy import Greedy
from cgorl.search.lookahead import Lookahead
from cgorl.search.random_walk import RandomWalk
from cgorl.search.searcher import Budget
from tests.search.test_trace import cost
from tests.texts import small

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    *("conv-mul", "conv-batchnorm", "add-convs", "add-conv-identity", "add-conv-batchnorm", "merge-convs", "concat-convs", "split-conv"),
    *("concat-unary-relu", "unary-concat-relu", "matmul-matmul", "add-matmuls", "add-matmul-lowrank", "matmul-mul", "merge-matmuls"),
    *("split-concat", "concat-split"),
}
ALL = RuleSet(library())
RULES = RuleSet(tuple(r for r in library() if r.name in NAMES))
METHODS: dict[str, Any] = {
    "greedy": Greedy(),
    "lookahead": Lookahead(),
    "backtracking": Backtracking(),
    "beam": Beam(),
    "annealing": Annealing(steps=60),
    "random_walk": RandomWalk(horizon=8, walks=4),
    "exhaustive": Exhaustive(),
}


def model(text: str, **weights: tuple[int, ...]) -> Graph:
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    rng = np.random.default_rng(0)
    for name, shape in weights.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    return from_proto(onnx.shape_inference.infer_shapes(made))


SMALL = {
    "branches": lambda: model(
        """g (float[1,4,6,6] x) => (float[1,4,6,6] y) {
            a = Conv<pads=[1,1,1,1]>(x, w) b = Conv(x, v) c = Add(a, b) d = Mul(c, s) e = Add(d, x) y = Relu(e) }""",
        w=(4, 4, 3, 3),
        v=(4, 4, 1, 1),
        s=(1, 4, 1, 1),
    ),
    "products": lambda: model(
        "g (float[2,6] x) => (float[2,3] y) { a = MatMul(x, u) b = MatMul(a, v) c = MatMul(x, w) d = Add(b, c) y = Mul(d, s) }",
        u=(6, 2),
        v=(2, 3),
        w=(6, 3),
        s=(3,),
    ),
    "siblings": lambda: model(
        "g (float[1,3,8,8] x) => (float[1,6,8,8] y) { a = Conv(x, u) b = Relu(a) c = Conv(x, w) d = Relu(c) y = Concat<axis=1>(b, d) }",
        u=(2, 3, 1, 1),
        w=(4, 3, 1, 1),
    ),
}


def zoo_graph(name: str) -> Graph:
    sizes = {"repvgg_a0": {"width": 0.125}, "nasnet_a": {"width": 0.125, "depth": (1, 1, 1)}, "resnext50": {"depth": (1, 1, 1, 1)}}
    return simplify(from_proto(zoo.build(name, image=32, **sizes[name]))).graph


@pytest.fixture(scope="module")
def optimum() -> dict[str, float]:
    found = {name: Exhaustive(growth=3.0)(make(), RULES, cost(), Budget(expansions=3000)) for name, make in SMALL.items()}
    assert all(f.stopped == COMPLETE and f.expansions > 3 for f in found.values())
    return {name: f.cost_ms for name, f in found.items()}


@pytest.mark.parametrize("name", SMALL)
def test_without_limits_backtracking_and_beam_reach_the_optimum(name: str, optimum: dict[str, float]) -> None:
    wide = Beam(width=0, patience=50)(SMALL[name](), RULES, cost(), Budget())
    assert wide.cost_ms == pytest.approx(optimum[name], abs=1e-12)
    for focus in (True, False):
        deep = Backtracking(alpha=math.inf, growth=3.0, focus=focus)(SMALL[name](), RULES, cost(), Budget())
        assert deep.cost_ms == pytest.approx(optimum[name], abs=1e-12)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("method", METHODS)
def test_no_method_claims_better_than_the_optimum_or_worse_than_the_start(method: str, name: str, optimum: dict[str, float]) -> None:
    graph = SMALL[name]()
    found = METHODS[method](graph, RULES, cost(), Budget())
    assert optimum[name] - 1e-12 <= found.cost_ms <= found.initial_cost_ms
    assert found.cost_ms == pytest.approx(cost().cost_ms(found.graph), abs=1e-12)
    told = trace.to_json(graph, found.graph, found.trace, RULES)
    assert trace.replay(told, graph, RULES).key == found.graph.key


@pytest.mark.parametrize("name", ["repvgg_a0", "inception_v3"])
def test_lookahead_of_one_step_is_greedy(name: str) -> None:
    """On graphs with many rewrites that do not touch each other, whose gains are known from earlier rounds."""
    graph = small(name)
    greedy = Greedy()(graph, RULES, cost(), Budget())
    assert len(greedy.trace) > 5
    assert Lookahead(steps=1)(graph, RULES, cost(), Budget()).cost_ms == pytest.approx(greedy.cost_ms, rel=1e-9)


@pytest.mark.parametrize("name", ["repvgg_a0", "nasnet_a", "resnext50"])
def test_backtracking_comes_at_least_to_where_greedy_comes(name: str) -> None:
    """It goes down the same way first; a size guard that counted weights once cut it off."""
    graph = zoo_graph(name)
    greedy = Greedy()(graph, ALL, cost(), Budget())
    found = Backtracking()(graph, ALL, cost(), Budget(expansions=greedy.expansions + 20))
    assert found.cost_ms <= greedy.cost_ms + 1e-12 < greedy.initial_cost_ms


def test_rewrites_far_from_each_other_do_not_flood_the_queue() -> None:
    """Eight fire modules, each with a way up and down again: in TASO's order their subsets come first."""
    graph = simplify(from_proto(zoo.build("squeezenet1_1", image=96))).graph
    cfg = config.load_config("optimize", ["model=none", "device=v100"])
    prices = config.build(cfg.cost, dims={}, unbound=None)
    focused, flooded = (Backtracking(focus=f)(graph, ALL, prices, Budget(expansions=500)) for f in (True, False))
    assert focused.cost_ms < 0.9 * flooded.cost_ms


def test_a_queue_is_as_long_as_it_may_be(tmp_path: Path) -> None:
    graph, held = small("inception_v3"), {}
    for most in (5, 200_000):
        file = tmp_path / f"{most}.json"
        found = Backtracking(queue=most)(graph, RULES, cost(), Budget(expansions=45), checkpoint=file)
        held[most] = len(json.loads(file.read_text().split("\n", 1)[1])["memory"]["heap"])
        assert found.cost_ms < 0.6 * found.initial_cost_ms  # greed's way is the cheapest and stays
    assert held[5] <= 5 < held[200_000]


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exhaustive"}))
def test_budgets_hold_and_an_interrupt_keeps_the_best(method: str) -> None:
    graph = small("repvgg_a0")
    few = METHODS[method](graph, RULES, cost(), Budget(expansions=5))
    assert few.expansions <= 5 and few.cost_ms <= few.initial_cost_ms
    some = METHODS[method](graph, RULES, cost(), Budget(evaluations=100))
    assert some.evaluations <= 100

    told = 0

    def interrupt(_: object) -> None:
        nonlocal told
        told += 1
        if told == 4:
            raise KeyboardInterrupt

    cut = METHODS[method](graph, RULES, cost(), Budget(), interrupt)
    assert cut.stopped == "interrupted" and cut.cost_ms <= cut.initial_cost_ms


SCRIPT = """
import json
from cgorl.search import trace
from cgorl.search.searcher import Budget
from tests.search.test_searchers import METHODS, RULES, cost, small
g = small("repvgg_a0")
for name in ("backtracking", "beam", "annealing", "random_walk", "lookahead"):
    found = METHODS[name](g, RULES, cost(), Budget(expansions=12))
    print(json.dumps(trace.to_json(g, found.graph, found.trace, RULES), sort_keys=True))
"""


def test_two_processes_with_other_hash_seeds_give_the_same_traces() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], cwd=ROOT, env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and len(said[0]) > 1000


def test_what_is_waited_for_prices_is_no_part_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0

    class Slow(Roofline):
        """Prices that take ten seconds each to be found out."""

        waited = 0.0

        def price(self, graph: Graph, edit: Edit) -> Price:
            nonlocal clock
            clock += 10.0
            Slow.waited += 10.0
            return super().price(graph, edit)

    monkeypatch.setattr("cgorl.search.searcher.time.monotonic", lambda: clock)
    found = Greedy()(small("repvgg_a0"), RULES, Slow(cost().device), Budget(seconds=1.0))
    assert found.stopped == "no rewrite gains" and clock > 100 and found.seconds == 0
