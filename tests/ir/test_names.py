"""Names on save: the interface stands, old values keep theirs, new ones clash with nothing, and the meaning stays."""

import numpy as np
import onnx
from onnx import parser

from cgorl.ir.build import Builder
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph, fresh
from cgorl.ir.node import Value
from cgorl.ir.run import Session
from cgorl.ir.to_proto import complete

FEEDS = {"x": np.array([-1, 2], np.float32), "c": np.array(True)}


def load(body: str, head: str = "float[2] x") -> Graph:
    return from_proto(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({head}) => {body}'))


def at(graph: Graph) -> dict[str, Value]:
    return {name: Value(i, p) for i, n in graph.nodes.items() for p, name in enumerate(n.names) if name}


def outputs(graph: Graph) -> dict[str, list[float]]:
    """What the saved graph gives, after the checker has seen it."""
    model = complete(graph)
    onnx.checker.check_model(model, full_check=True)
    assert [o.name for o in model.graph.output] == [o.name for o in graph.frame.model.graph.output]
    labels = [n.name for n in model.graph.node if n.name]
    assert len(set(labels)) == len(labels)
    session = Session(model)
    return {n: a.tolist() for n, a in session.run({n: FEEDS[n] for n in session.inputs}).items()}


def test_one_value_becomes_two_outputs() -> None:
    graph = load("(float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }")
    names = at(graph)
    one = graph.replace(graph.edit([], {names["z"]: names["y"]}))
    assert outputs(one) == {"y": [1, -2], "z": [1, -2]}
    other = graph.replace(graph.edit([], {names["y"]: names["z"]}))
    assert outputs(other) == {"y": [1, 2], "z": [1, 2]}
    assert {n for node in complete(other).graph.node for n in node.output} == {"y", "z"}


def test_an_output_becomes_an_input_or_a_weight() -> None:
    graph = load("(float[2] y, float[2] z) <float[2] w = {3, 4}> { y = Neg(x)  z = Mul(y, w) }")
    names = at(graph)
    assert outputs(graph.replace(graph.edit([], {names["y"]: names["x"]}))) == {"y": [-1, 2], "z": [-3, 8]}
    assert outputs(graph.replace(graph.edit([], {names["y"]: names["w"]}))) == {"y": [3, 4], "z": [9, 16]}
    both = graph.replace(graph.edit([], {names["y"]: names["w"], names["z"]: names["w"]}))
    assert outputs(both) == {"y": [3, 4], "z": [3, 4]}


def test_outputs_that_are_inputs_or_weights_from_the_start() -> None:
    graph = load("(float[2] x, float[2] w, float[2] y) <float[2] w = {3, 4}> { y = Add(x, w) }")
    assert outputs(graph) == {"x": [-1, 2], "w": [3, 4], "y": [2, 6]}
    assert len(complete(graph).graph.node) == 1
    names = at(graph)
    b = Builder(graph)
    moved = graph.replace(b.edit({names["x"]: b.node("Identity", [names["x"]])}))
    assert outputs(moved) == {"x": [-1, 2], "w": [3, 4], "y": [2, 6]}
    b = Builder(graph)
    moved = graph.replace(b.edit({names["w"]: b.node("Identity", [names["w"]])}))
    assert outputs(moved) == {"x": [-1, 2], "w": [3, 4], "y": [2, 6]}
    b = Builder(graph)
    moved = graph.replace(b.edit({names["w"]: b.constant(np.array([5, 6], np.float32))}))
    assert outputs(moved) == {"x": [-1, 2], "w": [5, 6], "y": [4, 8]}


def test_output_names_change_places_and_bodies_follow() -> None:
    graph = load(
        """(float[2] y, float[2] z, float[2] u) {
            y = Neg(x)  z = Abs(x)
            u = If (c) <then_branch = t () => (float[2] p) { p = Sub(y, z) }, else_branch = e () => (float[2] q) { q = Identity(y) }>
        }""",
        "float[2] x, bool c",
    )
    names = at(graph)
    assert outputs(graph) == {"y": [1, -2], "z": [1, 2], "u": [0, -4]}
    turned = graph.replace(graph.edit([], {names["y"]: names["z"], names["z"]: names["y"]}))
    assert outputs(turned) == {"y": [1, 2], "z": [1, -2], "u": [0, 4]}
    plain = load("(float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }")
    y, z = plain.outputs
    turned = plain.replace(plain.edit([], {y: z, z: y}))
    assert outputs(turned) == {"y": [1, 2], "z": [1, -2]}


def test_a_captured_value_under_a_new_name_is_found_by_its_bodies() -> None:
    graph = load(
        """(float[2] u) {
            a = Neg(x)
            u = If (c) <
                then_branch = t () => (float[2] p) { q = Add(a, a)  p = If (c) <
                    then_branch = t2 () => (float[2] r) { r = Mul(a, q) }, else_branch = e2 () => (float[2] s) { s = Identity(q) }> },
                else_branch = e () => (float[2] v) { v = Identity(a) }
            >
        }""",
        "float[2] x, bool c",
    )
    names = at(graph)
    b = Builder(graph)
    new = b.node("Abs", [b.node("Neg", [names["a"]])], name="hello")
    after = graph.replace(graph.edit(b.added, {names["a"]: new}))
    assert outputs(after) == {"u": [2, 8]}
    assert graph.nodes[names["u"].node].proto == after.nodes[names["u"].node].proto, "the node as read is not touched"
    assert outputs(graph) == {"u": [2, 8]}


def test_a_body_s_own_name_hides_no_captured_value_that_is_renamed() -> None:
    """A body may use a name that the graph gives to a later value; when the body comes to read that one, its own gives way."""
    graph = load(
        """(float[2] t) {
            a = Neg(x)
            u = If (c) <then_branch = b1 () => (float[2] p) { t = Add(a, a)  p = Mul(t, a) },
                else_branch = b2 () => (float[2] v) { v = Identity(a) }>
            b = Abs(x)
            t = Add(u, b)
        }""",
        "float[2] x, bool c",
    )
    assert outputs(graph) == {"t": [3, 10]}
    names = at(graph)
    b = Builder(graph)
    value = b.node("Neg", [names["x"]])
    after = graph.replace(b.edit({names["a"]: value}))
    assert outputs(after) == {"t": [3, 10]}
    swapped = graph.replace(graph.edit([], {names["t"]: names["a"]}))  # the value of a is now output t
    assert outputs(swapped) == {"t": [1, -2]}
    both = load(
        """(float[2] t, float[2] w) {
            a = Neg(x)
            w = If (c) <then_branch = b1 () => (float[2] p) { t = Add(a, a)  p = Mul(t, a) },
                else_branch = b2 () => (float[2] v) { v = Identity(a) }>
            t = Abs(x)
        }""",
        "float[2] x, bool c",
    )
    names = at(both)
    after = both.replace(both.edit([], {names["t"]: names["a"]}))
    assert outputs(after) == {"t": [1, -2], "w": [2, 8]}


def test_new_names_clash_with_nothing_there_or_gone() -> None:
    graph = load(
        """(float[2] y) <float[2] abs_5 = {1, 1}> {
            neg_6 = Add(x, abs_5)
            [abs_7] y = If (c) <then_branch = t () => (float[2] neg_8) { neg_8 = Identity(neg_6) },
                else_branch = e () => (float[2] abs_9) { abs_9 = Identity(x) }>
        }""",
        "float[2] x, bool c",
    )
    names = at(graph)
    expected = outputs(graph)
    for op in ("Neg", "Abs", "Identity"):
        for _ in range(6):  # whatever id a new node gets, its name is free
            b = Builder(graph)
            twice = b.node("Neg", [b.node("Neg", [names["neg_6"]])])
            b.node(op, [names["x"]])
            graph = graph.replace(graph.edit(b.added, {names["neg_6"]: twice}))
            names = {**at(graph), "neg_6": Value(next(u.node for u in graph.users[names["neg_6"].node] if u.node >= 0), 0)}
    assert outputs(graph) == expected


def test_two_copies_of_an_old_node_have_two_names() -> None:
    graph = load("(float[2] y, float[2] z) { [first] a = Neg(x)  [second] y = Abs(a)  [third] z = Exp(a) }")
    names = at(graph)
    node = graph.node(names["a"])
    twin = graph.edit([node, graph.node(names["y"]).with_inputs({names["a"]: Value(fresh(0))}, False)], {names["y"]: Value(fresh(1))})
    after = graph.replace(twin)
    assert outputs(after)["y"] == [1, 2]
    assert sorted(n.name for n in complete(after).graph.node) == sorted({n.name for n in complete(after).graph.node})
    assert {"first", "third"} <= {n.name for n in complete(after).graph.node}


def test_what_is_untouched_keeps_its_names_and_declarations() -> None:
    graph = load("(float[2] y) <float[2] a, float[2] b> { [na] a = Neg(x)  [nb] b = Abs(a)  [ny] y = Exp(b) }")
    names = at(graph)
    b = Builder(graph)
    after = complete(graph.replace(b.edit({names["b"]: b.node("Relu", [names["a"]])})))
    assert [(n.op_type, n.name, list(n.output)) for n in after.graph.node] == [
        ("Neg", "na", ["a"]),
        ("Relu", "nb", ["b"]),
        ("Exp", "ny", ["y"]),
    ]
    assert [v.name for v in after.graph.value_info] == ["a", "b"]
    gone = complete(graph.replace(graph.edit([], {names["b"]: names["a"]})))
    assert [v.name for v in gone.graph.value_info] == ["a"]


def test_a_left_out_output_stays_left_out() -> None:
    graph = load("(float[2] y) { , i = TopK(x, k)  y = Cast<to = 1>(i) }", "float[2] x, int64[1] k")
    model = complete(graph)
    assert list(model.graph.node[0].output) == ["", "i"]
    b = Builder(graph)
    after = complete(graph.replace(b.edit({at(graph)["x"]: b.node("Neg", [at(graph)["x"]])})))
    assert [list(n.output) for n in after.graph.node if n.op_type == "TopK"] == [["", "i"]]


def test_in_ir_3_new_weights_are_listed_as_inputs_and_old_ones_go() -> None:
    model = parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 8]> g (float[2] w = {1, 2}, float[2] x) => (float[2] y) { y = Add(x, w) }'
    )
    graph = from_proto(model)
    b = Builder(graph)
    after = complete(graph.replace(b.edit({at(graph)["w"]: b.constant(np.array([5, 6], np.float32))})))
    assert {i.name for i in after.graph.input} == {"x", *(t.name for t in after.graph.initializer)}
    assert [t.float_data or t.raw_data for t in after.graph.initializer] == [np.array([5, 6], np.float32).tobytes()]
    onnx.checker.check_model(after)
