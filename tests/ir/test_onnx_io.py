"""ONNX files in and out: nothing is lost, a bad file or folder is one sentence, a failed save leaves nothing behind."""

import errno
import functools
import importlib.util
import io
import os
import shutil
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

from cgorl.ir import onnx_io
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import GraphError
from cgorl.ir.onnx_io import ModelError, load, save
from cgorl.ir.run import Session
from cgorl.ir.tensor import Tensor
from cgorl.ir.to_proto import complete
from tests.strategies import feeds, models

SHARED = Path(__file__).resolve().parents[3] / "shared"
X, Y = (oh.make_tensor_value_info(n, T.FLOAT, [3]) for n in "xy")


def copy(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


def tidy(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which the order of initializers and of declarations, which says nothing, is by name."""
    made = copy(model)
    for part in (made.graph.initializer, made.graph.value_info):
        items = sorted((type(i).FromString(i.SerializeToString()) for i in part), key=lambda i: i.name)
        del part[:]
        part.extend(items)
    return made


def assert_kept(model: onnx.ModelProto) -> None:
    """What is loaded and completed again is `model`."""
    after = complete(from_proto(copy(model)))
    if after.SerializeToString(deterministic=True) != model.SerializeToString(deterministic=True):
        assert tidy(after) == tidy(model)
        assert tidy(after).SerializeToString(deterministic=True) == tidy(model).SerializeToString(deterministic=True)


def one_node(*nodes: onnx.NodeProto, **parts: Any) -> onnx.ModelProto:
    opsets = parts.pop("opsets", [oh.make_opsetid("", 17)])
    graph = oh.make_graph(nodes or [oh.make_node("Neg", ["x"], ["y"])], "g", parts.pop("inputs", [X]), parts.pop("outputs", [Y]), **parts)
    return oh.make_model(graph, opset_imports=opsets, ir_version=10)


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
                    then_branch = in_g () => (float[N, 3] r) { r = Sub(q, b) }, else_branch = in_h () => (float[N, 3] r2) { r2 = Identity(w2) }> },
                else_branch = else_g () => (float[N, 3] p2) { p2 = Identity(x) }
            >
            w2 = Expand(w, sh)
            sh = Shape(x)
            sp = Constant<sparse_value = {1: 2}>()
            z = ReduceSum(b)
        }
        <domain: "t", opset_import: ["" : 17], doc_string: "f"> twice<k>(i) => (o) { m = Constant<value_int: int = @k>()  f = CastLike(m, i)  o = Mul(i, f) }
        """.replace("            sp = Constant<sparse_value = {1: 2}>()\n", "")
    )
    g = model.graph
    sparse = oh.make_sparse_tensor(nh.from_array(np.array([1, 2], np.float32), "sp"), nh.from_array(np.array([0, 4], np.int64), "ix"), [2, 3])
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


# ------------------------------------------------------------- external data
def with_external(path: Path, **options: Any) -> onnx.ModelProto:
    """Writes a model with external weights, in nodes and bodies too, to `path`; returns it whole."""
    rng = np.random.default_rng(0)
    sizes = {"w": (2, 300), "v": 300, "d": 300, "small": 1, "c": 300, "bw": 300, "b1": ()}
    t = {n: nh.from_array(rng.standard_normal(size).astype(np.float32), n) for n, size in sizes.items()}
    shape = nh.from_array(np.array([-1, 300], np.int64), "shape")
    body = oh.make_graph([oh.make_node("Sum", ["m", "bw", "b1"], ["bo"])], "b", [], [oh.make_tensor_value_info("bo", T.FLOAT, ["K", 300])])
    body.initializer.extend([t["bw"], t["b1"]])
    other = oh.make_graph([oh.make_node("Identity", ["m"], ["bi"])], "b2", [], [oh.make_tensor_value_info("bi", T.FLOAT, ["K", 300])])
    nodes = [
        oh.make_node("Constant", [], ["c"], value=t["c"]),
        oh.make_node("Sum", ["w", "v", "small"], ["a"]),
        oh.make_node("Mul", ["a", "c"], ["b"]),
        oh.make_node("Sub", ["b", "x"], ["m0"]),
        oh.make_node("Add", ["m0", "d"], ["m1"]),
        oh.make_node("Reshape", ["m1", "shape"], ["m"]),
        oh.make_node("If", ["t"], ["y"], then_branch=body, else_branch=other),
    ]
    inputs = [oh.make_tensor_value_info(n, d, s) for n, d, s in (("x", T.FLOAT, [300]), ("t", T.BOOL, []), ("d", T.FLOAT, [300]))]
    weights = [t["w"], t["v"], t["d"], t["small"], shape]
    graph = oh.make_graph(nodes, "g", inputs, [oh.make_tensor_value_info("y", T.FLOAT, ["K", 300])], weights)
    model = oh.make_model(graph, ir_version=8, opset_imports=[oh.make_opsetid("", 17)])
    settings_ = {"all_tensors_to_one_file": True, "location": path.name + ".data", "size_threshold": 0, "convert_attribute": True}
    onnx.save(copy(model), path, save_as_external_data=True, **{**settings_, **options})
    return model


def whole(path: Path) -> onnx.ModelProto:
    """The model at `path` with its external data read in by onnx."""
    model = onnx.load(path)
    for t in onnx.external_data_helper._get_all_tensors(model):
        array = nh.to_array(t)
        t.CopyFrom(nh.from_array(array, t.name))
    return tidy(model)


@pytest.mark.parametrize("options", [{}, {"all_tensors_to_one_file": False}])
def test_external_data_moves_with_the_model(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    model = with_external(tmp_path / "in/m.onnx", **options)
    graph = load(tmp_path / "in/m.onnx")
    assert complete(graph) is not None
    assert save(graph, tmp_path / "out/n.onnx") == [tmp_path / "out/n.onnx", tmp_path / "out/n.onnx.data"]
    shutil.rmtree(tmp_path / "in")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["n.onnx", "n.onnx.data"]
    assert whole(tmp_path / "out/n.onnx") == tidy(model)
    assert graph.type(graph.outputs[0]).shape == (2, 300)  # type: ignore[union-attr]
    given_ = {"x": np.ones(300, np.float32), "t": np.array(True)}
    assert Session(tmp_path / "out/n.onnx").run(given_)["y"].tobytes() == Session(model).run(given_)["y"].tobytes()
    again = load(tmp_path / "out/n.onnx")
    assert {n.names[0]: n.tensor.external for n in again.nodes.values() if n.holds_tensor} == {"w": True, "v": True, "c": True, "small": False, "shape": False}


def test_a_model_completed_from_external_data_stands_alone(tmp_path: Path) -> None:
    model = with_external(tmp_path / "m.onnx")
    assert tidy(complete(load(tmp_path / "m.onnx"))) == tidy(model)


def test_offset_and_length_are_followed(tmp_path: Path) -> None:
    model = one_node(oh.make_node("Add", ["x", "w"], ["y"]), initializer=[nh.from_array(np.zeros(3, np.float32), "w")])
    held = model.graph.initializer[0]
    held.ClearField("raw_data")
    held.data_location = T.EXTERNAL
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/w.bin").write_bytes(b"junk!" + np.array([1, 2, 3], np.float32).tobytes() + b"more")
    for key, value in (("location", "sub/w.bin"), ("offset", "5"), ("length", "12"), ("checksum", "0")):
        held.external_data.add(key=key, value=value)
    onnx.save(model, tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    assert next(n for n in graph.nodes.values() if n.is_constant).tensor.array().tolist() == [1, 2, 3]
    save(graph, tmp_path / "n.onnx")
    assert nh.to_array(onnx.load(tmp_path / "n.onnx").graph.initializer[0]).tolist() == [1, 2, 3]


def test_saving_onto_the_file_that_was_loaded_corrupts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = tidy(with_external(path))
    graph = load(path)
    key = graph.key
    for _ in range(3):
        save(graph, path)
        assert whole(path) == model
        assert tidy(complete(graph)) == model, "the graph in memory reads what was written over"
    for _ in range(3):
        graph = load(path)
        save(graph, path)
        assert whole(path) == model
        assert tidy(complete(graph)) == model
        assert load(path).key == key
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.1.data", "m.onnx.data"]


def test_saving_a_copy_onto_the_original_keeps_the_copy(tmp_path: Path) -> None:
    model = tidy(with_external(tmp_path / "m.onnx"))
    shutil.copy(tmp_path / "m.onnx", tmp_path / "copy.onnx")  # reads m.onnx.data too
    save(load(tmp_path / "copy.onnx"), tmp_path / "m.onnx")
    assert whole(tmp_path / "copy.onnx") == whole(tmp_path / "m.onnx") == model


def test_saving_a_model_without_external_data_onto_itself(tmp_path: Path) -> None:
    onnx.save(rich(), tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    save(graph, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx").key == graph.key
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_weights_beyond_the_limit_of_protobuf_go_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = oh.make_tensor("s", T.STRING, [200], [f"text {k}" for k in range(200)])
    ints = oh.make_tensor("i", T.INT64, [200], range(200))  # int64_data, not raw_data
    model = one_node(initializer=[nh.from_array(rng.standard_normal((50, 50)), "w"), texts, ints, nh.from_array(np.ones(2), "small")])
    graph = from_proto(copy(model))
    monkeypatch.setattr(onnx_io, "PROTOBUF_LIMIT", onnx_io._SPARE + 15_000)
    assert len(save(graph, tmp_path / "m.onnx")) == 2
    held = {t.name: t.data_location for t in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer}
    assert held == {"w": T.EXTERNAL, "s": T.DEFAULT, "i": T.EXTERNAL, "small": T.DEFAULT}
    for a, b in zip(onnx.load(tmp_path / "m.onnx").graph.initializer, model.graph.initializer, strict=True):
        np.testing.assert_array_equal(nh.to_array(a), nh.to_array(b))
    assert load(tmp_path / "m.onnx").key == graph.key


# ------------------------------------------------------------- bad files in
def refused(path: Path | str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as e:
        load(path)
    assert "\n" not in str(e.value)


def test_what_is_no_onnx_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    refused(tmp_path / "none.onnx", "there is no file")
    refused(tmp_path / "none/none.onnx", "there is no file")
    refused(tmp_path, "is a folder")
    bad = tmp_path / "bad.onnx"
    good = one_node(initializer=[nh.from_array(np.ones(99), "w")]).SerializeToString()
    for content in (b"", b"hello, this is text\n" * 9, np.random.default_rng(0).bytes(999), b"{}", b"\n", good[: len(good) // 2], good[:-1]):
        bad.write_bytes(content)
        refused(bad, "no ONNX model|not an ONNX file")
    refused(bad / "x", "cannot read|there is no file")
    (tmp_path / "invisible.onnx").symlink_to(tmp_path / "none")
    refused(tmp_path / "invisible.onnx", "there is no file")


@given(models(max_nodes=5), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_a_damaged_file_is_loaded_or_refused_but_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto, rng: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    for _ in range(5):
        content = bytearray(model.SerializeToString())
        if rng.random() < 0.3:
            del content[rng.randrange(len(content)) :]
        for _ in range(rng.randrange(3)):
            if content:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            graph = load(path)
            assert graph.key
            save(graph, path)
        except (ModelError, GraphError):
            pass


def external(entries: dict[str, str], size: int = 3) -> onnx.ModelProto:
    held = T(name="w", data_type=T.FLOAT, dims=[size], data_location=T.EXTERNAL)
    for key, value in entries.items():
        held.external_data.add(key=key, value=value)
    return one_node(initializer=[held])


def test_external_data_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "in").mkdir(parents=True)
    (home / "w.bin").write_bytes(bytes(12))
    (tmp_path / "secret").write_bytes(bytes(99))
    (home / "link").symlink_to(tmp_path / "secret")
    path = home / "m.onnx"
    for entries, says in (
        ({"location": "none.bin"}, "'.*none.bin' of tensor 'w' is missing"),
        ({"location": "in"}, "missing"),
        ({"location": "../secret"}, "outside the model's folder"),
        ({"location": "in/../../secret"}, "outside the model's folder"),
        ({"location": str(tmp_path / "secret")}, "outside the model's folder"),
        ({"location": str(home / "w.bin")}, "outside the model's folder"),
        ({"location": "link"}, "outside the model's folder"),
        ({}, "outside the model's folder"),
        ({"location": "w.bin", "offset": "4"}, "ends before tensor 'w' does"),
        ({"location": "w.bin", "offset": "-4"}, "tensor 'w'"),
        ({"location": "w.bin", "offset": "x"}, "tensor 'w'"),
        ({"location": "w.bin", "length": "8"}, "tensor 'w'"),
    ):
        onnx.save(external(entries), path)
        refused(path, says)
    onnx.save(external({"location": "in/../w.bin", "length": "12"}), path)
    assert load(path)
    onnx.save(external({"location": "w.bin"}, 4), path)
    refused(path, "ends before")


def test_links_as_a_download_cache_keeps_them_are_followed(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    model = with_external(tmp_path / "blobs/m")
    for name in ("m", "m.data"):
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "blobs" / name)
    assert tidy(complete(load(tmp_path / "snapshot/m"))) == tidy(model)


def test_external_data_that_goes_away_later_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with_external(tmp_path / "m.onnx")
    (tmp_path / "out").mkdir()
    graph = load(tmp_path / "m.onnx")
    os.truncate(tmp_path / "m.onnx.data", 30)
    with pytest.raises(ModelError, match=r"cannot read '.*m.onnx.data' any more: .*nothing was written"):
        save(graph, tmp_path / "out/n.onnx")
    (tmp_path / "m.onnx.data").unlink()
    with pytest.raises(ModelError, match=r"cannot read '.*m.onnx.data' any more: .*nothing was written"):
        save(graph, tmp_path / "out/n.onnx")
    assert list((tmp_path / "out").iterdir()) == []


# ------------------------------------------------------------ bad places out
def test_an_output_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path) -> None:
    graph = from_proto(one_node())
    for path, says in ((tmp_path / "none/m.onnx", "no folder"), (tmp_path, "is a folder"), (tmp_path / "m.onnx" / "x", "no folder")):
        (tmp_path / "m.onnx").write_bytes(b"")
        with pytest.raises(ModelError, match=says) as e:
            save(graph, path)
        assert "\n" not in str(e.value)
    long = tmp_path / ("n" * 300)
    with pytest.raises(ModelError, match="cannot write"):
        save(graph, long)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


class Full(io.FileIO):
    """A file on a disk with little room."""

    def __init__(self, handle: int, mode: str) -> None:
        super().__init__(handle, mode)
        self.room = 300

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("beside", [False, True])
def test_a_full_disk_leaves_the_old_files_and_no_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool) -> None:
    model = with_external(tmp_path / "m.onnx") if beside else one_node(initializer=[nh.from_array(np.ones(999), "w")])
    if not beside:
        onnx.save(model, tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    for place in ("m.onnx", "n.onnx"):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdopen", Full)
            with pytest.raises(ModelError, match="there is no space left; nothing was written"):
                save(graph, tmp_path / place)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
            with pytest.raises(ModelError, match="there is no space left; nothing was written"):
                save(graph, tmp_path / place)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_external(tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        save(graph, tmp_path / "m.onnx")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
