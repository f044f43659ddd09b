"""What is said while a search runs."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import onnx.helper as oh
import pytest
from onnx import TensorProto
from rich.console import Console

from cgorl.certificate.equivalence import Equivalence
from cgorl.cost.roofline import Roofline
from cgorl.ir.from_proto import from_proto
from cgorl.pipeline import by_operator
from cgorl.report.bench.engine import DEVICE
from cgorl.report.screen import Screen, _errors, _operators, pace
from cgorl.search.searcher import Budget, Progress

HALF = Progress(expansions=50, evaluations=2000, seconds=10.0, best_ms=12.5, rewrites=7)


@pytest.mark.parametrize(
    ("budget", "left", "share"),
    [
        (Budget(), "", None),
        (Budget(seconds=40), "max 0:30 left", 0.25),
        (Budget(expansions=100), "max 0:10 left", 0.5),
        (Budget(evaluations=20000), "max 1:30 left", 0.1),
        (Budget(40, 100, 20000), "max 0:10 left", 0.5),  # the one that ends first
        (Budget(seconds=5), "max 0:00 left", 1.0),
        (Budget(seconds=3610), "max 60:00 left", 10 / 3610),
    ],
)
def test_pace(budget: Budget, left: str, share: float | None) -> None:
    text, found = pace(HALF, budget)
    assert text.startswith("best 12.500 ms; 50 expanded (5/s), 2,000 priced") and text.endswith(left)
    assert found == share and ("left" in text) == bool(left)


def test_nothing_spent_yet() -> None:
    assert pace(Progress(0, 0, 0.0, 1.0, 0), Budget(seconds=10))[1] is None
    assert pace(Progress(0, 0, 0.0, 1.0, 0), Budget(expansions=0))[1] is None


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    with Screen(Console(file=out, width=200), Budget(expansions=100)) as screen:
        screen.tell("search", None)
        screen.tell("search", HALF)
        monkeypatch.setattr("time.monotonic", lambda: 1e9)
        screen.tell("search", HALF)
    assert out.getvalue().splitlines() == [
        "search ...",
        "search ... best 12.500 ms; 50 expanded (5/s), 2,000 priced; max 0:10 left",
    ]


def test_on_a_terminal_the_bar_fills() -> None:
    out = io.StringIO()
    with Screen(Console(file=out, width=200, force_terminal=True), Budget(expansions=100)) as screen:
        screen.tell("search", HALF)
        [task] = screen._bar.tasks
    assert (task.completed, task.total, task.description) == (0.5, 1.0, "search") and "5/s" in task.fields["text"]


def test_an_error_in_the_middle_is_told_beside_that_of_the_outputs() -> None:
    """Where nearly equal numbers are subtracted, the original is wrong by itself; without a word that looks like a failed proof."""
    assert _errors(Equivalence(2e-6, 3, 5, outputs={"y": 2e-6})) == "largest error 2e-06"
    assert _errors(Equivalence(3e-6, 3, 5, outputs={"y": 2e-6, "z": 0.0})) == "largest error 3e-06; of the outputs 2e-06"
    told = _errors(Equivalence(3e-2, 9, 49, outputs={"y": 5e-9}))
    assert told == "largest error 3e-02, where the original is itself off from float64; of the outputs 5e-09"


def test_what_runs_in_a_body_has_no_cost_and_neither_has_a_sum_with_it() -> None:
    kind = [oh.make_tensor_value_info(n, TensorProto.FLOAT, [64, 64]) for n in ("x", "y")]
    yes, no = (
        oh.make_graph([oh.make_node(op, ["x"], [op])], op, [], [oh.make_tensor_value_info(op, 1, [64, 64])]) for op in ("Exp", "Log")
    )
    choose = oh.make_node("If", ["c"], ["z"], name="choose", then_branch=yes, else_branch=no)
    inputs = [kind[0], oh.make_tensor_value_info("c", TensorProto.BOOL, [])]
    model = oh.make_model(oh.make_graph([choose, oh.make_node("Tanh", ["z"], ["y"])], "g", inputs, kind[1:]))
    graph = from_proto(model)
    costs = by_operator(graph, Roofline(DEVICE))
    assert costs.keys() == {"Tanh"} and costs["Tanh"] > 0
    table = _operators(cast(Any, SimpleNamespace(original=graph, graph=graph, before_ms=costs, after_ms=costs)))
    told = dict(zip(table.columns[0]._cells, table.columns[4]._cells, strict=True))
    assert told["If"] == told["all"] == "-" and told["Tanh"] == f"{costs['Tanh']:.3f}"
