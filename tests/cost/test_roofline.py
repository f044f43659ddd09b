"""Roofline: prices by hand, gain as the difference of totals, and sizes that are not known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cgorl import config, zoo
from cgorl.cost.model import CostError
from cgorl.cost.roofline import Device, Roofline
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.ir.sizes import DimsError
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from tests.texts import ZOO, graph, rewrite, rules, small
from tests.zoo.variants import VARIANTS

LAUNCH = 0.005


def taso(device: str = "taso", **more: Any) -> Roofline:
    return config.build(config.load_config("optimize", ["model=none", f"device={device}"]).cost, **{"dims": {}, "unbound": None, **more})


PRICES = taso(), taso("v100")


def ms(flops: float, numbers: float) -> float:
    """TASO's list: 100 GFLOP/s and 10 GB/s one after the other, of float32 numbers."""
    return 1000 * (flops / 1e11 + 4 * numbers / 1e10) + LAUNCH


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("agraph (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) { y = Conv(x, w) }", ms(2 * 144 * 27, 192 + 108 + 144)),
        ("agraph (float[1,4,8,8] x, float[4,2,1,1] w) => (float[1,4,8,8] y) { y = Conv<group=2>(x, w) }", ms(2 * 256 * 2, 256 + 8 + 256)),
        # neither the bias of a conv nor the parameters of a batchnorm: a number for each channel
        (
            "agraph (float[1,3,8,8] x, float[4,3,3,3] w, float[4] b) => (float[1,4,6,6] y) { y = Conv(x, w, b) }",
            ms(2 * 144 * 27, 192 + 108 + 144),
        ),
        (
            "agraph (float[1,3,4,4] x, float[3] s, float[3] t, float[3] m, float[3] v) => (float[1,3,4,4] y)"
            "{ y = BatchNormalization(x, s, t, m, v) }",
            ms(2 * 48, 48 + 48),
        ),
        ("agraph (float[2,3,4,5] x, float[2,3,5,6] w) => (float[2,3,4,6] y) { y = MatMul(x, w) }", ms(2 * 144 * 5, 120 + 180 + 144)),
        ("agraph (float[2,3] x, float[3] b) => (float[2,3] y) { y = Add(x, b) }", ms(6, 6 + 3 + 6)),
        ("agraph (float[1,3,4,4] x) => (float[1,3,1,1] y) { y = GlobalAveragePool(x) }", ms(48, 48 + 3)),
        ("agraph (float[2,4] x) => (float[2,2] y, float[2,2] z) { y, z = Split<axis=1>(x) }", 0.0),
        ("agraph (float[1,3,4,4] x, float[3,2,2,2] w) => (float[1,2,5,5] y) { y = ConvTranspose(x, w) }", ms(2 * 48 * 8, 48 + 24 + 50)),
        ("agraph (float[5,6] x, float[6,7] w) => (float[5,7] y) { y = MatMul(x, w) }", ms(2 * 35 * 6, 30 + 42 + 35)),
        ("agraph (float[6,5] x, float[7,6] w) => (float[5,7] y) { y = Gemm<transA=1,transB=1>(x, w) }", ms(2 * 35 * 6, 30 + 42 + 35)),
        ("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", ms(6, 12)),
        ("agraph (float16[2,3] x) => (float16[2,3] y) { y = Relu(x) }", ms(6, 6)),
        ("agraph (float[2,3] x) => (float[3,2] y) { y = Transpose(x) }", 0.0),
        ("agraph (float[2,3] x) => (float[6] y) { k = Constant<value = int64[1] {6}>() y = Reshape(x, k) }", 0.0),
        ("agraph (float[2,3] x) => (float[4,3] y) { y = Concat<axis=0>(x, x) }", ms(0, 24)),
        ("agraph (float[1,1,4,4] x) => (float[1,1,3,3] y) { y = MaxPool<kernel_shape=[2,2]>(x) }", ms(36, 25)),
        ("agraph (float[2,3] x) => (float[2,1] y) { k = Constant<value = int64[1] {1}>() y = ReduceSum(x, k) }", ms(6, 6 + 2 + 2)),
        # a table of embeddings is not read whole: 2 rows in, 2 rows out, and the indices (int64)
        ("agraph (float[1000,4] e, int64[2] i) => (float[2,4] y) { y = Gather(e, i) }", ms(0, 8 + 8 + 4)),
    ],
)
def test_prices_by_hand(text: str, wanted: float) -> None:
    assert taso().cost_ms(graph(text)) == pytest.approx(wanted, rel=1e-12)


CONV_RELU = "agraph (float[1,2,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y{more}) {{ h = Conv(x, w) y = Relu(h) {more2} }}"


def test_an_activation_goes_with_its_producer_unless_somebody_else_looks() -> None:
    alone = graph(CONV_RELU.format(more="", more2=""))
    shared = graph(CONV_RELU.format(more=", float[1,2,4,4] z", more2="z = Neg(h)"))
    conv = ms(2 * 32 * 2, 32 + 4 + 32)
    assert taso().cost_ms(alone) == pytest.approx(conv + 1000 * 32 / 1e11, rel=1e-12)
    assert taso().cost_ms(shared) == pytest.approx(conv + 2 * ms(32, 64), rel=1e-12)


def test_roofline_takes_the_larger_and_pays_for_an_empty_device() -> None:
    g = graph("agraph (float[5,6] x, float[6,7] w) => (float[5,7] y) { y = MatMul(x, w) }")
    device = Device("d", 1e9, 1e9, 0.0)
    assert Roofline(device).cost_ms(g) == pytest.approx(1000 * max(420, 4 * 107) / 1e9)
    assert Roofline(Device("d", 1e9, 1e12, 0.0, saturation=350)).cost_ms(g) == pytest.approx(1000 * 420 / 1e8)


def test_what_rests_on_weights_is_free() -> None:
    g = graph("agraph (float[2] x) => (float[2] y) <float[2] w = {1,2}> { k = Neg(w) y = Add(x, k) }")
    assert taso().cost_ms(g) == pytest.approx(ms(2, 6))


# ---------------------------------------------------------------- gain
PICKED = 6
"""How many matches are priced at each graph of a walk."""


def walk(g: Graph, chosen: RuleSet, prices: Sequence[Roofline], steps: int) -> int:
    """Takes random rewrites; at each graph the gain of some matches, one of each rule first, is the difference of totals."""
    rng, done = np.random.default_rng(5), 0
    found = MatchSet(g, chosen)
    for _ in range(steps):
        here = list(found)
        if not here:
            break
        before = [p.cost_ms(g) for p in prices]
        drawn = [here[int(k)] for k in rng.permutation(len(here))]
        firsts = {m.rule.name: m for m in reversed(drawn)}
        picked = [*reversed(firsts.values()), *drawn][:PICKED]
        for m in picked:
            after = g.replace(m.edit)
            for p, was in zip(prices, before, strict=True):
                assert p.gain(g, m.edit) == pytest.approx(was - p.cost_ms(after), rel=1e-9, abs=1e-12), (p.device.name, m.rule.name)
        after = g.replace(picked[0].edit)
        g, found, done = after, found.after(after, picked[0]), done + 1
    return done


@pytest.mark.parametrize("label", VARIANTS)
@pytest.mark.parametrize("chosen", ["default", "taso"])
def test_gain_is_the_difference_of_totals_on_random_walks(label: str, chosen: str) -> None:
    name, params = VARIANTS[label]
    cfg = config.load_config("optimize", ["model=none", f"rules={chosen}"])
    done = walk(from_proto(zoo.build(name, **params)), config.rule_set(config.plain(cfg)["rules"]), PRICES, 3)
    assert done or chosen == "taso"


def test_gain_where_an_edit_makes_nodes_constant() -> None:
    g = graph("""agraph (float[2,3] x, float[3,4] u) => (float[2,4] y) <float[2,3] w = {1,2,3,4,5,6}> {
      a = Sub(x, x) b = Add(a, w) c = Relu(b) d = Neg(c) y = MatMul(d, u)
    }""")
    i = next(i for i, n in g.nodes.items() if n.op == "Sub")
    match = rewrite(g, i, lambda b: b.constant(np.zeros((2, 3), np.float32)))
    after = g.replace(match.edit)
    assert [n.op for n in after.nodes.values() if not n.constant and not n.is_source] == ["MatMul"]
    assert taso().gain(g, match.edit) == pytest.approx(taso().cost_ms(g) - taso().cost_ms(after), rel=1e-12)


def test_gain_where_a_shared_value_gets_a_user_more() -> None:
    g = graph(CONV_RELU.format(more=", float[1,2,4,4] z", more2="k = Neg(x) z = Abs(k)"))
    h = next(i for i, n in g.nodes.items() if n.op == "Conv")
    match = rewrite(g, g.outputs[1].node, lambda b: b.node("Neg", [Value(h)]))
    assert taso().gain(g, match.edit) == pytest.approx(taso().cost_ms(g) - taso().cost_ms(g.replace(match.edit)), rel=1e-12)


# ---------------------------------------------------------------- sizes
def test_a_symbol_without_a_size_is_named() -> None:
    g = graph("agraph (float[batch,3] x) => (float[batch,3] y) { y = Neg(x) }")
    with pytest.raises(DimsError, match=r"dim 'batch' of input 'x'.*dims\.batch=8"):
        taso().cost_ms(g)
    assert taso(dims={"batch": 8}).cost_ms(g) == pytest.approx(ms(24, 48))
    assert taso(unbound=2).cost_ms(g) == pytest.approx(ms(6, 12))


def test_an_axis_without_a_name_goes_by_input_and_axis() -> None:
    g = graph("agraph (float[?,3] x) => (float[?,3] y) { y = Neg(x) }")
    with pytest.raises(DimsError, match="dim 'x:0'"):
        taso().cost_ms(g)
    assert taso(dims={"x:0": 8}).cost_ms(g) == pytest.approx(ms(24, 48))


def test_sizes_that_stay_unknown_are_reported_and_count_one() -> None:
    g = graph(
        "agraph (float[2,3] x) => (float[n] y) { i = NonZero(x) f = Cast<to=1>(i) k = Constant<value = int64[1] {-1}>() y = Reshape(f, k) }"
    )
    assert set(taso(unbound=1).unknown(g)) == {"i", "f", "y"}
    assert taso(unbound=1).cost_ms(g) == pytest.approx(ms(2, 6 + 4) + ms(0, 4 + 2), rel=0.2)
    assert taso().unknown(graph("agraph (float[2,3] x) => (float[2,3] y) { y = Neg(x) }")) == []


@pytest.mark.parametrize(
    ("key", "value"), [("peak_flops", 0), ("peak_flops", "abc"), ("bandwidth", -1), ("launch_ms", -1), ("saturation", None)]
)
def test_a_device_that_cannot_be_is_refused(key: str, value: Any) -> None:
    with pytest.raises(CostError, match=key):
        Device(**{"name": "d", "peak_flops": 1.0, "bandwidth": 1.0, "launch_ms": 0.0, key: value})


def test_small_zoo_graphs_have_a_cost_and_no_unknown_sizes() -> None:
    for name in ZOO:
        assert taso().cost_ms(small(name)) > 0 and taso().unknown(small(name)) == []
        assert len(MatchSet(small(name), rules())) >= 0
