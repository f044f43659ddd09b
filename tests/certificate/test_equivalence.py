"""`compare`: what counts as the same, in every type, with ties, overflow, chance, and where nothing can be run."""

import numpy as np
import onnx
import pytest
from onnx import helper as oh
from onnx import numpy_helper as nh

from cgorl.certificate import pair
from cgorl.certificate.equivalence import compare, interface_difference
from cgorl.certificate.inputs import chance, draws, feeds
from cgorl.certificate.pair import judge
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.ir.onnx_io import ModelError
from tests.texts import graph, model, rewrite, small

NEG = "agraph (float[2,3] x) => (float[2,3] y) { y = Neg(x) }"


# ---------------------------------------------------------------- interface
@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("agraph (float[2,3] z) => (float[2,3] y) { y = Neg(z) }", "inputs are ['z'] instead of ['x']"),
        ("agraph (float[2,3] x) => (float[2,3] z) { z = Neg(x) }", "outputs are ['z'] instead of ['y']"),
        ("agraph (float[2,4] x) => (float[2,4] y) { y = Neg(x) }", "input 'x' has another type"),
        ("agraph (float[2,3] x) => (float[2,n] y) { y = Neg(x) }", "output 'y' has another type"),
        ("agraph (float[2,3] x, float[1] u) => (float[2,3] y) { y = Neg(x) }", "inputs are ['x', 'u'] instead of ['x']"),
        ("agraph (float[2,3] x) => (float[2,3] y, float[2,3] x2) { y = Neg(x) x2 = Neg(y) }", "outputs are ['y', 'x2'] instead of ['y']"),
    ],
)
def test_another_interface_is_a_difference(other: str, why: str) -> None:
    assert compare(graph(NEG), graph(other)).why == why


def test_a_weight_listed_as_an_input_before_ir_4_is_no_part_of_the_interface() -> None:
    weight = nh.from_array(np.ones(3, np.float32), "w")
    listed = model("agraph (float[3] x, float[3] w) => (float[3] y) { y = Mul(x, w) }", ir=3)
    listed.graph.initializer.append(weight)
    gone = model("agraph (float[3] x) => (float[3] y) { y = Identity(x) }", ir=3)
    assert interface_difference(from_proto(listed), from_proto(gone)) == ""


def defaulted(body: str, value: float = 2.0) -> Graph:
    made = model(f"agraph (float[3] x, float[3] w) => (float[3] y) {{ {body} }}")
    made.graph.initializer.append(nh.from_array(np.full(3, value, np.float32), "w"))
    return from_proto(made)


def test_defaults_of_inputs_are_overridden_in_some_runs() -> None:
    assert compare(defaulted("y = Mul(x, w)"), defaulted("y = Mul(w, x)"))
    folded = "y = Add(x, x)"  # right only for the default 2
    found = compare(defaulted("y = Mul(x, w)"), defaulted(folded))
    assert "differs" in found.why and found.runs == 2
    assert "differs" in compare(defaulted("y = Mul(x, w)"), defaulted("y = Mul(x, w)", 3.0)).why


# ---------------------------------------------------------------- tolerance
@pytest.mark.parametrize(("dtype", "near", "far"), [("float16", 1e-3, 0.1), ("float32", 1e-6, 1e-3), ("float64", 1e-12, 1e-7)])
def test_tolerance_goes_with_the_type(dtype: str, near: float, far: float) -> None:
    x = np.linspace(-1, 1, 64).astype(dtype)
    truth = x.astype(np.float64)
    assert judge("y", x, x + x.dtype.type(near), lambda: truth)[1] == ""
    assert "differs" in judge("y", x, x + x.dtype.type(far), lambda: truth)[1]


def test_more_than_the_tolerance_passes_where_the_original_is_as_far_from_float64() -> None:
    truth = np.linspace(0.1, 1, 10)
    x = (truth + 1e-3).astype(np.float32)
    assert judge("y", x, (truth - 2e-3).astype(np.float32), lambda: truth)[1] == ""
    assert "from float64 by" in judge("y", x, (truth - 1e-1).astype(np.float32), lambda: truth)[1]
    assert "could not be asked" in judge("y", x, (truth - 1e-1).astype(np.float32), lambda: None)[1]


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("x", "y", "truth", "ok"),
    [
        ([1, NAN, INF], [1, NAN, INF], [1, NAN, INF], True),
        ([1, NAN, INF], [1, NAN, -INF], [1, NAN, INF], False),
        ([1, NAN, 2], [1, 0, 2], [1, NAN, 2], False),
        ([1, 2, 3], [1, NAN, 3], [1, 2, 3], False),
        ([1, INF, 3], [1, 2, 3], [1, 2, 3], True),  # the original overflows, the other does not
        ([1, INF, 3], [1, INF, NAN], [1, 2, 3], False),
        ([1, INF, 3], [NAN, NAN, NAN], [1, 2, 3], False),
        ([1, INF, 3], [1, 9, 3], [1, 2, 3], False),
        ([0, 0, 0], [0, 0, 0], [0, 0, 0], True),
        ([0, 0, 0], [0, 1, 0], [0, 0, 0], False),
    ],
)
def test_numbers_that_are_none(x: list[float], y: list[float], truth: list[float], ok: bool) -> None:
    _, why, _ = judge("y", np.array(x, np.float32), np.array(y, np.float32), lambda: np.array(truth))
    assert (why == "") is ok, why


@pytest.mark.parametrize("dtype", ["float", "float16", "bfloat16", "double"])
def test_models_of_each_float_type(dtype: str) -> None:
    text = f"agraph ({dtype}[2,3] x, {dtype}[3,2] w) => ({dtype}[2,2] y) {{ y = MatMul(x, w) }}"
    g = graph(text)
    i = g.outputs[0].node
    left, right = g.nodes[i].inputs
    assert left is not None and right is not None

    def by_transpose(b):
        turned = [b.node("Transpose", [v], {"perm": (1, 0)}) for v in (right, left)]
        return b.node("Transpose", [b.node("MatMul", turned)], {"perm": (1, 0)})

    found = compare(g, g.replace(rewrite(g, i, by_transpose).edit))
    assert found and found.runs == 3
    assert not compare(g, g.replace(rewrite(g, i, lambda b: b.node("Neg", [b.node("MatMul", [left, right])])).edit))


# ---------------------------------------------------------------- ties
@pytest.mark.parametrize(
    ("x", "y", "truth", "ok", "ties"),
    [
        ([1, 2, 3], [1, 2, 3], [1, 2, 3], True, 0),
        ([1, 2, 3], [1, 9, 3], [1, 9, 3], True, 1),  # the original's own float32 and float64 disagree there
        ([1, 2, 3], [1, 9, 3], [1, 2, 3], False, 0),
        ([1, 2, 3], [1, 9, 9], [1, 9, 3], False, 0),
    ],
)
def test_integers_may_differ_only_where_the_original_ties(x: list[int], y: list[int], truth: list[int], ok: bool, ties: int) -> None:
    _, why, found = judge("y", np.array(x), np.array(y), lambda: np.array(truth))
    assert ((why == ""), found) == (ok, ties), why


@pytest.mark.parametrize("op", ["i = ArgMax<axis=1>(h)", "k = Constant<value = int64[1] {2}>() v, i = TopK(h, k)", "i = Round(h)"])
def test_a_tie_of_the_original_is_allowed_and_a_wrong_answer_is_not(op: str) -> None:
    kind = "float[1,4]" if "Round" in op else "int64[1,m]"
    # In float32 the sum of x and 1e9 forgets x, so that all entries tie; in float64 they do not.
    lost = f"agraph (float[1,4] x) => ({kind} i) {{ c = Constant<value = float {{1e9}}>() s = Add(x, c) h = Sub(s, c) {op} }}"
    kept = f"agraph (float[1,4] x) => ({kind} i) {{ h = Identity(x) {op} }}"
    wrong = f"agraph (float[1,4] x) => ({kind} i) {{ h = Neg(x) {op} }}"
    assert compare(graph(lost), graph(kept))
    assert not compare(graph(kept), graph(wrong))
    assert not compare(graph(kept), graph(lost))


def test_how_many_results_there_are_may_be_a_tie() -> None:
    lost = "agraph (float[8] x) => (int64[1,n] y) { c = Constant<value = float {1e9}>() s = Add(x, c) h = Sub(s, c) y = NonZero(h) }"
    kept = "agraph (float[8] x) => (int64[1,n] y) { y = NonZero(x) }"
    none = "agraph (float[8] x) => (int64[1,n] y) { h = Sub(x, x) y = NonZero(h) }"
    assert compare(graph(lost), graph(kept)).ties > 0
    assert not compare(graph(kept), graph(none))


# ---------------------------------------------------------------- other values than tensors of numbers
def test_sequences() -> None:
    same = "agraph (float[3] x) => (seq(float[3]) y) { h = Neg(x) y = SequenceConstruct(x, h) }"
    longer = "agraph (float[3] x) => (seq(float[3]) y) { h = Neg(x) y = SequenceConstruct(x, h, h) }"
    other = "agraph (float[3] x) => (seq(float[3]) y) { h = Neg(x) y = SequenceConstruct(h, x) }"
    assert compare(graph(same), graph(same))
    assert "another length" in compare(graph(same), graph(longer)).why
    assert "differs" in compare(graph(same), graph(other)).why


def test_an_absent_output_equals_only_another() -> None:
    assert judge("y", None, None, lambda: None) == (0.0, "", 0)
    assert "absent" in judge("y", None, np.zeros(1), lambda: None)[1]
    assert "absent" in judge("y", [np.zeros(1), None], [np.zeros(1), np.zeros(1)], lambda: None)[1]


def test_optionals_from_a_model() -> None:
    empty = oh.make_node("Optional", [], ["y"], type=oh.make_tensor_type_proto(1, [2]))
    full = oh.make_node("Optional", ["x"], ["y"])
    kind = oh.make_value_info("y", oh.make_optional_type_proto(oh.make_tensor_type_proto(1, [2])))
    x = oh.make_tensor_value_info("x", 1, [2])

    def made(node: onnx.NodeProto) -> Graph:
        return from_proto(oh.make_model(oh.make_graph([node], "g", [x], [kind]), opset_imports=[oh.make_opsetid("", 17)], ir_version=9))

    for node in (empty, full):
        found = compare(made(node), made(node))
        assert found and (found.runs or found.skipped)
    assert not compare(made(empty), made(full)) or compare(made(empty), made(full)).skipped


def test_strings() -> None:
    keep = "agraph (string[3] x) => (string[3] y) { y = Identity(x) }"
    turn = "agraph (string[3] x) => (string[3] y) { k = Constant<value = int64[3] {2,1,0}>() y = Gather(x, k) }"
    assert compare(graph(keep), graph(keep))
    assert not compare(graph(keep), graph(turn))


# ---------------------------------------------------------------- sizes
def test_several_dynamic_sizes_are_tried() -> None:
    g = graph("agraph (float[n,m] x) => (float[n,m] y) { y = Neg(x) }")
    assert compare(g, g).runs == 9
    only_two = graph("agraph (float[n,m] x) => (float[n,m] y) { k = Constant<value = int64[2] {2,-1}>() y = Reshape(x, k) }")
    found = compare(g, graph("agraph (float[n,m] x) => (float[n,m] y) { h = Sum(x) y = Neg(h) }"), {"n": 8})
    assert found and found.runs == 9
    found = compare(only_two, only_two)
    assert found and 0 < found.runs <= 9
    wrong_at_one = (
        "agraph (float[n,m] x) => (float[n,m] y) { a = Neg(x) k = Constant<value = int64[1] {0}>() s = ReduceMin(x) y = Min(a, a) }"
    )
    assert compare(g, graph(wrong_at_one))


def test_a_difference_at_one_size_only_is_found() -> None:
    g = graph("agraph (float[n] x) => (float[n] y) { y = Neg(x) }")
    shape = """agraph (float[n] x) => (float[n] y) {
      s = Shape(x) f = Cast<to=1>(s) k = Constant<value = float[1] {SIZE}>() e = Equal(f, k) h = Neg(x) y = Where(e, x, h)
    }"""
    for size in (1, 2, 5):
        assert not compare(g, graph(shape.replace("SIZE", str(size)))), size


def test_draws_begin_with_what_is_given_and_hold_one() -> None:
    g = graph("agraph (float[n,m] x) => (float[n,m] y) { y = Neg(x) }")
    found = draws(g, {"n": 8}, 3)
    assert found[0]["n"] == 8 and {"n": 1, "m": 1} in found[:3]
    assert draws(graph(NEG), {}, 3) == [{}]


# ---------------------------------------------------------------- what cannot be run
def test_the_reference_evaluator_steps_in() -> None:
    # onnxruntime's CPU provider has no float64 convolution
    text = "agraph (double[1,2,4,4] x, double[3,2,1,1] w) => (double[1,3,4,4] y) { h = Conv(x, w) y = OP(h) }"
    found = compare(graph(text.replace("OP", "Neg")), graph(text.replace("OP", "Neg")))
    assert found and found.runs == 3
    assert not compare(graph(text.replace("OP", "Neg")), graph(text.replace("OP", "Relu")))


def test_a_custom_operator_is_not_run_and_that_is_said() -> None:
    made = model(NEG)
    made.opset_import.append(oh.make_opsetid("house", 1))
    made.graph.node[0].domain = "house"
    g = from_proto(made)
    found = compare(g, g)
    assert found and found.runs == 0 and found.skipped.startswith("not run")


def test_a_model_that_does_not_load_beside_one_that_does_is_a_difference() -> None:
    made = model(NEG)
    made.graph.node[0].op_type = "NoSuchOperator"
    assert "does not load" in compare(graph(NEG), from_proto(made)).why


def test_a_model_that_does_not_run_beside_one_that_does_is_a_difference() -> None:
    other = "agraph (float[2,3] x) => (float[2,3] y) { k = Constant<value = int64[2] {7,7}>() y = Reshape(x, k) }"
    made = model(other)
    found = compare(graph(NEG), from_proto(made))
    assert "does not load" in found.why or "does not run" in found.why


def test_inputs_that_a_model_will_not_take_give_way_to_zeros_or_ones() -> None:
    g = graph("agraph (float[2] x, int64[1] k) => (float[m] y) { h = Neg(x) y = Tile(h, k) }")
    assert compare(g, g).runs == 3


# ---------------------------------------------------------------- chance
CHANCE = "agraph (float[2,3] x) => (float[2,3] y, float[2,3] z) { r = RandomNormalLike(x) y = Add(x, r) z = Neg(x) }"


def test_what_rests_on_random_operators_is_left_out_and_said() -> None:
    g = graph(CHANCE)
    found = compare(g, g, taps=True)
    assert found and found.values == 1 and "random operators: y" in found.skipped
    assert not compare(g, graph(CHANCE.replace("Neg", "Relu")))
    only = graph("agraph (float[2,3] x) => (float[2,3] y) { r = RandomUniformLike(x) y = Add(x, r) }")
    found = compare(only, only)
    assert found and found.values == 0 and "random" in found.skipped


@pytest.mark.parametrize(("mode", "random"), [("", 0), ("r, m", 0), ("r, no", 0), ("r, yes", 2)])
def test_dropout_is_random_in_training_only(mode: str, random: int) -> None:
    operands = {"": "x", "r, m": "x, r", "r, no": "x, r, no", "r, yes": "x, r, yes"}[mode]
    g = graph(
        "agraph (float[4] x) => (float[4] y) <float r = {0.5}, bool no = {0}, bool yes = {1}> "
        f"{{ h = Dropout({operands}) y = Neg(h) }}"
    )
    assert len(chance(g)) == random


def test_chance_inside_a_body_counts() -> None:
    text = """agraph (float[2] x, bool c) => (float[2] y) {
      y = If (c) <then_branch = t () => (float[2] a) { a = RandomNormalLike(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }>
    }"""
    assert len(chance(graph(text))) == 1


# ---------------------------------------------------------------- large models
def test_a_large_model_goes_through_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "LARGE_BYTES", 1000)
    g = small("repvgg_a0")
    found = compare(g, g, taps=True)
    assert found and found.values > 10 and found.error == 0
    i = next(i for i in g.order() if g.nodes[i].op == "Relu")
    cut = g.replace(rewrite(g, i, lambda b: b.node("Neg", [Value(g.nodes[i].inputs[0].node)])).edit)
    assert not compare(g, cut, taps=True)


def test_no_room_for_a_large_model_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise ModelError("there is no space left")

    monkeypatch.setattr(pair, "LARGE_BYTES", 1000)
    monkeypatch.setattr(pair, "save", full)
    g = small("repvgg_a0")
    found = compare(g, g)
    assert found and not found.runs and "no space left" in found.skipped


def test_feeds_are_the_same_for_the_same_seed() -> None:
    g = defaulted("y = Mul(x, w)")
    first, second = (feeds(g, {}, np.random.default_rng(4), override=True) for _ in range(2))
    assert sorted(first) == ["w", "x"] and all(np.array_equal(first[k], second[k]) for k in first)
    assert sorted(feeds(g, {}, np.random.default_rng(4))) == ["x"]
