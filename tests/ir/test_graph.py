"""Graph and Edit: an edit does what it says and no more."""

from collections import Counter

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from cgorl.ir.graph import OUTPUT, Edit, Graph, GraphError, fresh, link
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.ops import foldable
from cgorl.ir.run import Session
from cgorl.ir.to_proto import complete
from tests.ir.walks import SEEDS, load, scratch, text, walk
from tests.strategies import feeds, models


def constness(graph: Graph) -> dict[int, bool]:
    """For each node whether it rests on initializers alone, from scratch."""
    found: dict[int, bool] = {}
    for i in graph.order():
        node = graph.nodes[i]
        if node.holds_tensor:
            found[i] = True
        else:
            found[i] = bool(node.inputs) and foldable(node.op, node.domain) and all(found[v.node] for v in node.reads())
    return found


def multiset(users: dict[int, tuple]) -> dict[int, Counter]:
    return {i: Counter(u) for i, u in users.items()}


def unread(graph: Graph) -> set[int]:
    return {i for i, u in graph.users.items() if not u and not graph.nodes[i].is_input}


@given(models(), SEEDS)
@settings(max_examples=60)
def test_an_edit_keeps_all_invariants(model: onnx.ModelProto, seed: int) -> None:
    graph = load(model)
    start = graph
    graph.key  # noqa: B018  from now on kept up to date
    before = dict(graph.nodes), dict(graph.users), graph.outputs, graph.memo["key"]
    for after, edit in walk(graph, np.random.default_rng(seed), 8):
        assert multiset(after.users) == multiset(link(after.nodes, after.outputs))
        assert {i: n.constant for i, n in after.nodes.items()} == constness(after)
        assert unread(after) <= unread(graph), "a node died of the edit and stayed"
        assert set(graph.nodes) - set(after.nodes) == set(edit.removed)
        assert after.inputs == start.inputs
        assert all(i in after.nodes for i in start.inputs)
        assert after.key == scratch(after).key
        for old, new in zip(start.outputs, after.outputs, strict=True):
            was, now = start.type(old), after.type(new)
            assert was is None or now is None or was.agrees(now)
        for i in set(graph.nodes) & set(after.nodes):
            assert after.nodes[i].types == graph.nodes[i].types
            assert after.nodes[i] is graph.nodes[i] or i in {u.node for v in edit.rewired for u in graph.users[v.node]} | set(
                constness(after)
            )
        graph = after
    assert (dict(start.nodes), dict(start.users), start.outputs, start.key) == before


@given(models(half=False), SEEDS)
@settings(max_examples=60)
def test_edits_that_keep_the_meaning_keep_the_outputs(model: onnx.ModelProto, seed: int) -> None:
    after = complete(walk(load(model), np.random.default_rng(seed), 8)[-1][0])
    onnx.checker.check_model(after, full_check=True)
    given_ = feeds(model, np.random.default_rng(seed))
    expected, found = Session(model).run(given_), Session(after).run(given_)
    assert list(expected) == list(found)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def test_two_values_change_places() -> None:
    graph = load(text("(float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }"))
    y, z = graph.outputs
    after = graph.replace(graph.edit([], {y: z, z: y}))
    assert after.outputs == (z, y)
    assert multiset(after.users) == multiset(link(after.nodes, after.outputs))
    out = Session(complete(after)).run({"x": np.array([-1, 2], np.float32)})
    assert out["y"].tolist() == [1, 2]
    assert out["z"].tolist() == [1, -2]


def test_a_chain_of_rewirings_moves_each_use_once() -> None:
    graph = load(text("(float[2] o, float[2] p) { a = Neg(x)  b = Abs(x)  c = Relu(x)  o = Exp(a)  p = Log(b) c2 = Exp(c)}"))
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    after = graph.replace(graph.edit([], {at["a"]: at["b"], at["b"]: at["c"]}))
    assert after.nodes[at["o"].node].inputs == (at["b"],)
    assert after.nodes[at["p"].node].inputs == (at["c"],)
    assert multiset(after.users) == multiset(link(after.nodes, after.outputs))


def test_constness_comes_and_goes_with_edits() -> None:
    model = text("(float[2] y) <float[2] w = {1, 2}> { a = Neg(w)  b = Abs(a)  c = Neg(x)  y = Add(b, c) }")
    graph = load(model)
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    assert graph.is_constant(at["b"])
    less = graph.replace(graph.edit([], {at["w"]: at["x"]}))
    assert {i: n.constant for i, n in less.nodes.items()} == constness(less)
    assert not less.is_constant(at["b"])
    more = graph.replace(graph.edit([], {at["x"]: at["w"]}))
    assert more.is_constant(at["y"])
    assert graph.is_constant(at["b"])
    assert not graph.is_constant(at["y"])


def test_dead_nodes_go_with_the_edit_and_inputs_stay() -> None:
    graph = load(text("(float[2] y) <float[2] w = {1, 2}> { a = Neg(x)  b = Mul(a, w)  c = Abs(b)  d = Add(c, a)  y = Relu(d) }"))
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    edit = graph.edit([], {at["c"]: at["a"]})
    assert edit.removed == tuple(sorted(at[n].node for n in "wbc"))
    gone = graph.replace(graph.edit([], {at["d"]: at["w"]}))
    assert set(gone.nodes) == {at[n].node for n in "xwy"}
    assert gone.users[at["x"].node] == ()


def test_an_edit_that_cannot_be_is_refused() -> None:
    graph = load(text("(float[2] y) { a = Neg(x)  b = Shape(a)  y = Relu(a) }"))
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    with pytest.raises(GraphError, match=r"type of 'a' from float\[2\] to int64\[1\]"):
        graph.edit([], {at["a"]: at["b"]})
    for wrong in ({Value(99): at["a"]}, {at["a"]: Value(99)}, {at["a"]: Value(fresh(3))}, {at["a"]: Value(at["x"].node, 7)}):
        with pytest.raises(GraphError, match="not in the graph"):
            graph.edit([], wrong)
    node = Node("Neg", "", (Value(99),), {}, (TensorType(1, (2,)),))
    edits = (Edit((), (node,), {}), Edit((), (), {Value(99): at["a"]}), Edit((), (), {at["a"]: Value(99)}))
    for edit in edits:
        with pytest.raises(GraphError, match="99"):
            graph.replace(edit)
    with pytest.raises(GraphError, match="still read"):
        graph.replace(Edit((at["a"].node,), (), {}))


def test_an_edit_whose_nodes_have_found_new_readers_is_refused() -> None:
    graph = load(text("(float[2] y, float[2] z) { a = Neg(x)  b = Abs(a)  y = Relu(b)  c = Exp(x)  z = Relu(c) }"))
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    stale = graph.edit([], {at["y"]: at["z"]})
    assert at["b"].node in stale.removed
    other = graph.replace(graph.edit([], {at["c"]: at["b"]}))
    with pytest.raises(GraphError, match="still read"):
        other.replace(stale)
    gone = graph.replace(stale)
    with pytest.raises(GraphError):
        gone.replace(stale)


def test_a_cycle_is_found_when_the_order_is_asked_for() -> None:
    graph = load(text("(float[2] y) { a = Neg(x)  b = Abs(a)  y = Relu(b) }"))
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    wrong = graph.replace(Edit((), (), {at["a"]: at["b"]}))
    with pytest.raises(GraphError, match="cycle"):
        wrong.order()


def test_uses_count_repetition_and_outputs_and_bodies() -> None:
    model = text(
        """(float[2] y, float[2] a) {
            a = Neg(x)  b = Add(a, a)
            y = If (c) <then_branch = t () => (float[2] p) { p = Mul(a, b) }, else_branch = e () => (float[2] q) { q = Identity(a) }>
        }""",
        head="float[2] x, bool c",
    )
    graph = load(model)
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    assert graph.uses(at["a"]) == 4
    assert Counter(u.node for u in graph.users[at["a"].node])[OUTPUT] == 1
    assert [n for n, _ in graph.nodes[at["y"].node].captures] == ["a", "b"]
