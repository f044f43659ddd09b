"""cost=measured: gains are differences of totals, inherited prices are fresh ones, and what is missing is estimated and said."""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cgorl import config, zoo
from cgorl.cost import measured
from cgorl.cost.estimate import Nearest, roofline_ms
from cgorl.cost.kernels.kernel import BLOCKED, Kernel, float_slot
from cgorl.cost.measure import noise
from cgorl.cost.measured import Measured
from cgorl.cost.model import CostError
from cgorl.cost.store import Entry, Store
from cgorl.cost.target import here
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.ir.sizes import DimsError
from cgorl.search.searcher import Budget, Meter
from cgorl.search.state import State
from tests.texts import graph
from tests.zoo.variants import VARIANTS


@dataclass(frozen=True, eq=False)
class Made(Measured):
    """Prices that are drawn from the kernel's key, without noise."""

    def _learn(self, kernels: Iterable[Kernel]) -> None:
        for k in kernels:
            drawn = int.from_bytes(hashlib.blake2b(k.key.encode(), digest_size=4).digest()) / 2**32
            self._prices[k] = Entry(0.001 + drawn, 0.0, 1)


def made() -> Made:
    return Made("nowhere", None)


def rules(chosen: str = "default"):  # type: ignore[no-untyped-def]
    return config.rule_set(config.plain(config.load_config("optimize", ["model=none", f"rules={chosen}"]))["rules"])


def variant(label: str) -> Graph:
    name, params = VARIANTS[label]
    return simplify(from_proto(zoo.build(name, **params))).graph


@pytest.mark.parametrize(
    ("label", "steps"),
    [("resnet18", 4), ("squeezenet1_1-taso", 3), ("bert-taso", 3), ("nasnet_a-export", 1), ("repvgg_a0", 2), ("yolo_csp", 2)],
)
def test_on_a_random_walk_gains_are_differences_of_totals_and_inherited_prices_are_fresh_ones(label: str, steps: int) -> None:
    cost, rng, meter = made(), random.Random(label), Meter(Budget(), None)
    state = State.start(variant(label), rules(), cost, meter)
    for _ in range(steps):
        here_, fresh = list(state.prices), made()
        if not here_:
            break
        assert cost.cost_ms(state.graph) == pytest.approx(fresh.cost_ms(state.graph), rel=1e-12)
        for m in rng.sample(here_, min(8, len(here_))):
            assert state.gain(m) == pytest.approx(fresh.gain(state.graph, m.edit), abs=1e-9), (label, m.rule.name)
        for m in rng.sample(here_, min(2, len(here_))):
            after = made().cost_ms(state.graph.replace(m.edit))
            assert state.gain(m) == pytest.approx(fresh.cost_ms(state.graph) - after, abs=1e-9), (label, m.rule.name)
        state = state.after(rng.choice(here_), meter)


def test_a_layout_is_followed_as_far_as_it_goes() -> None:
    """Ten Relus after a conv have its layout: to take the conv away changes all of them, and both reorders."""
    body = " ".join(f"r{k} = Relu(r{k - 1})" for k in range(1, 11))
    g = graph(
        "agraph (float[1,32,8,8] x) => (float[1,32,8,8] y) { s = Constant<value = int64[4] {32,32,1,1}>()"
        f"w = ConstantOfShape(s) a = Conv(x, w) b = Neg(x) r0 = Sigmoid(a) {body} y = Abs(r10) }}"
    )
    sigmoid = next(i for i, n in g.nodes.items() if n.op == "Sigmoid")
    neg = next(i for i, n in g.nodes.items() if n.op == "Neg")
    from cgorl.ir.node import Value
    from tests.texts import rewrite

    match = rewrite(g, sigmoid, lambda b: b.node("Sigmoid", [Value(neg)]))
    cost = made()
    assert cost.gain(g, match.edit) == pytest.approx(cost.cost_ms(g) - made().cost_ms(g.replace(match.edit)), abs=1e-9)


@dataclass(frozen=True, eq=False)
class Blocks(Measured):
    """Prices on which one convolution in blocks does not pay for the reorders round it, and two in a row do."""

    def _learn(self, kernels: Iterable[Kernel]) -> None:
        for k in kernels:
            ms = 0.15 if "Reorder" in k.op else {BLOCKED: 0.75}.get(k.domain, 1.0) if "Conv" in k.op else 0.01
            self._prices[k] = Entry(ms, 0.0, 1)


def test_the_default_search_goes_through_what_costs_at_first() -> None:
    g = graph(
        "agraph (float[1,64,8,8] x) => (float[1,64,8,8] y) { s = Constant<value = int64[4] {64,4,3,3}>() w = ConstantOfShape(s)"
        "a = Conv<group=16, pads=[1,1,1,1]>(x, w) y = Conv<group=16, pads=[1,1,1,1]>(a, w) }"
    )
    ended = {}
    for word in ("search=greedy", "cost=measured"):
        cfg = config.load_config("optimize", ["model=none", "cost=measured", word])
        found = config.build(cfg.search)(g, rules(), Blocks("nowhere", None), Budget(expansions=200))
        ended[word] = round(found.cost_ms, 6), [(s.match.rule.name.split("-")[0], s.after_ms > s.before_ms) for s in found.trace]
    assert ended == {"search=greedy": (2.0, []), "cost=measured": (1.8, [("merge", True), ("merge", False)])}


# ---------------------------------------------------------------- missing prices, noise, sizes
RELUS = "agraph (float[1,{n}] x) => (float[1,{n}] y) {{ h = Neg(x) y = Relu(h) }}"


def empty(folder: Path, **more: object) -> Measured:
    return Measured(str(folder), None, seconds=0.0, **more)  # type: ignore[arg-type]


def test_what_is_missing_is_estimated_counted_and_told(tmp_path: Path) -> None:
    cost = empty(tmp_path)
    assert cost.cost_ms(graph(RELUS.format(n=64))) > 0
    assert cost.estimated == 2
    assert "0 kernels from the table, 0 measured now, 2 estimated" in cost.notes()[0]
    assert cost.store.entries == {}


def test_prices_come_from_the_table(tmp_path: Path) -> None:
    g = graph(RELUS.format(n=64))
    first = empty(tmp_path)
    for k, ms in zip(first.kernels(g), (0.25, 0.5), strict=True):
        first.store.add(k.key, Entry(ms, 0.01, 30))
    again = empty(tmp_path)
    assert again.cost_ms(g) == pytest.approx(0.75)
    assert again.estimated == 0
    assert empty(tmp_path, level="extended").cost_ms(g) < 0.1  # another level: an estimate
    assert again.digest == empty(tmp_path).digest != empty(tmp_path / "other").digest


def test_an_estimate_is_the_nearest_kin_scaled() -> None:
    def relu(n: int) -> Kernel:
        return Kernel("Relu", "", (), (float_slot((n,)),), (float_slot((n,)),), 17)

    nearest = Nearest([(relu(1_000), 1.0), (relu(1_000_000), 2.0)])
    assert nearest.ms(relu(1_000)) == pytest.approx(1.0)
    assert nearest.ms(relu(2_000_000)) == pytest.approx(2.0 * roofline_ms(relu(2_000_000)) / roofline_ms(relu(1_000_000)))
    other = Kernel("Neg", "", (), (float_slot((9,)),), (float_slot((9,)),), 17)
    assert nearest.ms(other) == roofline_ms(other)
    abroad = Nearest([(relu(1_000), 1.0)], [(relu(1_000), 7.0), (other, 3.0)])  # another target's table: where there is no kin here
    assert (abroad.ms(relu(1_000)), abroad.ms(other)) == (pytest.approx(1.0), pytest.approx(3.0))


def test_tables_of_other_targets_that_were_shipped_serve_estimates(tmp_path: Path) -> None:
    g = graph(RELUS.format(n=64))
    made_elsewhere = Store(tmp_path / "shipped", replace(here(), cpu="another"))
    for k in empty(tmp_path).kernels(g):
        made_elsewhere.add(k.key, Entry(2.0, 0.01, 30))
    cost = Measured(str(tmp_path / "own"), str(tmp_path / "shipped"), seconds=0.0)
    assert cost.cost_ms(g) == pytest.approx(4.0)
    assert (cost.estimated, cost.store.entries) == (2, {})


def test_a_gain_within_the_noise_counts_as_none(tmp_path: Path) -> None:
    from tests.texts import rewrite

    g = graph(RELUS.format(n=64))
    relu = next(i for i, n in g.nodes.items() if n.op == "Relu")
    match = rewrite(g, relu, lambda b: b.node("Sigmoid", [g.nodes[relu].inputs[0]]))
    cost = empty(tmp_path)
    keys = {k.op: k.key for k in (*cost.kernels(g), *cost.kernels(g.replace(match.edit)))}
    for op, ms in (("Neg", 1.0), ("Relu", 1.0), ("Sigmoid", 0.99)):
        cost.store.add(keys[op], Entry(ms, noise(ms), 30))
    assert empty(tmp_path).gain(g, match.edit) == 0.0
    assert empty(tmp_path, doubt=0.0).gain(g, match.edit) == pytest.approx(0.01)
    cost.store.add(keys["Sigmoid"], Entry(0.5, noise(0.5), 30))
    assert empty(tmp_path).gain(g, match.edit) == pytest.approx(0.5)


def test_a_symbol_without_a_size_is_named(tmp_path: Path) -> None:
    g = graph("agraph (float[batch,8] x) => (float[batch,8] y) { y = Relu(x) }")
    with pytest.raises(DimsError, match="batch"):
        empty(tmp_path).cost_ms(g)
    assert empty(tmp_path, dims={"batch": 64}).cost_ms(g) > 0


def test_every_operator_has_a_price(tmp_path: Path) -> None:
    g = graph(
        "agraph (float[1,8] x, bool c) => (float[1,8] y, int64[2] s) { s = Shape(x) "
        "y = If(c) <then_branch = t () => (float[1,8] a) { a = Relu(x) }, else_branch = e () => (float[1,8] b) { b = Neg(x) }> }"
    )
    cost = Measured(str(tmp_path), None, seconds=20.0)
    assert cost.cost_ms(g) > 0
    assert cost.estimated == 1  # a body cannot be run by itself


def test_a_graph_on_which_the_rule_is_off_is_told(tmp_path: Path) -> None:
    cost = empty(tmp_path)
    assert "all 2" in cost.notes(graph(RELUS.format(n=64)))[1]
    g = graph("agraph (float[1,4,8] x) => (float[1,4,8] y){ k = Neg(x) a = Transpose<perm=[0,2,1]>(k) y = Transpose<perm=[0,2,1]>(a) }")
    assert "are foretold; the others are priced as the rule makes them" in cost.notes(g)[1]


def test_an_interrupt_ends_the_measuring_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(measured, "measure", interrupted)
    cost = Measured(str(tmp_path), None, seconds=20.0)
    with pytest.raises(KeyboardInterrupt):
        cost.cost_ms(graph(RELUS.format(n=64)))
    assert cost.cost_ms(graph(RELUS.format(n=64))) > 0 and cost.estimated == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": None}, "cost.table must be the name of a folder, not None"),
        ({"shipped": 5}, "cost.shipped must be the name of a folder, or null, not 5"),
        ({"level": "foo"}, "cost.level must be one of all, extended, not 'foo'"),
        ({"seconds": None}, "cost.seconds must be a number of at least 0, not None"),
        ({"seconds": -1}, "cost.seconds must be a number of at least 0, not -1"),
        ({"doubt": "abc"}, "cost.doubt must be a number of at least 0, not 'abc'"),
    ],
)
def test_an_option_that_cannot_be_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CostError, match=said):
        Measured(**{"table": "there", **options})
