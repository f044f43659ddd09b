"""ONNX files in and out: nothing is lost, a bad file or folder is one sentence, a failed save leaves nothing behind."""

import functools
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh
from onnx import parser

from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import GraphError
from cgorl.ir.onnx_io import load, save
from cgorl.ir.run import Session
from cgorl.ir.tensor import Tensor
from cgorl.ir.to_proto import complete
from tests.ir.files import X, copy, one_node, tidy
from tests.strategies import feeds, models

SHARED = Path(__file__).resolve().parents[3] / "shared"


def assert_kept(model: onnx.ModelProto) -> None:
    """What is loaded and completed again is `model`."""
    after = complete(from_proto(copy(model)))
    if after.SerializeToString(deterministic=True) != model.SerializeToString(deterministic=True):
        assert tidy(after) == tidy(model)
        assert tidy(after).SerializeToString(deterministic=True) == tidy(model).SerializeToString(deterministic=True)


# ----------------------------------------------------------- nothing is lost
@given(models(), st.integers(0, 99))
@settings(max_examples=60)
def test_a_drawn_model_comes_back_the_same(tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto, seed: int) -> None:
    folder = tmp_path_factory.getbasetemp()
    onnx.save(model, folder / "in.onnx")
    assert save(load(folder / "in.onnx"), folder / "out.onnx") == [folder / "out.onnx"]
    after = onnx.load(folder / "out.onnx")
    assert tidy(after).SerializeToString(deterministic=True) == tidy(model).SerializeToString(deterministic=True)
    given_ = feeds(model, np.random.default_rng(seed))
    for (name, a), (other, b) in zip(Session(model).run(given_).items(), Session(after).run(given_).items(), strict=True):
        assert (name, a.dtype, a.shape, a.tobytes() if a.dtype != object else a.tolist()) == (
            other,
            b.dtype,
            b.shape,
            b.tobytes() if b.dtype != object else b.tolist(),
        )


@functools.cache
def node_tests() -> list[tuple[str, onnx.ModelProto]]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(c.name, c.model) for c in collect_testcases(None) if c.model is not None]


def test_each_of_onnx_s_node_tests_comes_back_the_same() -> None:
    assert len(node_tests()) > 1500
    for name, model in node_tests():
        try:
            assert_kept(model)
        except (AssertionError, ValueError) as e:
            raise AssertionError(name) from e


DATA = Path(onnx.__file__).parent / "backend/test/data"


def test_each_model_in_the_onnx_package_comes_back_the_same() -> None:
    found = sorted(DATA.rglob("*.onnx"))
    assert len(found) > 100
    for path in found:
        model = onnx.load(path)
        try:
            assert_kept(model)
        except (AssertionError, ValueError) as e:
            raise AssertionError(str(path)) from e


@pytest.mark.skipif(not (SHARED / "cases").is_dir(), reason="../shared/cases is not there")
def test_each_shared_case_comes_back_the_same() -> None:
    spec = importlib.util.spec_from_file_location("shared_cases", SHARED / "cases/cases.py")
    assert spec is not None and spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["shared_cases"] = cases
    spec.loader.exec_module(cases)
    for case in cases.CASES.values():
        if case.build is not None and not case.save:
            try:
                assert_kept(case.build())
            except (AssertionError, ValueError) as e:
                raise AssertionError(case.name) from e


@pytest.mark.skipif(not (SHARED / "models").is_dir(), reason="../shared/models is not there")
def test_each_shared_model_comes_back_the_same(tmp_path: Path) -> None:
    for path in sorted((SHARED / "models").glob("*.onnx")):
        save(load(path), tmp_path / "out.onnx")
        after, model = onnx.load(tmp_path / "out.onnx"), onnx.load(path)
        assert tidy(after).SerializeToString(deterministic=True) == tidy(model).SerializeToString(deterministic=True), path.name


def element_types() -> Iterator[onnx.TensorProto]:
    for name, dtype in T.DataType.items():
        if name in ("UNDEFINED", "STRING"):
            continue
        kind = oh.tensor_dtype_to_np_dtype(dtype)
        array = np.array([[1, 0, 1], [1, 1, 0]]).astype(kind)
        yield nh.from_array(array, f"raw_{name}")
        yield oh.make_tensor(f"field_{name}", dtype, [2, 3], array.reshape(-1).tolist() if "FLOAT4" not in name else array)
        yield oh.make_tensor(f"empty_{name}", dtype, [0, 3], [])


def test_every_element_type_comes_back_the_same() -> None:
    texts = oh.make_tensor("texts", T.STRING, [2], ["a", "ü"])
    held = [*element_types(), texts, oh.make_tensor("no_texts", T.STRING, [0], [])]
    constant = [oh.make_node("Constant", [], [f"c{k}"], value=t) for k, t in enumerate(held)]
    model = one_node(*constant, oh.make_node("Neg", ["x"], ["y"]), initializer=held)
    assert_kept(model)
    graph = from_proto(copy(model))
    for node in graph.nodes.values():
        if node.is_constant:
            t = node.tensor
            again = Tensor.of(t.array(), t.dtype)
            assert again.digest == t.digest, str(node.types[0])
            assert (again.dtype, again.shape, again.nbytes) == (t.dtype, t.shape, t.nbytes)
            assert t.sound()
            assert t.dtype == T.STRING or sum(len(c) for c in t.read()) == t.nbytes
            with pytest.raises(ValueError, match="read-only"):
                t.array()[...] = t.array()
    digests = {n.names[0]: n.tensor.digest for n in graph.nodes.values() if n.is_constant and n.proto is None}
    for name in digests:
        if name.startswith("raw_"):
            assert digests[name] == digests["field_" + name[4:]]


def test_strings_as_anyone_gives_them_are_one_tensor() -> None:
    made = [Tensor.of(a) for a in (["a", "ü"], np.array(["a", "ü"], object), np.array([b"a", "ü".encode()], object))]
    assert {t.digest for t in made} == {made[0].digest}
    assert made[0].to_proto("n").string_data == [b"a", "ü".encode()]
    assert Tensor(made[0].to_proto("n")).digest == made[0].digest
    assert Tensor.of(np.zeros((0, 2), object)).shape == (0, 2)


def rich() -> onnx.ModelProto:
    """A model with something in every corner of the format."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["ai.onnx" : 17, "t" : 1, "com.microsoft" : 1, "unused" : 4], producer_name: "p",
            producer_version: "1", domain: "d", model_version: 7, doc_string: "words", metadata_props: ["a" : "1", "b" : "2"]>
        g (float[N, 3] x, float[1] d = {2}, bool c, int64[?] n) => (float[N, 3] y, float z, seq(float[N, 3]) s)
        <float[3] w = {1, 2, 3}, float[N, 3] a>
        {
            b = Add(a, w)
            a = t.twice<k = 2>(x)
            s = SequenceConstruct(a, b)
            y = If (c) <
                then_branch = then_g () => (float[N, 3] p) { q = Mul(a, d)  p = If (c) <
                    then_branch = in_g () => (float[N, 3] r) { r = Sub(q, b) },
                    else_branch = in_h () => (float[N, 3] r2) { r2 = Identity(w2) }> },
                else_branch = else_g () => (float[N, 3] p2) { p2 = Identity(x) }
            >
            w2 = Expand(w, sh)
            sh = Shape(x)
            z = ReduceSum(b)
        }
        <domain: "t", opset_import: ["" : 17], doc_string: "f"> twice<k>(i) => (o) {
            m = Constant<value_int: int = @k>()  f = CastLike(m, i)  o = Mul(i, f) }
        """
    )
    g = model.graph
    sparse = oh.make_sparse_tensor(
        nh.from_array(np.array([1, 2], np.float32), "sp"), nh.from_array(np.array([0, 4], np.int64), "ix"), [2, 3]
    )
    g.sparse_initializer.append(sparse)
    g.node.append(oh.make_node("Constant", [], ["spc"], sparse_value=sparse))
    g.node.append(oh.make_node("Neg", ["spc"], ["dead"], name="same", domain="ai.onnx"))
    g.node.append(oh.make_node("Abs", ["spc"], ["dead2"], name="same", doc_string="node words"))
    g.node.append(oh.make_node("Unknown", ["x", "", "sp"], ["", "u"], name="same", domain="com.microsoft", g=[1.5, 2.5]))
    body = parser.parse_graph("body (float[3] st, float[3] el) => (float[3] st2, float[3] sc) { st2 = Add(st, w)  sc = Mul(el, st2) }")
    g.node.append(oh.make_node("Scan", ["w", "x"], ["last", "all"], body=body, num_scan_inputs=1))
    g.value_info.extend([oh.make_tensor_value_info("b", T.FLOAT, ["N", None]), oh.make_tensor_value_info("elsewhere", T.FLOAT, None)])
    g.quantization_annotation.add(tensor_name="b").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    for item in (g, g.node[0], g.initializer[0], g.input[0], g.value_info[0], model.functions[0], model.functions[0].node[0]):
        item.metadata_props.add(key="k", value=type(item).__name__)
        item.doc_string = "words on " + type(item).__name__
    step = model.training_info.add()
    step.algorithm.name = "step"
    step.algorithm.node.append(oh.make_node("Identity", ["w"], ["w_new"]))
    step.update_binding.add(key="w", value="w_new")
    g.input[3].type.tensor_type.shape.dim[0].Clear()
    g.input.append(oh.make_tensor_value_info("m", T.INT64, [-1, 2]))
    g.input.append(oh.make_tensor_value_info("q", T.FLOAT, None))
    return model


def in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    made = tidy(model)
    nodes = sorted(n.SerializeToString(deterministic=True) for n in made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend(onnx.NodeProto.FromString(n) for n in nodes)
    return made


def test_all_corners_of_the_format_come_back_the_same(tmp_path: Path) -> None:
    model = rich()
    model.MergeFromString(b"\xf8\xff\x01\x2a")  # a field that this protobuf does not know
    assert b"\xf8\xff\x01\x2a" in model.SerializeToString()
    onnx.save(model, tmp_path / "in.onnx")
    graph = load(tmp_path / "in.onnx")
    save(graph, tmp_path / "out.onnx")
    after = onnx.load(tmp_path / "out.onnx")
    assert in_order(after).SerializeToString(deterministic=True) == in_order(model).SerializeToString(deterministic=True)
    seen = {i.name for i in after.graph.input} | {t.name for t in after.graph.initializer} | {"sp"}
    for node in after.graph.node:  # written in a valid order
        assert {n for n in node.input if n} <= seen, node
        seen |= set(node.output)
    w = next(n for n in graph.nodes.values() if n.names == ("w",))
    assert not w.constant and not w.is_constant and w.is_source, "training updates it"
    assert load(tmp_path / "out.onnx").key == graph.key


@pytest.mark.parametrize("opset", range(7, onnx.defs.onnx_opset_version() + 1))
def test_every_opset_comes_back_the_same(opset: int) -> None:
    assert_kept(one_node(oh.make_node("Add", ["x", "x"], ["y"]), opsets=[oh.make_opsetid("", opset)]))


def test_initializers_of_ir_3_stay_inputs_and_are_constant() -> None:
    w = nh.from_array(np.ones(3, np.float32), "w")
    model = one_node(oh.make_node("Add", ["x", "w"], ["y"]), inputs=[oh.make_tensor_value_info("w", T.FLOAT, [3]), X], initializer=[w])
    model.ir_version = 3
    assert_kept(model)
    graph = from_proto(copy(model))
    assert [graph.nodes[i].names for i in graph.inputs] == [("x",)]
    model.ir_version = 4
    assert_kept(model)
    graph = from_proto(copy(model))
    assert [graph.nodes[i].names for i in graph.inputs] == [("w",), ("x",)]
    assert not any(n.constant for n in graph.nodes.values())


def test_a_default_decides_no_type_since_callers_override_it() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[6] x, int64[2] s = {2, 3}, float[N] b) => (float[?, ?] y, float[?] z)'
        "{ y = Reshape(x, s)  z = Neg(b) }"
    )
    model.graph.initializer.append(nh.from_array(np.ones(2, np.float32), "b"))
    graph = from_proto(copy(model))
    y, z = (graph.type(v) for v in graph.outputs)
    assert z is not None and z.shape == ("N",)
    assert y is not None and y.rank == 2 and not any(isinstance(d, int) for d in y.shape or ())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g: g.node.append(oh.make_node("Neg", ["nowhere"], ["q"])), "'nowhere'"),
        (lambda g: g.output.append(oh.make_tensor_value_info("nowhere", T.FLOAT, [3])), "'nowhere'"),
        (lambda g: g.node.append(oh.make_node("Neg", ["x"], ["y"])), "'y' is defined twice"),
        (lambda g: g.node.append(oh.make_node("Neg", ["w"], ["x"])), "'x' is defined twice"),
        (lambda g: g.node.append(oh.make_node("Neg", ["x"], ["w"])), "'w' is defined twice"),
        (lambda g: g.input.append(X), "input 'x' is defined twice"),
        (lambda g: g.initializer.append(g.initializer[0]), "initializer 'w' is defined twice"),
        (lambda g: g.node.extend([oh.make_node("Neg", ["q"], ["p"]), oh.make_node("Neg", ["p"], ["q"])]), "cycle"),
    ],
)
def test_an_inconsistent_model_is_refused(change: Callable[[onnx.GraphProto], Any], says: str) -> None:
    model = one_node(initializer=[nh.from_array(np.ones(3, np.float32), "w")])
    change(model.graph)
    with pytest.raises(GraphError, match=says):
        from_proto(model)


def test_saving_a_model_without_external_data_onto_itself(tmp_path: Path) -> None:
    onnx.save(rich(), tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    save(graph, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx").key == graph.key
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
