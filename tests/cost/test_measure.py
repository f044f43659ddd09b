"""Measuring: bench models run what they say, each price is kept when it is done, slow phases are refused."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from cgorl.cost import anchor, measure
from cgorl.cost.bench_model import bench_model
from cgorl.cost.kernels.kernel import Kernel, Slot, float_slot
from cgorl.cost.store import Entry, Store
from cgorl.cost.target import here
from cgorl.ir.run import Session


def relu(n: int) -> Kernel:
    return Kernel("Relu", "", (), (float_slot((1, n)),), (float_slot((1, n)),), 17)


BLOCKS = [
    ("Conv", "", (), [(1, 8, 6, 6)], [(4, 8, 3, 3)], (1, 4, 4, 4)),
    ("Relu", "", (), [(1, 64)], [], (1, 64)),
    ("Add", "", (), [(1, 64), (1, 64)], [], (1, 64)),
    ("MatMul", "", (), [(4, 8)], [(8, 3)], (4, 3)),
]


@pytest.mark.parametrize(("op", "domain", "attrs", "given", "weights", "out"), BLOCKS)
def test_a_bench_model_runs_the_kernel_as_often_as_it_says(op, domain, attrs, given, weights, out) -> None:  # type: ignore[no-untyped-def]
    slots = (*map(float_slot, given), *(float_slot(w, True) for w in weights))
    kernel = Kernel(op, domain, attrs, slots, (float_slot(out),), 17)
    model, feeds = bench_model(kernel, 3)
    assert [n.op_type for n in model.graph.node].count(op) == 3
    assert len(model.graph.initializer) == 3 * len(weights)
    [result] = Session(model).run(feeds).values()
    assert np.isfinite(result).all()
    assert result.shape == out


INT = TensorProto.INT64
SHAPED = [
    Kernel("Expand", "", (), (float_slot((1, 4)), Slot(INT, (2,))), (float_slot((3, 4)),), 17),
    Kernel("Reshape", "", (), (float_slot((6, 4)), Slot(INT, (3,))), (float_slot((2, 3, 4)),), 17),
    Kernel("Split", "", (("axis", 1),), (float_slot((1, 6)),), (float_slot((1, 2)),) * 3, 18),
    Kernel("Split", "", (("axis", 1),), (float_slot((1, 6)),), (float_slot((1, 2)),) * 3, 17),
    Kernel("Transpose", "", (("perm", (1, 0)),), (float_slot((2, 6)),), (float_slot((6, 2)),), 9),
]


@pytest.mark.parametrize("kernel", SHAPED, ids=str)
def test_operands_that_say_a_shape_say_that_of_the_result(kernel: Kernel) -> None:
    model, feeds = bench_model(kernel, 2)
    [result] = Session(model).run(feeds).values()
    assert result.shape == kernel.outputs[0].shape  # type: ignore[union-attr]
    assert [n.op_type for n in model.graph.node] == [kernel.op, kernel.op, *["Flatten"] * len(kernel.outputs)]


def test_a_bench_model_gives_each_result_free_when_the_next_copy_has_run() -> None:
    add = Kernel("Add", "", (), (float_slot((1, 64)), float_slot((1, 64))), (float_slot((1, 64)),), 17)
    model, _ = bench_model(add, 4)
    assert [n.op_type for n in model.graph.node] == ["Add", "Add", "Flatten", "Add", "Flatten", "Add", "Flatten"]
    assert [n.input[0] for n in model.graph.node if n.op_type == "Flatten"] == ["y0_0", "y1_0", "y2_0"]
    chain, _ = bench_model(relu(64), 3)  # in place: each reads the last one's result
    assert [n.input[0] for n in chain.graph.node] == ["x0", "y0_0", "y1_0"]


class _Clock:
    """Stands in for runners and anchor: times that are set, not measured."""

    pace_ns = 20_000

    def __init__(self, kernel: Kernel, copies: int, held: int = 1) -> None:
        if kernel.op == "NoSuchOperator":
            raise ValueError(kernel.op)
        self.ns = 5_000 + copies * 1_000 * kernel.inputs[0].elements  # type: ignore[union-attr]

    def __call__(self) -> int:
        return self.ns


class _Mark:
    def __call__(self) -> int:
        return _Clock.pace_ns

    def steady(self, before: int, after: int) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[_Clock]:
    monkeypatch.setattr(_Clock, "pace_ns", 20_000)
    monkeypatch.setattr(measure, "Runner", _Clock)
    monkeypatch.setattr(measure, "anchor", _Mark)
    monkeypatch.setattr(measure, "flatten_ns", lambda: 0.0)
    return _Clock


def test_a_price_is_what_one_more_copy_takes(clock: type[_Clock], tmp_path: Path) -> None:
    bad = Kernel("NoSuchOperator", "", (), (float_slot((1, 64)),), (float_slot((1, 64)),), 17)
    store, told = Store(tmp_path, here()), list[tuple[int, int]]()
    went = measure.measure([relu(3), bad, relu(7)], store, 60.0, lambda done, total, kernel: told.append((done, total)))
    assert (went.done, went.failed, went.left) == (2, (bad,), 0)
    assert {k.inputs[0].elements: store.entries[k.key].ms for k in (relu(3), relu(7))} == pytest.approx({3: 0.003, 7: 0.007})  # type: ignore[union-attr]
    assert told == [(1, 3), (2, 3)]
    assert measure.measure([relu(3)], store, 60.0).done == 0


def test_what_was_measured_in_a_slow_phase_is_no_price(clock: type[_Clock], tmp_path: Path) -> None:
    store = Store(tmp_path, here())
    measure.measure([relu(n) for n in range(1, 21)], store, 60.0)
    assert store.pace_ms == pytest.approx(0.02)
    clock.pace_ns = 24_000
    went = measure.measure([relu(100)], store, 60.0)
    assert (went.done, went.left, went.refused) == (0, 1, 1.0)
    assert Store(tmp_path, here()).get(relu(100).key) is None


def test_a_table_that_was_begun_in_a_slow_phase_is_measured_again(clock: type[_Clock], tmp_path: Path) -> None:
    store = Store(tmp_path, here())
    clock.pace_ns = 24_000
    slow = [relu(n) for n in range(1, 11)]
    measure.measure(slow, store, 60.0)
    clock.pace_ns = 20_000
    measure.measure([relu(n) for n in range(11, 31)], store, 60.0)
    assert all(Store(tmp_path, here()).get(k.key) is None for k in slow)
    assert measure.measure(slow, store, 60.0).done == 10


def test_measuring_on_this_machine(tmp_path: Path) -> None:
    store = Store(tmp_path, here())
    went = measure.measure([relu(64)], store, 10.0)
    assert went.done + went.left == 1
    assert (store.get(relu(64).key) is not None) == (went.done == 1)  # a machine may be too busy for a single steady sample
    assert anchor.flatten_ns() >= 0


_FILLER = """
import os, sys
from tests.cost import test_measure as t
from cgorl.cost import measure
from cgorl.cost.store import Store
from cgorl.cost.target import here
measure.Runner, measure.anchor, measure.flatten_ns = t._Clock, t._Mark, lambda: 0.0
last = int(sys.argv[2])
def tell(done, total, kernel):
    if done == last:
        os.kill(os.getpid(), 9)
measure.measure([t.relu(n) for n in range(1, 61)], Store(sys.argv[1], here()), 60.0, tell)
"""


def filler(folder: Path, last: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", _FILLER, str(folder), str(last)])


def test_a_killed_run_keeps_every_price_that_was_done(tmp_path: Path) -> None:
    assert filler(tmp_path, 5).wait(60) == -9
    assert len(Store(tmp_path, here()).entries) == 5


def test_two_processes_fill_one_table_at_once(tmp_path: Path) -> None:
    both = [filler(tmp_path, 0) for _ in range(2)]
    assert [p.wait(60) for p in both] == [0, 0]
    assert {k: e.ms for k, e in Store(tmp_path, here()).entries.items()} == pytest.approx({relu(n).key: n / 1000 for n in range(1, 61)})


def test_prices_of_another_process_are_taken_over(clock: type[_Clock], tmp_path: Path) -> None:
    ours, theirs = Store(tmp_path, here()), Store(tmp_path, here())
    theirs.add(relu(3).key, Entry(9.0, 0.1, 30))
    assert ours.get(relu(3).key) is None
    went = measure.measure([relu(3)], ours, 60.0)
    assert (went.done, went.left) == (0, 0)
    assert ours.get(relu(3).key) == Entry(9.0, 0.1, 30)
