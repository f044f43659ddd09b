"""The proof can fail: each kind of mistake that a rule could make is rejected, at every depth of real graphs."""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from cgorl.certificate.equivalence import compare
from cgorl.certificate.inputs import draws
from cgorl.certificate.rewrite import RewriteProof, prove_rewrite
from cgorl.ir.build import Builder
from cgorl.ir.forms import form
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.rules.match import matches
from cgorl.rules.rule import Match
from tests.texts import ZOO, graph, rewrite, rules, small

SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
REAL = (
    "densenet121.stripped", "inception_v3.stripped", "mobilenet_v2.stripped", "nasnet_mobile.stripped", "ppocr_cls",
    "repvgg_a0.stripped", "resnet50.stripped", "resnext50_32x4d.stripped", "squeezenet1_1.stripped", "vit_tiny.stripped",
)  # fmt: skip


def proof(g: Graph, match: Match) -> RewriteProof:
    return prove_rewrite(g, match, draws(g, {}, 2), np.random.default_rng(0))


def weighted(g: Graph) -> list[int]:
    """Nodes with a constant weight of two output channels or more."""
    return [
        i
        for i in g.order()
        if g.nodes[i].op in ("Conv", "MatMul", "Gemm")
        and g.node(g.nodes[i].inputs[1]).is_constant
        and g.node(g.nodes[i].inputs[1]).tensor.shape[_channels(g, i)] > 1
    ]


def _channels(g: Graph, i: int) -> int:
    """The axis of output channels of the weight of node `i`."""
    node = g.nodes[i]
    return 0 if node.op == "Conv" or node.attrs.get("transB") else -1


def swapped(g: Graph, i: int, swap: bool = True) -> Match:
    """Node `i` with two output channels of its weight in each other's place (or, unswapped, a plain copy)."""
    axis = _channels(g, i)
    node = g.nodes[i]
    weight = np.moveaxis(g.node(node.inputs[1]).tensor.array().copy(), axis, 0)
    if swap:
        other = next(k for k in range(1, len(weight)) if not np.array_equal(weight[0], weight[k]))
        weight[[0, other]] = weight[[other, 0]]
    kept = np.moveaxis(weight, 0, axis)

    def make(b: Builder) -> Value:
        return b.node(node.op, [node.inputs[0], b.constant(kept, g.type(node.inputs[1]).dtype), *node.inputs[2:]], form(g, i).attrs)

    return rewrite(g, i, make)


def rejects_swaps(g: Graph) -> None:
    found = weighted(g)
    places = [found[round(k * (len(found) - 1) / 4)] for k in range(5)]
    assert len(found) >= 5
    for i in places:
        assert not proof(g, swapped(g, i)).ok, f"swapped channels of '{g.label(Value(i))}' went through"
    assert proof(g, swapped(g, places[2], swap=False)).ok


@pytest.mark.parametrize("name", ZOO)
def test_two_swapped_channels_are_rejected_at_five_depths(name: str) -> None:
    rejects_swaps(small(name))


@pytest.mark.parametrize("name", REAL)
def test_two_swapped_channels_are_rejected_in_real_graphs(name: str) -> None:
    if not SHARED.is_dir():
        pytest.skip("no shared models here")
    rejects_swaps(from_proto(restored(name)))


def restored(name: str) -> onnx.ModelProto:
    path = SHARED / f"{name}.onnx"
    if not name.endswith(".stripped"):
        return onnx.load(path)
    spec = importlib.util.spec_from_file_location("restore", SHARED / "restore.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.restore(str(path))


# ---------------------------------------------------------------- mistakes of a rule, in graphs where they are visible
CONV = """agraph (float[2,3,5,5] x) => (float[2,4,5,5] y)
<float[4,3,3,3] w, float[4] b, float[4] s, float[4] t, float[4] m, float[4] v> {
  h = Conv <pads=[1,1,1,1]> (x, w, b)
  y = BatchNormalization <epsilon=0.001> (h, s, t, m, v)
}"""
FOLD = """
rule {name}: wrong
    BatchNormalization(Conv(x, w, [b], **c), s, t, m, v, epsilon=e, momentum=_)
 => Conv(x, w * outward(k, w), {bias}, **c)
 where k = s / sqrt({variance})
 if constant(w, b, s, t, m, v)
"""


def norm() -> Graph:
    rng = np.random.default_rng(3)
    given = {n: rng.uniform(0.5, 1.5, (4, 3, 3, 3) if n == "w" else 4).astype(np.float32) for n in "wbstmv"}
    text = CONV
    for n, a in given.items():
        head = f"float[{','.join(map(str, a.shape))}] {n}"
        text = text.replace(head, f"{head} = {{{', '.join(map(repr, a.reshape(-1).tolist()))}}}")
    return graph(text)


def by_rule(bias: str, variance: str) -> tuple[Graph, Match]:
    g = norm()
    rule = rules(FOLD.format(name="wrong", bias=bias, variance=variance)).rules[0]
    return g, next(m for i in g.nodes for m in matches(rule, g, i))


def sound() -> tuple[Graph, Match]:
    return by_rule("([b] - m) * k + t", "v + e")


def epsilon() -> tuple[Graph, Match]:
    return by_rule("([b] - m) * k + t", "v + e + e")


def bias() -> tuple[Graph, Match]:
    return by_rule("t - m * k", "v + e")


def trans_b() -> tuple[Graph, Match]:
    g = graph("agraph (float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> { y = Gemm <transB=1> (x, w) }")
    i = g.outputs[0].node
    return g, rewrite(g, i, lambda b: b.node("Gemm", list(g.nodes[i].inputs)))


def pads() -> tuple[Graph, Match]:
    g = norm()
    i = next(i for i, n in g.nodes.items() if n.op == "Conv")
    attrs = {**form(g, i).attrs, "pads": (0, 1, 2, 1)}
    return g, rewrite(g, i, lambda b: b.node("Conv", list(g.nodes[i].inputs), attrs))


def concat_axis() -> tuple[Graph, Match]:
    g = graph("agraph (float[2,2] a, float[2,2] b) => (float[4,2] y) { y = Concat <axis=0> (a, b) }")
    i = g.outputs[0].node
    return g, rewrite(g, i, lambda b: b.node("Reshape", [b.node("Concat", list(g.nodes[i].inputs), {"axis": 1})], {"shape": (4, 2)}))


def integers() -> tuple[Graph, Match]:
    """x * x => x holds for 0 and 1 only."""
    g = graph("agraph (int64[4] x) => (int64[4] y) { y = Mul(x, x) }")
    return g, rewrite(g, g.outputs[0].node, lambda b: b.node("Identity", [Value(g.inputs[0])]))


Wrong = Callable[[], tuple[Graph, Match]]
WRONG = [epsilon, bias, trans_b, pads, concat_axis]


@pytest.mark.parametrize("wrong", [*WRONG, integers])
def test_the_local_proof_rejects(wrong: Wrong) -> None:
    g, match = wrong()
    found = proof(g, match)
    assert not found.ok and "differs" in found.why


@pytest.mark.parametrize("wrong", WRONG)
def test_the_global_proof_rejects(wrong: Wrong) -> None:
    g, match = wrong()
    found = compare(g, g.replace(match.edit))
    assert not found and "'y' differs" in found.why


def test_both_accept_the_sound_rewrite() -> None:
    g, match = sound()
    assert proof(g, match).ok and compare(g, g.replace(match.edit))


def test_a_result_of_another_type_is_rejected() -> None:
    g = graph("agraph (float[2,3] x) => (float[2,3] y) { h = Neg(x) y = Relu(h) }")
    good = rewrite(g, g.outputs[0].node, lambda b: b.node("Neg", [Value(g.inputs[0])]))
    bad = rewrite(g, g.outputs[0].node, lambda b: b.node("Neg", [Value(g.inputs[0])]))
    node = good.edit.added[0]
    kind = replace(node.types[0], shape=(3, 2))
    edit = replace(good.edit, added=(replace(node, types=(kind,)),))
    assert "instead of" in proof(g, replace(bad, edit=edit)).why


def test_a_rewrite_that_cannot_be_run_is_not_proven() -> None:
    g = graph("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    match = rewrite(g, g.outputs[0].node, lambda b: b.node("Reshape", [Value(g.inputs[0])], {"shape": (2, 3)}))
    node = match.edit.added[-1]
    edit = replace(match.edit, added=(*match.edit.added[:-1], replace(node, op="NoSuchOperator")))
    assert "could not be re-run" in proof(g, replace(match, edit=edit)).why


def test_dims_that_nothing_explains_get_some_size() -> None:
    g = graph("agraph (float[2,3] x) => (float[n,m] y) { i = NonZero(x) f = Cast<to=1>(i) h = Neg(f) y = Neg(h) }")
    match = next(m for i in g.nodes for r in rules().rules for m in matches(r, g, i))
    assert proof(g, match).ok


@pytest.mark.parametrize("name", ["repvgg_a0", "resnet50"])
def test_a_spoilt_weight_early_in_a_deep_graph_shows_at_the_taps(name: str) -> None:
    g = small(name)
    i = weighted(g)[0]
    assert not compare(g, g.replace(swapped(g, i).edit), taps=True)
    assert compare(g, g.replace(swapped(g, i, swap=False).edit), taps=True)
