"""Parts: a model of some of a graph's nodes computes what the whole graph computes there."""

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

from cgorl.ir.extract import cone, name, part
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import TensorType, Value
from cgorl.ir.onnx_io import load
from cgorl.ir.run import Session
from cgorl.ir.to_proto import complete
from tests.ir.files import with_external
from tests.strategies import feeds, models


def everything(model: onnx.ModelProto, graph: Graph, given_: dict[str, np.ndarray]) -> dict[Value, np.ndarray]:
    """Every value of the graph, by onnxruntime on the whole model."""
    names = {Value(i, p): n for i, node in graph.nodes.items() for p, n in enumerate(node.names) if n}
    whole = complete(graph)
    known = {o.name for o in whole.graph.output} | {i.name for i in whole.graph.input} | {t.name for t in whole.graph.initializer}
    whole.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names.values() if n not in known)
    found = Session(whole).run(given_) | given_
    weights = {t.name: nh.to_array(t) for t in model.graph.initializer}
    return {
        v: found[n] if n in found else weights[n].astype(object) if weights[n].dtype.kind == "U" else weights[n] for v, n in names.items()
    }


def check(graph: Graph, values: dict[Value, np.ndarray], outputs: list[Value], inside: list[int] | None, **options: object) -> None:
    made = part(graph, outputs, inside, **options)  # type: ignore[arg-type]
    assert made.outputs == tuple(outputs)
    assert [o.name for o in made.model.graph.output] == [name(v) for v in outputs]
    assert [i.name for i in made.model.graph.input] == [name(v) for v in made.inputs]
    if inside is None:
        assert all(graph.node(v).is_input for v in made.inputs)
    else:
        assert not {v.node for v in made.inputs} & (set(inside) - set(graph.inputs) - {v.node for v in outputs})
    assert not any(graph.node(v).constant for v in made.inputs)
    found = Session(made.model).run({name(v): values[v] for v in made.inputs})
    for v in outputs:
        np.testing.assert_array_equal(found[name(v)], values[v])
        assert found[name(v)].dtype == values[v].dtype


@given(models(half=False), st.integers(0, 2**32 - 1))
@settings(max_examples=80)
def test_a_random_part_computes_what_the_whole_computes(model: onnx.ModelProto, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = from_proto(onnx.ModelProto.FromString(model.SerializeToString()))
    values = everything(model, graph, feeds(model, rng))
    inner = [i for i in graph.order() if not graph.nodes[i].is_source]
    for _ in range(3):
        inside = [i for i in inner if rng.integers(2)]
        ends = [Value(i, p) for i in inside for p in range(len(graph.nodes[i].types)) if Value(i, p) in values]
        if ends:
            check(graph, values, [ends[k] for k in rng.permutation(len(ends))[:3]], inside)
    ends = [v for v in values if not graph.node(v).is_source]
    check(graph, values, [ends[rng.integers(len(ends))]], None)


@given(models(half=False), st.integers(0, 9))
@settings(max_examples=30)
def test_dynamic_dims_may_be_bound(model: onnx.ModelProto, seed: int) -> None:
    graph = from_proto(onnx.ModelProto.FromString(model.SerializeToString()))
    values = everything(model, graph, feeds(model, np.random.default_rng(seed)))
    last = [i for i in graph.order() if not graph.nodes[i].is_source][-1]
    end = next(Value(last, p) for p in range(len(graph.nodes[last].types)) if Value(last, p) in values)
    types = {v: TensorType(kind.dtype, a.shape) for v, a in values.items() if (kind := graph.type(v)) is not None}
    check(graph, values, [end], [last], types=types)
    made = part(graph, [end], [last], types)
    assert all(d.HasField("dim_value") for i in made.model.graph.input for d in i.type.tensor_type.shape.dim)


def test_a_cone_is_in_order_and_holds_what_is_needed_and_no_more() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>'
        "{ u = Neg(w)  a = Neg(x)  dead = Abs(a)  b = Add(a, u)  y = Relu(b) }"
    )
    graph = from_proto(model)
    at = {graph.label(Value(i)): i for i in graph.nodes}
    assert cone(graph, graph.outputs) == [at[n] for n in ("w", "u", "a", "b", "y")]
    assert cone(graph, graph.outputs, frozenset({at["y"], at["b"]})) == [at[n] for n in ("w", "u", "b", "y")]
    made = part(graph, [Value(at["b"])], [at["b"]])
    assert made.inputs == (Value(at["a"]),)


def test_an_output_of_a_part_may_be_its_input_or_a_weight() -> None:
    graph = from_proto(
        parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }'
        )
    )
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    made = part(graph, [at["x"], at["w"]])
    found = Session(made.model).run({name(at["x"]): np.array([5, 6], np.float32)})
    assert [a.tolist() for a in found.values()] == [[5, 6], [1, 2]]


def test_bodies_functions_and_sparse_weights_come_along() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "t" : 1]> g (float[3] x, bool c) => (float[3] y) {
            a = t.twice(x)
            b = Add(a, s)
            v0 = Neg(b)
            y = If (c) <
                then_branch = t1 () => (float[3] p) { v1_0 = Mul(v0, b)  p = If (c) <
                    then_branch = t2 () => (float[3] q) { q = Sub(v1_0, a) }, else_branch = e2 () => (float[3] r) { r = Identity(v0) }> },
                else_branch = e1 () => (float[3] u) { u = Identity(a) }
            >
        }
        <domain: "t", opset_import: ["" : 17]> twice (i) => (o) { o = Add(i, i) }"""
    )
    sparse = oh.make_sparse_tensor(oh.make_tensor("s", T.FLOAT, [1], [5]), oh.make_tensor("si", T.INT64, [1], [1]), [3])
    model.graph.sparse_initializer.append(sparse)
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    graph = from_proto(model)
    x, c = np.array([1, -2, 3], np.float32), np.array(True)
    a = x + x
    b = a + np.array([0, 5, 0], np.float32)
    expected = -b * b - a
    assert Session(whole).run({"x": x, "c": c})["y"].tolist() == expected.tolist()
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    values = {at["x"]: x, at["c"]: c, at["a"]: a, at["b"]: b, at["v0"]: -b, at["y"]: expected}
    for inside in (["y"], ["y", "v0"], ["y", "v0", "b", "s"], ["a"], ["b", "s"]):
        ids = [at[n].node for n in inside]
        made = part(graph, [at[inside[0]]], ids)
        found = Session(made.model).run({name(v): values[v] for v in made.inputs})
        assert found[name(at[inside[0]])].tolist() == values[at[inside[0]]].tolist()
    assert Session(part(graph, graph.outputs).model).run({name(at["x"]): x, name(at["c"]): c})[name(at["y"])].tolist() == expected.tolist()


def test_a_weight_that_is_an_input_too_is_an_input_of_the_part() -> None:
    graph = from_proto(
        parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }')
    )
    assert [graph.label(v) for v in part(graph, graph.outputs).inputs] == ["x", "w"]


@pytest.mark.parametrize("size", [1, 5000])
def test_external_weights_are_read_in(tmp_path: Path, size: int) -> None:
    w = nh.from_array(np.arange(size, dtype=np.float32), "w")
    x, y = (oh.make_tensor_value_info(n, T.FLOAT, [size]) for n in "xy")
    model = oh.make_model(oh.make_graph([oh.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w]), ir_version=8)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    graph = load(tmp_path / "m.onnx")
    made = part(graph, graph.outputs)
    assert Session(made.model).run({name(made.inputs[0]): np.zeros(size, np.float32)})[name(graph.outputs[0])].tolist() == list(range(size))


def test_external_data_of_nodes_and_bodies_is_read_in(tmp_path: Path) -> None:
    whole = with_external(tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    made = part(graph, graph.outputs)
    given_ = {"x": np.ones(300, np.float32), "t": np.array(True), "d": np.ones(300, np.float32)}
    found = Session(made.model).run({name(v): given_[graph.label(v)] for v in made.inputs})
    assert found[name(graph.outputs[0])].tobytes() == Session(whole).run(given_)["y"].tobytes()
