# ruff: noqa: E501  (models in onnx text form are read best as one line)
"""simplify: each kind of step takes what it may and nothing else; outputs stay bit for bit, the interface untouched."""

import subprocess
import sys
import time
from collections import Counter

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as oh

from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.ir.simplify import simplify
from cgorl.ir.to_proto import complete
from tests.bits import outputs, same
from tests.strategies import feeds, models

FAR = 2**63 - 1


def parse(text: str, opset: int = 17, ir: int = 8) -> onnx.ModelProto:
    """A model from onnx's text form without its header; `(float[N,3] x) => (float[N,3] y) { ... }`."""
    if not text.startswith("g ("):
        text = f"g {text}"
    return onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}, "other" : 1]> {text}')


def copy(model: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    return made


def load(model: onnx.ModelProto) -> Graph:
    return from_proto(copy(model))


def ops(graph: Graph) -> Counter[str]:
    return Counter(n.op for n in graph.nodes.values() if not n.is_source)


def checked(model: onnx.ModelProto, run: bool = True) -> Graph:
    """The simplified graph of a model, once everything that always holds has been seen to hold."""
    before = load(model)
    after = simplify(before).graph
    written = complete(after)
    onnx.checker.check_model(written)
    for part in ("input", "output"):
        old, new = getattr(model.graph, part), getattr(written.graph, part)
        weights = (
            {t.name for g in (model.graph, written.graph) for t in g.initializer} if model.ir_version < 4 and part == "input" else set()
        )
        assert [i for i in old if i.name not in weights] == [i for i in new if i.name not in weights]
    again = simplify(after)
    assert not again.steps and again.graph.key == after.key and complete(again.graph) == written, "simplify twice differs from once"
    if all(len({v for _, v in n.captures}) == len(n.captures) for n in after.nodes.values()):  # written, one name for one value
        assert simplify(load(written)).graph.key == after.key, "what was saved and loaded can be simplified further"
    assert complete(simplify(load(model)).graph).SerializeToString(deterministic=True) == written.SerializeToString(deterministic=True)
    known = {name: t for n in before.nodes.values() for name, t in zip(n.names, n.types, strict=False) if name and t is not None}
    for n in after.nodes.values():
        for name, kind in zip(n.names, n.types, strict=False):
            was = known.get(name)
            assert was is None or (kind is not None and kind.agrees(was) and kind.meet(was) == kind), f"{name}: {was} became {kind}"
    if run:
        given = feeds(model, np.random.default_rng(0))
        assert same(outputs(model, given), outputs(written, given))
    return after


def left(text: str, opset: int = 17, ir: int = 8, run: bool = True) -> Counter[str]:
    """Operators of a simplified model, counted."""
    return ops(checked(parse(text, opset, ir), run))


# ---------------------------------------------------------------- nodes that do nothing, and those that nearly do

X = "(float[2,3] x) => (float[{out}] y)"
NOTHING = {
    "cast": ("(float[2,3] x) => (float[2,3] z) { y = Cast<to=1>(x) z = Relu(y) }", 17),
    "cast-like": ("(float[2,3] x, float w) => (float[2,3] z) { y = CastLike(x, w) z = Relu(y) }", 17),
    "reshape": ("(float[2,3] x) => (float[2,3] z) <int64[2] s = {2,3}> { y = Reshape(x, s) z = Relu(y) }", 17),
    "reshape-rest": ("(float[2,3] x) => (float[2,3] z) <int64[2] s = {2,-1}> { y = Reshape(x, s) z = Relu(y) }", 17),
    "reshape-copy": ("(float[N,3] x) => (float[N,3] z) <int64[2] s = {0,-1}> { y = Reshape(x, s) z = Relu(y) }", 17),
    "reshape-symbol-rest": ("(float[N,3] x) => (float[N,3] z) <int64[2] s = {-1,3}> { y = Reshape(x, s) z = Relu(y) }", 17),
    "reshape-two-symbols": ("(float[N,M] x) => (float[N,M] z) <int64[2] s = {0,-1}> { y = Reshape(x, s) z = Relu(y) }", 17),
    "reshape-empty": ("(float[0,3] x) => (float[0,3] z) <int64[2] s = {0,3}> { y = Reshape<allowzero=1>(x, s) z = Relu(y) }", 17),
    "reshape-scalar": ("(float x) => (float z) <int64[0] s = {}> { y = Reshape(x, s) z = Relu(y) }", 17),
    "flatten": ("(float[N,3] x) => (float[N,3] z) { y = Flatten<axis=-1>(x) z = Relu(y) }", 17),
    "transpose": ("(float[2,3] x) => (float[2,3] z) { y = Transpose<perm=[0,1]>(x) z = Relu(y) }", 17),
    "transpose-vector": ("(float[3] x) => (float[3] z) { y = Transpose(x) z = Relu(y) }", 17),
    "pad": ("(float[2,3] x) => (float[2,3] z) <int64[4] p = {0,0,0,0}> { y = Pad(x, p) z = Relu(y) }", 17),
    "pad-attribute": ("(float[2,3] x) => (float[2,3] z) { y = Pad<pads=[0,0,0,0]>(x) z = Relu(y) }", 9),
    "pad-axes": ("(float[2,3] x) => (float[2,3] z) <int64[2] p={0,0}, int64[1] a={-1}> { y = Pad<mode=\"edge\">(x,p,,a) z = Relu(y) }", 18),
    "slice": ("(float[2,3] x) => (float[2,3] z) <int64[1] s={0}, int64[1] e={3}, int64[1] a={1}> { y = Slice(x,s,e,a) z = Relu(y) }", 17),
    "slice-negative": ("(float[2,3] x) => (float[2,3] z) <int64[1] s={-3}, int64[1] e={9}, int64[1] a={-1}> { y = Slice(x,s,e,a) z = Relu(y) }", 17),
    "slice-far": (f"(float[N,3] x) => (float[N,3] z) <int64[1] s={{0}}, int64[1] e={{{FAR}}}> {{ y = Slice(x,s,e) z = Relu(y) }}", 17),
    "slice-backwards-of-one": (
        f"(float[1,3] x) => (float[1,3] z) <int64[1] s={{-1}}, int64[1] e={{{-FAR}}}, int64[1] a={{0}}, int64[1] t={{-1}}>"
        " { y = Slice(x,s,e,a,t) z = Relu(y) }",
        17,
    ),
    "slice-attribute": ("(float[2,3] x) => (float[2,3] z) { y = Slice<starts=[0,0], ends=[2,3]>(x) z = Relu(y) }", 9),
    "expand": ("(float[N,3] x) => (float[N,3] z) <int64[2] s = {1,3}> { y = Expand(x, s) z = Relu(y) }", 17),
    "expand-short": ("(float[2,3] x) => (float[2,3] z) <int64[1] s = {3}> { y = Expand(x, s) z = Relu(y) }", 17),
    "tile": ("(float[N,3] x) => (float[N,3] z) <int64[2] s = {1,1}> { y = Tile(x, s) z = Relu(y) }", 17),
    "concat": ("(float[N,3] x) => (float[N,3] z) { y = Concat<axis=1>(x) z = Relu(y) }", 17),
    "split": ("(float[4,3] x) => (float[4,3] z) <int64[1] s = {4}> { y = Split(x, s) z = Relu(y) }", 17),
    "sum-of-one": ("(float[4,3] x) => (float[4,3] z) { y = Sum(x) z = Relu(y) }", 17),
    "times-one": ("(float[N,3] x) => (float[N,3] z) <float w = {1}> { y = Mul(w, x) z = Relu(y) }", 17),
    "times-ones": ("(float[N,3] x) => (float[N,3] z) <float[1,3] w = {1,1,1}> { y = Mul(x, w) z = Relu(y) }", 17),
    "by-one": ("(int64[3] x) => (int64[3] z) <int64 w = {1}> { y = Div(x, w) z = Neg(y) }", 17),
    "plus-integer-zero": ("(int64[3] x) => (int64[3] z) <int64[1] w = {0}> { y = Add(w, x) z = Neg(y) }", 17),
    "minus-zero": ("(float[3] x) => (float[3] z) <float[1] w = {0}> { y = Sub(x, w) z = Relu(y) }", 17),
    "plus-minus-zero": ("(float[3] x) => (float[3] z) <float[1] w = {-0.0}> { y = Add(x, w) z = Relu(y) }", 17),
    "dropout-7": ("(float[3] x) => (float[3] z) { y = Dropout<ratio=0.3>(x) z = Relu(y) }", 7),
    "dropout-10": ("(float[3] x) => (float[3] z) { y, mask = Dropout(x) z = Relu(y) }", 10),
    "dropout-12": ("(float[3] x) => (float[3] z) <float r = {0.3}, bool t = {0}> { y = Dropout(x, r, t) z = Relu(y) }", 13),
    "dropout-ratio-fed": ("(float[3] x, float r) => (float[3] z) { y = Dropout(x, r) z = Relu(y) }", 13),
    "dropout-22": ("(float[3] x) => (float[3] z) { y, mask = Dropout<seed=3>(x) z = Relu(y) }", 22),
    "identity-of-sequence": (
        "(float[3] x) => (float[3] z) <int64 k = {0}> { s = SequenceConstruct(x) t = Identity(s) y = SequenceAt(t, k) z = Relu(y) }",
        17,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOTHING)
def test_goes(case: str) -> None:
    found = left(*NOTHING[case])
    found.pop("SequenceConstruct", 0), found.pop("SequenceAt", 0)
    assert found in (Counter(Relu=1), Counter(Neg=1))


SOMETHING = {
    "cast": ("(float[2,3] x) => (double[2,3] y) { y = Cast<to=11>(x) }", 17),
    "cast-like": ("(float[2,3] x, double w) => (double[2,3] y) { y = CastLike(x, w) }", 17),
    "reshape": ("(float[2,3] x) => (float[3,2] y) <int64[2] s = {3,2}> { y = Reshape(x, s) }", 17),
    "reshape-rank": ("(float[2,3] x) => (float[1,2,3] y) <int64[3] s = {1,2,3}> { y = Reshape(x, s) }", 17),
    "reshape-symbol": ("(float[N,2] x) => (float[2,N] y) <int64[2] s = {2,-1}> { y = Reshape(x, s) }", 17),
    "reshape-symbol-to-number": ("(float[N,2] x) => (float[3,2] y) <int64[2] s = {3,2}> { y = Reshape(x, s) }", 17),
    "reshape-zero-allowed": ("(float[0,3] x) => (float[3,0] y) <int64[2] s = {3,0}> { y = Reshape<allowzero=1>(x, s) }", 17),
    "reshape-fed": ("(float[2,3] x, int64[2] d) => (float[K,L] y) { e = Abs(d) f = Mul(e, e) g = Sub(f, f) y = Reshape(x, g) }", 17),
    "flatten": ("(float[2,3] x) => (float[1,6] y) { y = Flatten<axis=0>(x) }", 17),
    "flatten-vector": ("(float[3] x) => (float[1,3] y) { y = Flatten<axis=0>(x) }", 17),
    "transpose-square": ("(float[3,3] x) => (float[3,3] y) { y = Transpose(x) }", 17),
    "pad-and-crop": ("(float[2,3] x) => (float[2,3] y) <int64[4] p = {0,1,0,-1}> { y = Pad(x, p) }", 17),
    "pad-axes": ("(float[2,3] x) => (float[2,4] y) <int64[2] p = {1,0}, int64[1] a = {-1}> { y = Pad(x, p, , a) }", 18),
    "slice-end": ("(float[2,3] x) => (float[2,2] y) <int64[1] s={0}, int64[1] e={-1}, int64[1] a={1}> { y = Slice(x,s,e,a) }", 17),
    "slice-step": ("(float[2,3] x) => (float[2,2] y) <int64[1] s={0}, int64[1] e={3}, int64[1] a={1}, int64[1] t={2}> { y = Slice(x,s,e,a,t) }", 17),
    "slice-backwards": (
        f"(float[2,3] x) => (float[2,3] y) <int64[1] s={{-1}}, int64[1] e={{{-FAR}}}, int64[1] a={{1}}, int64[1] t={{-1}}>"
        " { y = Slice(x,s,e,a,t) }",
        17,
    ),
    "slice-symbol": ("(float[N,3] x) => (float[K,3] y) <int64[1] s={0}, int64[1] e={2}> { y = Slice(x,s,e) }", 17),
    "slice-symbol-from-one": (f"(float[N,3] x) => (float[K,3] y) <int64[1] s={{1}}, int64[1] e={{{FAR}}}> {{ y = Slice(x,s,e) }}", 17),
    "expand": ("(float[1,3] x) => (float[2,3] y) <int64[2] s = {2,3}> { y = Expand(x, s) }", 17),
    "expand-rank": ("(float[2,3] x) => (float[1,2,3] y) <int64[3] s = {1,1,1}> { y = Expand(x, s) }", 17),
    "expand-symbol": ("(float[N,3] x) => (float[3,3] y) <int64[2] s = {3,3}> { y = Expand(x, s) }", 17),
    "tile": ("(float[2,3] x) => (float[2,6] y) <int64[2] s = {1,2}> { y = Tile(x, s) }", 17),
    "concat": ("(float[2,3] x) => (float[2,6] y) { y = Concat<axis=1>(x, x) }", 17),
    "split": ("(float[4,3] x) => (float[2,3] y, float[2,3] z) { y, z = Split(x) }", 13),
    "times-two": ("(float[3] x) => (float[3] y) <float w = {2}> { y = Mul(x, w) }", 17),
    "times-ones-widening": ("(float[1,3] x) => (float[2,3] y) <float[2,1] w = {1,1}> { y = Mul(x, w) }", 17),
    "times-one-of-rank": ("(float[3] x) => (float[1,3] y) <float[1,1] w = {1}> { y = Mul(x, w) }", 17),
    "times-ones-for-symbol": ("(float[N] x) => (float[3] y) <float[3] w = {1,1,1}> { y = Mul(x, w) }", 17),
    "one-by": ("(float[3] x) => (float[3] y) <float w = {1}> { y = Div(w, x) }", 17),
    "zero-minus": ("(int64[3] x) => (int64[3] y) <int64 w = {0}> { y = Sub(w, x) }", 17),
    "plus-zero": ("(float[3] x) => (float[3] y) <float[1] w = {0}> { y = Add(x, w) }", 17),
    "minus-minus-zero": ("(float[3] x) => (float[3] y) <float[1] w = {-0.0}> { y = Sub(x, w) }", 17),
    "plus-zero-input": ("(float[3] x, float z) => (float[3] y) { y = Add(x, z) }", 17),
    "max-of-two": ("(float[3] x, float[3] w) => (float[3] y) { y = Max(x, w) }", 17),
    "dropout-mask": ("(float[3] x) => (float[3] y, bool[3] m) { y, m = Dropout(x) }", 13),
}  # fmt: skip


@pytest.mark.parametrize("case", SOMETHING)
def test_stays(case: str) -> None:
    text, opset = SOMETHING[case]
    model = parse(text, opset)
    assert ops(checked(model)) == Counter(n.op_type for n in model.graph.node)


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("(float[3] x) => (float[3] y) { y = Dropout<ratio=0.5>(x) }", 6),  # is_test=0 is the default
        ("(float[3] x) => (float[3] y) <float r = {0.5}, bool t = {1}> { y = Dropout(x, r, t) }", 13),
        ("(float[3] x, bool t) => (float[3] y) <float r = {0.5}> { y = Dropout(x, r, t) }", 13),
    ],
)
def test_dropout_of_training_stays(text: str, opset: int) -> None:
    assert left(text, opset, run=False) == Counter(Dropout=1)


def test_negative_zero_survives() -> None:
    model = parse("(float[2] x) => (float[2] z) <float[1] w = {0}> { y = Add(x, w) z = Reciprocal(y) }")
    given = {"x": np.array([-0.0, 0.0], np.float32)}
    assert same(outputs(model, given), outputs(complete(checked(model)), given))


def test_max_of_zeros_is_not_commuted() -> None:
    assert left("(float[2] a, float[2] b) => (float[2] y, float[2] z) { y = Max(a, b) z = Max(b, a) }") == Counter(Max=2)


# ---------------------------------------------------------------- Identity, outputs, dead code


def test_identity_of_a_weight_is_the_weight() -> None:
    after = checked(parse("(float[3] x) => (float[3] y) <float[3] w = {1,2,3}> { v = Identity(w) a = Add(x, w) y = Mul(a, v) }"))
    assert ops(after) == Counter(Add=1, Mul=1) and sum(n.is_constant for n in after.nodes.values()) == 1


@pytest.mark.parametrize("ir", [3, 4, 8])
def test_an_output_may_be_an_input_a_weight_or_another_output(ir: int) -> None:
    text = "(float[3] x{w}) => (float[3] a, float[3] b, float[3] c, float[3] d) <float[3] w = {{1,2,3}}>"
    text += "{{ a = Identity(x) b = Identity(w) r = Relu(x) c = Identity(r) d = Identity(c) }}"
    after = checked(parse(text.format(w=", float[3] w" if ir < 4 else ""), ir=ir))
    assert ops(after) == Counter(Relu=1) and after.outputs[0] == Value(after.inputs[0]) and after.outputs[2] == after.outputs[3]


@pytest.mark.parametrize("ir", [3, 8])
def test_an_output_may_be_computed_ahead(ir: int) -> None:
    listed = ", float[3] w" if ir < 4 else ""
    assert not left(f"(float[3] x{listed}) => (float[3] y, float[3] z) <float[3] w = {{1,2,3}}> {{ y = Relu(w) z = Add(w, w) }}", ir=ir)


def test_a_weight_that_is_an_output_keeps_its_place() -> None:
    after = checked(parse("(float[2] x) => (float[2] y, float[2] v) <float[2] w = {1,2}, float[2] v = {1,2}> { y = Add(x, w) }"))
    assert ops(after) == Counter(Add=1) and after.outputs[1] != Value(-1)


def test_dead_nodes_and_weights_go_but_no_input() -> None:
    after = checked(parse("(float[2] x, float[2] u) => (float[2] y) <float[2] w = {1,2}> { d = Add(u, w) e = Relu(d) y = Neg(x) }"))
    assert ops(after) == Counter(Neg=1) and len(after.inputs) == 2 and len(after.nodes) == 3


def test_a_default_that_a_caller_may_override_is_no_constant() -> None:
    model = parse("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {0,0}> { v = Relu(w) y = Sub(x, v) }")
    assert ops(checked(model)) == Counter(Relu=1, Sub=1)


def test_a_model_with_training_info_is_left_alone() -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Identity(x) }")
    model.training_info.add()
    assert ops(simplify(load(model)).graph) == Counter(Identity=1)


# ---------------------------------------------------------------- equal nodes


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("a = Relu(x) b = Relu(x)", 1),
        ("a = Add(x, u) b = Add(u, x)", 1),
        ("a = Sub(x, u) b = Sub(u, x)", 2),
        ("a = LeakyRelu<alpha=0.5>(x) b = LeakyRelu<alpha=0.5>(x)", 1),
        ("a = LeakyRelu<alpha=0.01>(x) b = LeakyRelu(x)", 1),
        ("a = LeakyRelu<alpha=0.5>(x) b = LeakyRelu(x)", 2),
        ("a, i = TopK(x, one) b, j = TopK(x, one)", 1),
        ("a = Clip(x, low) b = Clip(x, , low)", 2),
        ("a, m = Dropout(x, low, yes) b, n = Dropout(x, low, yes)", 2),
        ("a = RandomNormalLike<seed=1.0>(x) b = RandomNormalLike<seed=1.0>(x)", 2),
        ("a = RandomUniform<shape=[2]>() b = RandomUniform<shape=[2]>()", 2),
        ("a = Bernoulli(p) b = Bernoulli(p)", 2),
        ("a = other.Thing(x) b = other.Thing(x)", 2),
        ("a = If(c) <then_branch = t () => (float[2] r) { r = Relu(x) }, else_branch = e () => (float[2] s) { s = Neg(x) }>"
         " b = If(c) <then_branch = t () => (float[2] r) { r = Relu(x) }, else_branch = e () => (float[2] s) { s = Neg(x) }>", 2),
    ],
)  # fmt: skip
def test_sharing(body: str, count: int) -> None:
    text = f"(float[2] x, float[2] u, float[2] p, bool c) => (float[K] a, float[K] b) <int64[1] one={{1}}, float low={{0}}, bool yes={{1}}> {{ {body} }}"
    assert sum(left(text, run=False).values()) == count


def test_a_shared_node_knows_what_either_knew() -> None:
    model = parse(
        "(float[N,3] x, float[3] u, float[K,L] v) => (float[2] r) { y = Mul(x, u) z = Mul(u, x) w = Add(y, z) s = Shape(w) r = Cast<to=1>(s) }"
    )
    for name, dims in (("y", ["N", 3]), ("z", [4, 3])):
        model.graph.value_info.append(oh.make_tensor_value_info(name, T.FLOAT, dims))
    after = simplify(load(model)).graph
    assert ops(after) == Counter() and after.node(after.outputs[0]).tensor.array().tolist() == [4, 3]


def test_nodes_of_contradicting_types_are_not_shared() -> None:
    model = parse("(float[N] x) => (float[K] y, float[L] z) { y = Relu(x) z = Relu(x) }")
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 2
    model.graph.output[1].type.tensor_type.shape.dim[0].dim_value = 3
    assert ops(simplify(load(model)).graph) == Counter(Relu=2)


def test_chains_of_equal_nodes_are_shared_in_one_go() -> None:
    body = " ".join(f"a{k} = Relu(a{k - 1}) b{k} = Relu(b{k - 1})" for k in range(1, 9))
    assert left(f"(float[2] a0) => (float[2] y) {{ b0 = Identity(a0) {body} y = Add(a8, b8) }}") == Counter(Relu=8, Add=1)


# ---------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("y = Shape(x)", [2, 3, 4]),
        ("y = Shape<start=1>(x)", [3, 4]),
        ("y = Shape<start=-2,end=-1>(x)", [3]),
        ("y = Shape<start=2,end=1>(x)", []),
        ("y = Size(x)", 24),
        ("s = Shape(x) y = Gather(s, one)", 3),
        ("s = Shape(x) y = Gather(s, neg)", [4]),
        ("s = Shape(x) y = Slice(s, neg, first)", []),
        ("s = Shape(x) y = Slice(s, neg, far, zero, neg)", [4, 3, 2]),
        ("s = Shape(x) g = Gather(s, one) y = Unsqueeze(g, pair)", [[3]]),
        ("s = Shape(x) g = Gather(s, neg) y = Squeeze(g)", 4),
        ("s = Shape(x) g = Gather(s, one) u = Unsqueeze(g, zero) y = Concat<axis=-1>(u, s)", [3, 2, 3, 4]),
        ("s = Shape(x) a = Slice(s, zero, neg) p = ReduceProd(a) y = Div(p, one)", [6]),
        ("s = Shape(x) y = Range(one, s2, one) s2 = Gather(s, one)", [1, 2]),
        ("s = Shape(x) m = Mul(s, s) d = Sub(first, m) y = Div(d, neg)", [4, 9, 16]),
        ("s = Shape(x) n = Sub(first, s) two = Add(one, one) y = Div(n, two)", [-1, -1, -2]),
        ("s = Shape(x) z = ConstantOfShape(s) r = Shape(z) y = Add(r, r)", [4, 6, 8]),
    ],
)
def test_known_shapes_become_constants(body: str, value: object) -> None:
    weights = (
        f"int64 one={{1}}, int64[1] zero={{0}}, int64[1] neg={{-1}}, int64[1] first={{0}}, int64[2] pair={{0,1}}, int64[1] far={{{-FAR}}}"
    )
    rank = np.ndim(value)  # type: ignore[arg-type]
    dims = f"[{','.join('ABC'[:rank])}]" if rank else ""
    after = checked(parse(f"(float[2,3,4] x) => (int64{dims} y) <{weights}> {{ {body} }}"))
    assert not ops(after) and after.node(after.outputs[0]).tensor.array().tolist() == value


def test_what_hangs_on_a_dynamic_batch_stays_and_the_rest_goes() -> None:
    text = """(float[N,3,4] x) => (float[K,12] y) <int64 i0={0}, int64 i1={1}, int64 i2={2}, int64[1] axis={0}> {
        s = Shape(x) n = Gather(s, i0) c = Gather(s, i1) h = Gather(s, i2) f = Mul(c, h)
        nu = Unsqueeze(n, axis) fu = Unsqueeze(f, axis) t = Concat<axis=0>(nu, fu) y = Reshape(x, t) }"""
    after = checked(parse(text))
    assert ops(after) == Counter(Reshape=1)
    assert after.node(after.nodes[after.outputs[0].node].inputs[1]).tensor.array().tolist() == [0, 12]  # type: ignore[arg-type]


def test_arithmetic_on_shapes_beyond_64_bits_is_left_to_the_runtime() -> None:
    after = checked(parse(f"(float[2,3] x) => (int64[2] y) <int64 far={{{FAR}}}> {{ s = Shape(x) y = Mul(s, far) }}"))
    assert after.node(after.outputs[0]).tensor.array().tolist() == [-2, FAR - 2]


def test_a_chain_of_shapes_each_computed_from_the_last_takes_linear_time() -> None:
    """Inlined, so that the loader's inference knows nothing of it."""
    swap = "s{k} = Shape(x{k}) a{k} = Gather(s{k}, i0) b{k} = Gather(s{k}, i1) m{k} = Mul(a{k}, b{k}) q{k} = Div(m{k}, a{k})"
    swap += " u{k} = Unsqueeze(q{k}, axis) v{k} = Unsqueeze(a{k}, axis) t{k} = Concat<axis=0>(u{k}, v{k}) y{k} = Reshape(x{k}, t{k}) x{n} = Neg(y{k})"
    body = "x0 = Relu(x) " + " ".join(swap.format(k=k, n=k + 1) for k in range(300))
    text = f"""(float[2,3] x) => (float[K,L] y) <int64 i0={{0}}, int64 i1={{1}}, int64[1] axis={{0}}, bool yes={{1}}> {{
        y = If(yes) <then_branch = t () => (float[K,L] x300) {{ {body} }}, else_branch = e () => (float[K,L] z) {{ z = Abs(x) }}> }}"""
    graph = load(parse(text))
    start = time.process_time()
    assert ops(simplify(graph).graph) == Counter(Relu=1, Neg=300, Reshape=300)
    assert time.process_time() - start < 15


def test_a_symbol_is_no_number() -> None:
    assert left("(float[N,3] x) => (int64[2] y) { y = Shape(x) }") == Counter(Shape=1)
    assert left("(float[N,3] x) => (int64 y) { y = Size(x) }") == Counter(Size=1)


@pytest.mark.parametrize("shape", ["", "[1]"])
def test_unknown_ranks_are_left_alone(shape: str) -> None:
    model = parse(
        f"(float[2] x) => (float[2] y) <int64{shape} k = {{0}}> {{ s = Shape(x) r = Reshape(x, s) t = Transpose(r) g = Relu(t) y = Add(g, g) }}"
    )
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    after = simplify(load(model)).graph
    assert ops(after)["Transpose"] == 1
    given = {"x": np.ones((2, 3), np.float32)}
    assert same(outputs(model, given), outputs(complete(after), given))


def test_an_operand_of_unknown_type_is_not_taken_for_an_absent_one() -> None:
    model = parse("(float[2] x) => (float[K] y) { a = other.Thing(x) c = Concat<axis=0>(a, x) s = Shape(c) y = Cast<to=1>(s) }")
    assert ops(simplify(load(model)).graph)["Shape"] == 1


def test_a_vector_of_one_where_range_wants_a_scalar() -> None:
    """onnxruntime runs it as long as the vector is no constant, and does not load it when it is (affine_grid_2d_expanded)."""
    text = """(float[N] x) => (int64[K] y) <bool c={1}, int64 a={0}, int64[1] b={4}, int64 d={1}> {
        n = If(c) <then_branch = t () => (int64[1] r) { r = Identity(b) }, else_branch = e () => (int64[1] s) { s = Shape(x) }>
        m = Shape(x) q = Squeeze(m) o = Div(q, q) y = Range(a, n, o) }"""
    assert left(text)["Range"] == 1


# ---------------------------------------------------------------- If

IF = "(float[2] x, bool p) => (float[2] y) <bool yes = {{1}}, bool[1] no = {{0}}, float[2] w = {{1,2}}> {{ {body} }}"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = If(yes) <then_branch = t () => (float[2] r) { r = Relu(x) }, else_branch = e () => (float[2] r) { r = Neg(x) }>", "Relu"),
        ("y = If(no) <then_branch = t () => (float[2] r) { r = Relu(x) }, else_branch = e () => (float[2] r) { r = Neg(x) }>", "Neg"),
        ("y = If(p) <then_branch = t () => (float[2] r) { r = Relu(x) }, else_branch = e () => (float[2] r) { r = Neg(x) }>", "If"),
        ("c = Not(no) d = Squeeze(c) y = If(d) <then_branch = t () => (float[2] x) { }, else_branch = e () => (float[2] r) { r = Neg(x) }>", ""),
        ("y = If(yes) <then_branch = t () => (float[2] w) { }, else_branch = e () => (float[2] r) { r = Neg(x) }>", ""),
        ("y = If(yes) <then_branch = t () => (float[2] v) <float[2] v = {3,4}> { }, else_branch = e () => (float[2] r) { r = Neg(x) }>", ""),
        ("y, z = If(yes) <then_branch = t () => (float[2] r, float[2] s) { r = Relu(x) s = Identity(r) },"
         " else_branch = e () => (float[2] r, float[2] s) { r = Neg(x) s = Abs(x) }>", "Relu"),
        ("q = Abs(x) y = If(yes) <then_branch = t () => (float[2] r) {"
         " r = If(p) <then_branch = u () => (float[2] s) { s = Add(q, w) }, else_branch = v () => (float[2] s) { s = Sub(x, w) }> },"
         " else_branch = e () => (float[2] r) { r = Neg(x) }>", "Abs If"),
        ("y = If(yes) <then_branch = t () => (float[2] r) {"
         " r = If(no) <then_branch = u () => (float[2] s) { s = Add(x, w) }, else_branch = v () => (float[2] s) { s = Sub(x, w) }> },"
         " else_branch = e () => (float[2] r) { r = Neg(x) }>", "Sub"),
    ],
)  # fmt: skip
def test_if_of_a_known_condition_becomes_its_branch(body: str, expected: str) -> None:
    # the checker wants a body's outputs to be its own, onnxruntime takes those from outside
    model = parse(IF.format(body=body))
    after = simplify(load(model)).graph
    assert " ".join(sorted(ops(after).elements())) == expected
    assert not simplify(after).steps
    given = feeds(model, np.random.default_rng(0))
    try:
        was = outputs(model, given)
    except Exception:
        return
    assert same(was, outputs(complete(after), given))


RANKED = """(float[N,4,L] x, float[1,N,3] h, float[1,N,3] c) => (float[K,D,N,3] y)
    <float[1,12,4] w, float[1,12,3] r, int64[1] last = {{-1}}, int64[1] first = {{0}}, int64 two = {{2}}, int64 one = {{1}}> {{
    s = Shape(x) z = Gather(s, two) p = Equal(z, one)
    a = If(p) <then_branch = t () => (float[N,4] q) {{ q = Squeeze(x, {squeezed}) }}, else_branch = e () => (float[N,4,L] i) {{ i = Identity(x) }}>
    b = Size(ss) ss = Shape(a) ranked = Equal(b, two) unranked = Not(ranked)
    v = If(unranked) <then_branch = u () => (float[A,B,C] g) {{ g = Unsqueeze(a, first) }}, else_branch = f () => (float[A,B] j) {{ j = Identity(a) }}>
    seq = {feed} y, hh, cc = LSTM<hidden_size=3>(seq, w, r, , , h, c) }}"""


def test_an_if_on_a_rank_becomes_the_only_branch_that_what_follows_can_take() -> None:
    text = RANKED.format(squeezed="last", feed="Unsqueeze(v, first)").replace("b = Size(ss) ss = Shape(a)", "ss = Shape(a) b = Size(ss)")
    text = text.replace("float[1,12,4] w,", "float[1,12,4] w = {" + ",".join(["0.1"] * 48) + "},")
    text = text.replace("float[1,12,3] r,", "float[1,12,3] r = {" + ",".join(["0.2"] * 36) + "},")
    model = parse(text)
    after = simplify(load(model)).graph
    assert ops(after) == Counter(Squeeze=1, Unsqueeze=1, LSTM=1)
    rng = np.random.default_rng(0)
    given = {"x": rng.random((2, 4, 1), np.float32), "h": rng.random((1, 2, 3), np.float32), "c": rng.random((1, 2, 3), np.float32)}
    assert same(outputs(model, given), outputs(complete(after), given))


def test_an_if_on_a_rank_stays_where_what_follows_takes_either() -> None:
    body = "a = If(p) <then_branch = t () => (float[2] q) { q = Identity(x) }, else_branch = e () => (float[1,2] r) { r = Unsqueeze(x, z) }> y = Relu(a)"
    text = f"(float[2] x, bool p) => (float[N,2] y) <int64[1] z = {{0}}> {{ {body} }}"
    assert ops(simplify(load(parse(text))).graph) == Counter(If=1, Relu=1)


def test_an_expand_to_the_own_shape_goes_and_reshapes_copy_symbols() -> None:
    text = """(float[N,4,6] x) => (float[A,B,C] y) <int64[1] i0={0}, int64[1] e={1}, int64[2] w={4,6}, int64[2] v={2,12}> {
        s = Shape(x) c = Cast<to=6>(s) n = Slice(c, i0, e) f = Cast<to=7>(n) t = Concat<axis=0>(f, w) u = Concat<axis=0>(f, v)
        g = Expand(x, t) y = Reshape(g, u) }"""
    after = checked(parse(text))
    assert ops(after) == Counter(Reshape=1)
    assert str(after.type(after.outputs[0])) == "float[N,2,12]"


def test_a_number_times_zero_is_zero() -> None:
    assert not left("(int64 n) => (int64 y) <int64 z={0}> { y = Mul(n, z) }")
    assert left("(float n) => (float y) <float z={0}> { y = Mul(n, z) }") == Counter(Mul=1)


def branches(then: str, other: str = "r = Neg(x)") -> str:
    return f"<then_branch = t () => (float[2] r) {{ {then} }}, else_branch = e () => (float[2] r) {{ {other} }}>"


def test_names_of_an_inlined_branch_clash_with_nothing() -> None:
    """`s` is defined in both branches taken, in a body that stays and in one inside a branch; the results keep their names."""
    inner = branches("s = Relu(x) r = Add(s, a)", "s = Exp(x) r = Mul(s, a)")
    body = f"""a = If(yes) {branches("s = Abs(x) r = Neg(s)")} b = If(no) {branches("r = Neg(x)", "s = Sign(x) r = Sub(s, a)")}
        c = If(p) {branches("s = Relu(x) r = Add(s, b)", "s = Exp(x) r = Mul(s, b)")}
        d = If(yes) {branches(f"v = If(p) {inner} r = Sub(v, c)")} y = Add(d, c)"""
    model = parse(IF.format(body=body).replace(") =>", ") =>", 1))
    after = checked(model)
    assert ops(after) == Counter(If=2, Abs=1, Neg=1, Sign=1, Sub=2, Add=1)
    names = [n.names[0] for n in after.nodes.values()]
    assert {"a", "b", "c", "d", "y"} <= set(names)


def test_a_branch_that_shadows_what_it_reads_stays() -> None:
    model = parse(IF.format(body=f"s = Abs(x) y = If(yes) {branches('r = Neg(s)', 's = Exp(x) r = Relu(s)')}"))
    assert ops(simplify(load(model)).graph) == Counter(Abs=1, If=1)


def test_if_in_if_in_loop_captures_folded_values() -> None:
    text = """(float[2] x, bool p) => (float[2] y) <int64 n={3}, bool yes={1}, float[2] w={1,2}> {
        k = Add(w, w) v = Identity(x) u = Cast<to=1>(v)
        y = Loop(n, yes, u) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            d = Identity(c)
            q = If(p) <then_branch = f () => (float[2] r) {
                    r = If(c) <then_branch = g () => (float[2] o) { o = Add(s, k) }, else_branch = h () => (float[2] o) { o = Sub(s, v) }> },
                else_branch = e () => (float[2] r) { r = Mul(v, k) }>
            t = Add(q, u) }> }"""
    after = checked(parse(text))
    assert ops(after) == Counter(Loop=1)
    for chosen in (True, False):
        given = {"x": np.array([1, 2], np.float32), "p": np.array(chosen)}
        assert same(outputs(parse(text), given), outputs(complete(after), given))


def test_ifs_twenty_deep_are_all_inlined() -> None:
    body = "r0 = Neg(x)"
    for k in range(1, 21):
        body = f"r{k} = If(yes) <then_branch = t{k} () => (float[2] r{k - 1}) {{ {body} }}, else_branch = e () => (float[2] z) {{ z = Abs(x) }}>"
    assert left(IF.format(body=body + " y = Relu(r20)")) == Counter(Neg=1, Relu=1)


# ---------------------------------------------------------------- what is not what it seems


def test_a_function_with_the_name_of_an_operator_is_none() -> None:
    text = """<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Identity(x) b = Identity(a) c = local.Relu(b) d = local.Relu(b) e = Add(c, d) y = Add(e, w) }
        <domain: "local", opset_import: ["" : 17]> Relu (i) => (o) { o = Neg(i) }
        <domain: "", opset_import: ["" : 17]> Identity (i) => (o) { o = Exp(i) }"""
    after = simplify(load(onnx.parser.parse_model(text))).graph
    assert ops(after) == Counter(Identity=2, Relu=2, Add=2)


def test_an_operator_of_another_domain_is_none() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = other.Identity(x) b = other.Relu(w) c = other.Relu(w) d = Add(b, c) y = Add(a, d) }"
    assert left(text, run=False) == Counter(Identity=1, Relu=2, Add=2)


def test_both_spellings_of_the_default_domain_are_one() -> None:
    model = parse("(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }")
    model.graph.node[0].domain = "ai.onnx"
    assert ops(simplify(load(model)).graph) == Counter(Relu=1, Add=1)


def test_a_long_chain_takes_no_time() -> None:
    nodes = [oh.make_node("Identity", [f"v{k}"], [f"v{k + 1}"]) for k in range(5000)] + [oh.make_node("Relu", ["v5000"], ["y"])]
    info = [oh.make_tensor_value_info(n, T.FLOAT, [2]) for n in ("v0", "y")]
    model = oh.make_model(oh.make_graph(nodes, "chain", info[:1], info[1:]), opset_imports=[oh.make_opsetid("", 17)])
    graph = load(model)
    start = time.process_time()
    assert ops(simplify(graph).graph) == Counter(Relu=1)
    assert time.process_time() - start < 15


def test_it_is_the_same_in_every_process() -> None:
    program = """
import sys, onnx, hashlib
from cgorl.ir.from_proto import from_proto
from cgorl.ir.simplify import simplify
from cgorl.ir.to_proto import complete
model = onnx.ModelProto.FromString(sys.stdin.buffer.read())
print(hashlib.sha256(complete(simplify(from_proto(model)).graph).SerializeToString(deterministic=True)).hexdigest())"""
    body = f"a = If(yes) {branches('s = Abs(x) r = Neg(s)')} b = Relu(w) c = Add(b, a) d = Add(a, b) y = Mul(c, d)"
    model = parse(IF.format(body=body)).SerializeToString()
    found = {
        subprocess.run([sys.executable, "-c", program], input=model, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# ---------------------------------------------------------------- properties


@given(models(max_nodes=12), st.integers(0, 2**32 - 1))
@settings(max_examples=250)
def test_drawn_models_give_the_same_bits(model: onnx.ModelProto, seed: int) -> None:
    after = checked(model, run=False)
    given = feeds(model, np.random.default_rng(seed))
    assert same(outputs(model, given), outputs(complete(after), given))
