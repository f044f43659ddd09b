"""Graph, Edit and key: an edit does what it says and no more; the key sees all that matters and nothing else."""

import dataclasses
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh
from onnx import parser

from cgorl.ir.build import Builder
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import OUTPUT, Edit, Graph, GraphError, fresh, link
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.ops import COMMUTATIVE, foldable
from cgorl.ir.run import Session
from cgorl.ir.to_proto import complete
from tests.strategies import feeds, models

SEEDS = st.integers(0, 2**32 - 1)


def load(model: onnx.ModelProto) -> Graph:
    """The graph of a copy of `model`."""
    return from_proto(onnx.ModelProto.FromString(model.SerializeToString()))


def text(body: str, opset: int = 17, head: str = "float[2] x") -> onnx.ModelProto:
    """A model from onnx's text form: `body` is what follows the inputs."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "t" : 1]> g ({head}) => {body}')


def scratch(graph: Graph) -> Graph:
    """The same graph with nothing remembered."""
    nodes = {
        i: Node(n.op, n.domain, n.inputs, n.attrs, n.types, n.constant, n.name, n.names, n.captures, n.proto) for i, n in graph.nodes.items()
    }
    return dataclasses.replace(graph, nodes=nodes, memo={})


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


# ------------------------------------------------------------------- edits
def identity_before_users(graph: Graph, v: Value) -> Edit | None:
    b = Builder(graph)
    return b.edit({v: b.node("Identity", [v])})


def two_identities(graph: Graph, v: Value) -> Edit | None:
    b = Builder(graph)
    b.node("Identity", [b.node("Identity", [v])])
    return b.edit({v: Value(fresh(1))})


def equal_node(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    if node.is_source or node.captures:
        return None
    twin = Node(node.op, node.domain, node.inputs, node.attrs, node.types, node.constant, node.name, (), (), node.proto)
    return graph.edit([twin], {v: Value(fresh(0), v.port)})


def copied_operand(graph: Graph, v: Value) -> Edit | None:
    """A copy of the first operand's node for this reader alone."""
    node = graph.node(v)
    if node.captures or not node.inputs or node.inputs[0] is None or graph.node(node.inputs[0]).is_input:
        return None
    first = graph.node(node.inputs[0])
    twin = dataclasses.replace(first, memo={})
    mine = dataclasses.replace(node, inputs=(Value(fresh(0), node.inputs[0].port), *node.inputs[1:]), memo={})
    return graph.edit([twin, mine], {Value(v.node, p): Value(fresh(1), p) for p in range(len(node.types))})


def swapped(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    if node.op not in COMMUTATIVE or len(node.inputs) != 2:
        return None
    b = Builder(graph)
    return b.edit({v: b.node(node.op, [node.inputs[1], node.inputs[0]])})


def past_identity(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    return graph.edit([], {v: node.inputs[0]}) if node.op == "Identity" and node.inputs[0] is not None else None


def merged(graph: Graph, v: Value) -> Edit | None:
    node = graph.node(v)
    same = [i for i, n in graph.nodes.items() if i < v.node and n.signature == node.signature and n.inputs == node.inputs and n.types == node.types]
    return graph.edit([], {v: Value(same[0], v.port)}) if same and not node.is_source and not node.captures else None


KINDS = (identity_before_users, two_identities, equal_node, copied_operand, swapped, past_identity, merged)


def walk(graph: Graph, rng: np.random.Generator, steps: int) -> list[tuple[Graph, Edit]]:
    """Random edits that keep what is computed: each with the graph after it."""
    done = []
    while len(done) < steps:
        values = [Value(i, u.port) for i, us in graph.users.items() for u in us]
        v = values[rng.integers(len(values))]
        kinds = [KINDS[k] for k in rng.permutation(len(KINDS))]
        edit = next(e for e in (k(graph, v) for k in kinds) if e is not None)
        graph = graph.replace(edit)
        done.append((graph, edit))
    return done


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
            assert after.nodes[i] is graph.nodes[i] or i in {u.node for v in edit.rewired for u in graph.users[v.node]} | set(constness(after))
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


@given(models(), SEEDS)
@settings(max_examples=30)
def test_a_key_computed_late_is_the_key_computed_along_the_way(model: onnx.ModelProto, seed: int) -> None:
    lazy = walk(load(model), np.random.default_rng(seed), 6)[-1][0]
    eager_graph = load(model)
    eager_graph.key  # noqa: B018
    eager = walk(eager_graph, np.random.default_rng(seed), 6)[-1][0]
    assert lazy.key == eager.key == scratch(lazy).key


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
    with pytest.raises(GraphError, match="cycle"):
        wrong.key  # noqa: B018


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


# --------------------------------------------------------------------- key
def disguised(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """The same model under other names, its nodes, weights and commutative operands in another order."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    names: dict[str, str] = {}

    def new(name: str) -> str:
        return names.setdefault(name, f"r{rng.integers(1 << 60)}") if name else ""

    def rename(g: onnx.GraphProto, top: bool) -> None:
        g.name, g.doc_string = f"g{rng.integers(99)}", "other"
        for item in (*g.input, *g.output, *g.value_info, *g.initializer):
            item.name = new(item.name)
        for node in g.node:
            node.name, node.doc_string = f"n{rng.integers(9)}", "other"
            node.input[:] = [new(n) for n in node.input]
            node.output[:] = [new(n) for n in node.output]
            if top and node.op_type in COMMUTATIVE:
                node.input[:] = [node.input[k] for k in rng.permutation(len(node.input))]
            attributes = [node.attribute[k] for k in rng.permutation(len(node.attribute))]
            del node.attribute[:]
            node.attribute.extend(attributes)
            for a in node.attribute:
                if a.HasField("g"):
                    rename(a.g, False)

    rename(made.graph, True)
    weights = {t.name for t in made.graph.initializer}
    parts = [made.graph.node, made.graph.initializer, made.graph.value_info, made.opset_import]
    for part in parts:
        items = [part[k] for k in rng.permutation(len(part))]
        copies = [type(m).FromString(m.SerializeToString()) for m in items]
        del part[:]
        part.extend(copies)
    if made.ir_version < 4:  # inputs that are weights are no part of the interface
        real = [i for i in made.graph.input if i.name not in weights]
        rest = [i for i in made.graph.input if i.name in weights]
        inputs = [onnx.ValueInfoProto.FromString(i.SerializeToString()) for i in (*rest, *real)]
        del made.graph.input[:]
        made.graph.input.extend(inputs)
    return made


@given(models(), SEEDS)
@settings(max_examples=80)
def test_the_key_is_blind_to_names_ids_and_order(model: onnx.ModelProto, seed: int) -> None:
    assert load(disguised(model, np.random.default_rng(seed))).key == load(model).key


@given(models(), SEEDS)
@settings(max_examples=80)
def test_the_key_sees_attributes_contents_and_operators(model: onnx.ModelProto, seed: int) -> None:
    rng = np.random.default_rng(seed)
    key = load(model).key
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    numbers = [a for n in changed.graph.node for a in n.attribute if a.type == onnx.AttributeProto.INT and n.op_type != "Cast"]
    if numbers:
        numbers[rng.integers(len(numbers))].i += 1
        assert load(changed).key != key
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    weights = [t for t in changed.graph.initializer if t.data_type in (T.FLOAT, T.INT64) and np.prod(t.dims) > 0]
    if weights:
        t = weights[rng.integers(len(weights))]
        array = nh.to_array(t).copy()
        array.reshape(-1)[-1] += 1
        t.CopyFrom(nh.from_array(array, t.name))
        assert load(changed).key != key
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    pairs = [n for n in changed.graph.node if n.op_type in ("Add", "Sub", "Relu", "Identity")]
    if pairs:
        n = pairs[rng.integers(len(pairs))]
        n.op_type = {"Add": "Sub", "Sub": "Add", "Relu": "Neg", "Identity": "Elu"}[n.op_type]
        assert load(changed).key != key


BODY = "(float[2] y) {{ y = If (c) <then_branch = t () => (float[2] p) {{ p = Sub({}) }}, else_branch = e () => (float[2] q) {{ q = Sub({}) }}> }}"
TWICE = "(float[2] y, float[2] z, float[2] u, float[2] w) { a = Neg(x)  e = Neg(x)  %s  y = Relu(b)  z = Exp(c)  u = Sin(d)  w = Cos(f) }"

DIFFERENT = {
    "shared or twice": [("(float[2] y, float[2] z) { a = Neg(x)  y = Relu(a)  z = Exp(a) }",), ("(float[2] y, float[2] z) { a = Neg(x)  b = Neg(x)  y = Relu(a)  z = Exp(b) }",)],
    "who reads which copy": [
        ("(float[2] y, float[2] z, float[2] u) { a = Neg(x)  b = Neg(x)  y = Relu(a)  z = Exp(a)  u = Sin(b) }",),
        ("(float[2] y, float[2] z, float[2] u) { a = Neg(x)  b = Neg(x)  y = Relu(a)  z = Exp(b)  u = Sin(b) }",),
    ],
    "who reads which copy, two levels up": [
        (TWICE % "b = Abs(a) c = Abs(a) d = Abs(e) f = Abs(e)",),
        (TWICE % "b = Abs(a) d = Abs(a) c = Abs(e) f = Abs(e)",),
    ],
    "which copy stands first": [
        ("(float[2] y, float[2] z) { a = Neg(x)  b = Neg(x)  y = Sub(a, b)  z = Relu(a) }",),
        ("(float[2] y, float[2] z) { a = Neg(x)  b = Neg(x)  y = Sub(a, b)  z = Relu(b) }",),
    ],
    "order of outputs": [("(float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }",), ("(float[2] z, float[2] y) { y = Neg(x)  z = Abs(x) }",)],
    "order of operands": [("(float[2] y) { a = Neg(x)  y = Sub(a, x) }",), ("(float[2] y) { a = Neg(x)  y = Sub(x, a) }",)],
    "which output": [("(float[1] y) { a, b = Split(x)  y = Neg(a) }",), ("(float[1] y) { a, b = Split(x)  y = Neg(b) }",)],
    "absent operand": [("(float[2] y) <float lo = {0}> { y = Clip(x, lo) }",), ("(float[2] y) <float lo = {0}> { y = Clip(x, , lo) }",)],
    "a list of strings": [('(float[2] y) { y = t.Op<a = ["p", "q"]>(x) }',), ('(float[2] y) { y = t.Op<a = ["p,sq"]>(x) }',), ('(float[2] y) { y = t.Op<a = ["p1:sq"]>(x) }',)],
    "attributes run together": [('(float[2] y) { y = t.Op<a = "x", b = "y">(x) }',), ('(float[2] y) { y = t.Op<a = "xb=sy">(x) }',)],
    "domain": [("(float[2] y) { y = t.Neg(x) }",), ("(float[2] y) { y = Neg(x) }",)],
    "opset": [("(float[2,2] y) { y = Softmax(x) }", 12, "float[2,2] x"), ("(float[2,2] y) { y = Softmax(x) }", 13, "float[2,2] x")],
    "zero's sign": [("(float[2] y) <float w = {0.0}> { y = Div(x, w) }",), ("(float[2] y) <float w = {-0.0}> { y = Div(x, w) }",)],
    "element type": [("(float[2] y) <int64[2] w = {0, 0}> { y = t.Op(x, w) }",), ("(float[2] y) <double[2] w = {0, 0}> { y = t.Op(x, w) }",)],
    "shape": [("(float[2] y) <float[2,1] w = {0, 0}> { y = t.Op(x, w) }",), ("(float[2] y) <float[1,2] w = {0, 0}> { y = t.Op(x, w) }",)],
    "strings": [('(float[2] y) <string[2] w = {"ab", "c"}> { y = t.Op(x, w) }',), ('(float[2] y) <string[2] w = {"a", "bc"}> { y = t.Op(x, w) }',)],
    "input type": [("(float[2] y) { y = t.Op(x) }",), ("(float[2] y) { y = t.Op(x) }", 17, "float[3] x"), ("(float[2] y) { y = t.Op(x) }", 17, "double[2] x"), ("(float[2] y) { y = t.Op(x) }", 17, "float[N] x")],
    "input order": [("(float[2] y) { y = Sub(x, b) }", 17, "float[2] x, float[2] b"), ("(float[2] y) { y = Sub(x, b) }", 17, "float[2] b, float[2] x")],
    "captures of bodies": [(BODY.format(p, q), 17, "float[2] a, float[2] b, bool c") for p in ("a, b", "b, a") for q in ("a, b", "b, a")],
    "default of an input": [("(float[2] y) { y = Sub(x, b) }", 17, "float[2] x, float[2] b"), ("(float[2] y) { y = Sub(x, b) }", 17, "float[2] x, float[2] b = {1, 2}"), ("(float[2] y) { y = Sub(x, b) }", 17, "float[2] x, float[2] b = {1, 3}")],
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_graphs_have_different_keys(name: str) -> None:
    keys = [load(text(*args)).key for args in DIFFERENT[name]]
    assert len(set(keys)) == len(keys)


def test_the_key_tells_apart_outputs_of_copies() -> None:
    graph = load(text("(float[2] y, float[2] z, float[2] u) { y = Neg(x)  z = Neg(x)  u = Neg(x) }"))
    y, z, u = graph.outputs
    made = []
    for outputs in ((y, y, z), (y, z, z), (y, z, y), (y, z, u)):
        nodes = {i: n for i, n in graph.nodes.items() if n.is_input or Value(i) in outputs}
        made.append(dataclasses.replace(graph, nodes=nodes, outputs=outputs, users=link(nodes, outputs), memo={}))
    assert len({g.key for g in made}) == 4
    flipped = dataclasses.replace(made[0], outputs=(z, z, y), users=link(made[0].nodes, (z, z, y)), memo={})
    assert flipped.key == made[0].key


def test_the_key_sees_sparse_contents_and_functions() -> None:
    def sparse(values: list[float], name: str) -> onnx.ModelProto:
        held = oh.make_sparse_tensor(oh.make_tensor(name, T.FLOAT, [2], values), oh.make_tensor(name + "i", T.INT64, [2], [0, 2]), [3])
        x, y = (oh.make_tensor_value_info(n, T.FLOAT, [3]) for n in "xy")
        return oh.make_model(oh.make_graph([oh.make_node("Add", ["x", name], ["y"])], "g", [x], [y], sparse_initializer=[held]), ir_version=8)

    assert load(sparse([1, 2], "s")).key == load(sparse([1, 2], "other")).key
    assert load(sparse([1, 2], "s")).key != load(sparse([1, 3], "s")).key

    def function(op: str) -> onnx.ModelProto:
        return parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17, "t" : 1]> g (float[2] x) => (float[2] y) { y = t.f(x) }'
            f'<domain: "t", opset_import: ["" : 17]> f (a) => (b) {{ b = {op}(a) }}'
        )

    assert load(function("Neg")).key == load(function("Neg")).key
    assert load(function("Neg")).key != load(function("Abs")).key


def test_the_key_is_blind_to_a_body_s_names_and_defaults_written_out() -> None:
    head = "float[2] a, float[2] b, bool c"
    one = load(text(BODY.format("a, b", "b, a"), 17, head))
    two = load(text(BODY.format("a, b", "b, a").replace(" p", " other").replace("(float[2] q)", "(float[2] p)").replace(" q ", " p "), 17, head))
    assert one.key == two.key
    plain, said = "(float[2,2] y) { y = Softmax(x) }", "(float[2,2] y) { y = Softmax<axis = -1>(x) }"
    assert load(text(plain, 17, "float[2,2] x")).key == load(text(said, 17, "float[2,2] x")).key


PROGRAM = """
import sys
import numpy as np, onnx
from pathlib import Path
from tests.ir.test_graph import load, walk
for path in sorted(Path(sys.argv[1]).iterdir()):
    graph = load(onnx.load(path))
    graph.key
    print(path.name, graph.key, *(g.key for g, _ in walk(graph, np.random.default_rng(0), 5)))
"""


def test_the_key_is_the_same_in_every_process(tmp_path: Path) -> None:
    @given(models())
    @settings(max_examples=12)
    def write(model: onnx.ModelProto) -> None:
        onnx.save(model, tmp_path / f"{len(list(tmp_path.iterdir()))}.onnx")

    write()
    root = Path(__file__).resolve().parents[2]
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 12
