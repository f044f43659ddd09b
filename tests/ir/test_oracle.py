"""The oracle against onnxruntime, against onnx's own reference and recorded node tests, and its widening of models."""

import functools
import importlib
import math
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

from cgorl.ir.oracle import OracleError, double, evaluator, run_float64, run_reference

Array = np.ndarray[Any, Any]
FLOAT32, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def of_node(node: onnx.NodeProto, feeds: Mapping[str, Array], opset: int = 17) -> onnx.ModelProto:
    """Returns a model of one node, its inputs typed as the feeds."""
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def text(source: str, opset: int = 18) -> onnx.ModelProto:
    """Returns a model from onnx's textual syntax."""
    return parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}, "local": 1, "ai.onnx.ml": 3]>\n' + source)


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """Returns the outputs of onnxruntime without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, dict(feeds))


def by_reference(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """Returns the outputs of onnx's own operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(model).run(None, dict(feeds))


def agree(node: onnx.NodeProto, feeds: Mapping[str, Array], opset: int = 17, reference: bool = True, close: float = 0) -> None:
    """Checks both runs of the oracle against onnxruntime and (where it is right) onnx's reference; whole numbers make it exact."""
    model = of_node(node, feeds, opset)
    own, exact = list(run_reference(model, feeds).values()), list(run_float64(model, feeds).values())
    for wanted in [by_onnxruntime(model, feeds), *([by_reference(model, feeds)] if reference else [])]:
        for got, wide, want in zip(own, exact, wanted, strict=True):
            assert got.dtype == want.dtype and got.shape == wide.shape == want.shape, (got.shape, want.shape, node)
            assert wide.dtype == (np.float64 if want.dtype.kind == "f" else want.dtype)
            np.testing.assert_allclose(got, want, rtol=close, atol=close, err_msg=str(node))
            np.testing.assert_allclose(wide, want, rtol=close, atol=close, err_msg=str(node))


def whole(rng: np.random.Generator, *shape: int, low: int = -4, high: int = 5) -> Array:
    """Returns small whole numbers: their sums of products are exact in float32."""
    return rng.integers(low, high, shape).astype(np.float32)


def window(rng: np.random.Generator, rank: int, ceil: bool = False, dilated: bool = True) -> dict[str, Any]:
    """Returns random attributes of a convolution or pool; its padding is less than its kernel."""
    kernel = rng.integers(1, 4, rank).tolist()
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": rng.integers(1, 4, rank).tolist()}
    if dilated and rng.random() < 0.4:
        found["dilations"] = rng.integers(1, 3, rank).tolist()
    mode = rng.choice(["", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
    if mode in ("", "NOTSET"):
        found["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
        if ceil:
            found["ceil_mode"] = int(rng.integers(0, 2))
    if mode:
        found["auto_pad"] = str(mode)
    if mode.startswith("SAME"):  # onnxruntime refuses dilations there, and crops where a stride passes over the kernel
        found.pop("dilations", None)
        found["strides"] = [min(s, k) for s, k in zip(found["strides"], kernel, strict=True)]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_conv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank, group = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3]))
    per_group, m = int(rng.integers(1, 4)), group * int(rng.integers(1, 4))
    attributes = window(rng, rank)
    x = whole(rng, int(rng.integers(0, 3)), group * per_group, *rng.integers(6, 10, rank))
    feeds = {"x": x, "w": whole(rng, m, per_group, *attributes["kernel_shape"])}
    if seed % 2:
        feeds["b"] = whole(rng, m)
    # the reference has no windows to gather from an empty batch
    agree(helper.make_node("Conv", list(feeds), ["y"], group=group, **attributes), feeds, reference=x.shape[0] > 0)


def test_conv_kernel_of_the_whole_input_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    feeds = {"x": whole(rng, 2, 4, 5, 7), "w": whole(rng, 6, 4, 5, 7)}
    agree(helper.make_node("Conv", ["x", "w"], ["y"]), feeds)
    monkeypatch.setattr("cgorl.ir.oracle_windows._COLUMN_BYTES", 1)
    feeds["w"] = whole(rng, 6, 4, 3, 3)
    agree(helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 2, 0, 1]), feeds)


@pytest.mark.parametrize("seed", range(40))
def test_conv_transpose(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank, group = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3]))
    attributes = window(rng, rank)
    attributes.pop("auto_pad", None)
    per_group, m = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    x = whole(rng, int(rng.integers(1, 3)), group * per_group, *rng.integers(3, 6, rank))
    if seed % 3 == 0:
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in attributes["strides"]]
    elif seed % 3 == 1:
        dilations = attributes.get("dilations", [1] * rank)
        rows = zip(x.shape[2:], attributes["strides"], attributes["kernel_shape"], dilations, strict=True)
        attributes["output_shape"] = [(n - 1) * s + (k - 1) * d + 1 - int(rng.integers(0, 3)) for n, s, k, d in rows]
        attributes["auto_pad"] = str(rng.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
        attributes.pop("pads", None)
        if min(attributes["output_shape"]) < 1:
            return
    feeds = {"x": x, "w": whole(rng, group * per_group, m, *attributes["kernel_shape"]), "b": whole(rng, group * m)}
    node = helper.make_node("ConvTranspose", list(feeds), ["y"], group=group, **attributes)
    try:
        by_onnxruntime(of_node(node, feeds), feeds)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
        return  # an empty output
    agree(node, feeds, reference=False)


@pytest.mark.parametrize("seed", range(60))
def test_max_pool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    feeds = {"x": whole(rng, int(rng.integers(0, 3)), 2, *rng.integers(6, 10, rank))}
    if seed % 4 == 0:
        feeds["x"] = feeds["x"].astype(np.int8)
    agree(helper.make_node("MaxPool", ["x"], ["y"], **window(rng, rank, ceil=True)), feeds, reference=False)


@pytest.mark.parametrize("seed", range(20))
def test_max_pool_against_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attributes = window(rng, 2, ceil=True) | {"strides": [2, 1 + seed % 3]}
    if attributes.get("auto_pad") in ("SAME_LOWER", "SAME_UPPER"):
        return  # where it is wrong
    outputs = ["y", "indices"][: 1 + seed % 2]
    agree(helper.make_node("MaxPool", ["x"], outputs, **attributes), {"x": whole(rng, 2, 2, 7, 9)})


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("opset", [11, 19])
def test_average_pool(seed: int, opset: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    attributes = window(rng, rank, ceil=True, dilated=opset >= 19) | {"count_include_pad": seed % 2}
    x = whole(rng, int(rng.integers(0, 3)), 2, *rng.integers(6, 10, rank))
    agree(helper.make_node("AveragePool", ["x"], ["y"], **attributes), {"x": x}, opset, reference=False, close=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_average_pool_against_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 3))
    attributes = window(rng, rank, ceil=True, dilated=False) | {"count_include_pad": seed % 2, "auto_pad": "NOTSET"}
    model = of_node(helper.make_node("AveragePool", ["x"], ["y"], **attributes), {"x": np.zeros((1, 2, *[7] * rank), np.float32)}, 19)
    feeds = {"x": whole(rng, 1, 2, *[7] * rank)}
    np.testing.assert_allclose(run_reference(model, feeds)["y"], by_reference(model, feeds)[0], rtol=1e-6, atol=1e-6)


OPERATORS = {
    "lp_pool": ("LpPool", 17, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "p": 2}, [(2, 3, 7, 8)]),
    "global_max_pool_1d": ("GlobalMaxPool", 17, {}, [(2, 3, 7)]),
    "global_max_pool_2d": ("GlobalMaxPool", 17, {}, [(2, 3, 7, 5)]),
    "global_max_pool_3d": ("GlobalMaxPool", 17, {}, [(2, 3, 4, 5, 3)]),
    "lrn": ("LRN", 17, {"size": 3, "alpha": 0.1, "beta": 0.6, "bias": 2.0}, [(2, 7, 3, 4)]),
    **{f"batch_normalization_{n}": ("BatchNormalization", n, {"epsilon": 0.1}, [(2, 3, 4, 4), *[(3,)] * 4]) for n in (7, 9, 15)},
    "batch_normalization_flat": ("BatchNormalization", 15, {}, [(2, 3), *[(3,)] * 4]),
    **{f"softmax_{n}": ("Softmax", n, {}, [(2, 3, 4)]) for n in (7, 11, 13)},
    **{f"softmax_axis_{n}": ("Softmax", n, {"axis": 2}, [(2, 3, 4, 2)]) for n in (7, 11, 13)},
    **{f"log_softmax_{n}": ("LogSoftmax", n, {"axis": -2}, [(2, 3, 4)]) for n in (11, 13)},
    **{f"hardmax_{n}": ("Hardmax", n, {}, [(2, 3, 4)]) for n in (11, 13)},
    "erf": ("Erf", 13, {}, [(3, 4)]),
    "flatten": ("Flatten", 13, {"axis": 2}, [(2, 3, 4, 5)]),
    "flatten_empty": ("Flatten", 13, {}, [(0, 3, 4)]),
    "flatten_all": ("Flatten", 13, {"axis": 0}, [(2, 3)]),
    "gemm": ("Gemm", 13, {"alpha": 0.5, "beta": 2.0, "transB": 1}, [(3, 4), (5, 4), (5,)]),
    "gemm_transposed": ("Gemm", 9, {"transA": 1}, [(4, 3), (4, 5), (3, 1)]),
    "layer_normalization": ("LayerNormalization", 17, {"axis": -2}, [(2, 3, 4, 5), (4, 5), (4, 5)]),
    "gelu": ("Gelu", 20, {}, [(3, 4)]),
    "gelu_tanh": ("Gelu", 20, {"approximate": "tanh"}, [(3, 4)]),
    "matmul": ("MatMul", 13, {}, [(2, 3, 4), (4, 5)]),
    "hard_swish": ("HardSwish", 14, {}, [(3, 4)]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_as_onnxruntime(name: str) -> None:
    op, opset, attributes, shapes = OPERATORS[name]
    rng = np.random.default_rng(len(name))
    feeds = {f"x{i}": np.abs(rng.normal(size=shape)).astype(np.float32) - (0.5 if i == 0 else 0) for i, shape in enumerate(shapes)}
    agree(helper.make_node(op, list(feeds), ["y"], **attributes), feeds, opset, reference=False, close=2e-6)


def test_half_precision_accumulates_in_float32() -> None:
    feeds = {"x": np.full((1, 4096), 1, np.float16), "w": np.full((4096, 1), 1, np.float16)}
    for node in (helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Gemm", ["x", "w"], ["y"])):
        got = run_reference(of_node(node, feeds), feeds)["y"]
        assert got == 4096 and got.dtype == np.float16


def test_erf_to_the_last_bit() -> None:
    x = np.linspace(-7, 7, 1001)
    assert (run_float64(of_node(helper.make_node("Erf", ["x"], ["y"]), {"x": x}), {"x": x})["y"] == [math.erf(v) for v in x]).all()


@pytest.mark.parametrize("pads", [[1, 0, 2, 1], [-1, 2, 0, -2]])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(pads: list[int], mode: str) -> None:
    feeds = {"x": whole(np.random.default_rng(0), 4, 6), "pads": np.array(pads), "value": np.float32([2])[0:1].reshape(())}
    agree(helper.make_node("Pad", list(feeds), ["y"], mode=mode), feeds, 13, reference=False)
    agree(helper.make_node("Pad", ["x"], ["y"], mode=mode, pads=pads, value=2.0), {"x": feeds["x"]}, 10, reference=False)


def test_gather_elements_past_numpys_choose() -> None:
    rng = np.random.default_rng(0)
    feeds = {"x": whole(rng, 3, 100), "i": rng.integers(-100, 100, (2, 128))}
    agree(helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1), feeds, reference=False)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scale", [0.7, 1.5, 2.0])
def test_resize_and_upsample(mode: str, scale: float) -> None:
    feeds = {"x": whole(np.random.default_rng(0), 1, 2, 10, 10), "s": np.array([1, 1, scale, scale], np.float32)}
    close = 1e-5
    agree(helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode), feeds, 17, reference=False, close=close)
    agree(helper.make_node("Resize", ["x", "s"], ["y"], mode=mode), feeds, 10, reference=False, close=close)
    if scale >= 1:
        agree(helper.make_node("Upsample", ["x", "s"], ["y"], mode=mode), feeds, 9, reference=False, close=close)
        node = helper.make_node("Upsample", ["x"], ["y"], mode=mode, scales=[1.0, 1.0, scale, scale])
        agree(node, {"x": feeds["x"]}, 7, reference=False, close=close)


def test_quantization_rounds_in_float64_too() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 5)).astype(np.float32) * 3
    agree(helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"]), {"x": x}, close=1e-6)
    feeds = {"x": np.append(x, [[1e30, -1e30, 0, 1, 2]], axis=0).astype(np.float32), "s": np.float32(0.1), "z": np.int8(3)}
    agree(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]), {k: np.asarray(v) for k, v in feeds.items()}, reference=False)
    large = {"x": np.array([2**24 + 1, -(2**31)], np.int32), "s": np.array(0.5, np.float32)}
    got = run_float64(of_node(helper.make_node("DequantizeLinear", ["x", "s"], ["y"]), large), large)["y"]
    assert got.tolist() == [2**23 + 0.5, -(2.0**30)]


def test_integers_through_quantized_scales() -> None:
    model = text(
        """g (float[2,3] x) => (float[2,3] y, int8[2,3] q)
        <float s = {0.25}, int8 z = {1}> { q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"""
    )
    x = np.array([[0.3, 0.4, 100], [-100, 0.1, -0.2]], np.float32)
    got = run_float64(model, {"x": x})
    assert got["q"].dtype == np.int8 and got["q"].tolist() == [[2, 3, 127], [-128, 1, 0]]
    assert got["y"].dtype == np.float64 and got["y"].tolist() == [[0.25, 0.5, 31.5], [-32.25, 0.0, -0.25]]


def types_of(model: onnx.ModelProto) -> set[str]:
    """Returns the float types, other than double, that occur in the printed model."""
    return set(re.findall(r"b?float(?:16|32)?\b(?=[\[ (])", onnx.printer.to_text(model)))


def test_double_leaves_the_model_alone_and_no_float_behind() -> None:
    model = text(
        """g (float16[N] x, bool c) => (float16[N] y, seq(float16[N]) s) <float[1] w0 = {0.1}, float16[N] t> {
          w = Cast <to = 10> (w0)  n = Shape(x)  e = ConstantOfShape <value = float[1] {2}> (n)  e16 = Cast <to = 10> (e)
          h = Constant <value_float: float = 0.1> ()  h16 = Cast <to = 10> (h)
          f = Cast <to = 1> (x)  b = Cast <to = 16> (f)  x2 = Cast <to = 10> (b)
          t = If(c) <then_branch = a () => (float16[N] p) <float k = {0.5}> { k16 = CastLike(k, x2)  p = Mul(x2, k16) },
                     else_branch = b () => (float16[N] q) { q = Add(x2, w) }>
          u = Mul(t, h16)  y = Add(u, e16)  s = SequenceConstruct(y) }"""
    )
    onnx.checker.check_model(model, full_check=True)
    before = model.SerializeToString()
    wide = double(model)
    assert model.SerializeToString() == before
    assert types_of(model) and not types_of(wide)
    onnx.checker.check_model(wide, full_check=True)
    x = np.array([0.1, 70000, 1e-6])
    for c in (True, False):
        got = run_float64(model, {"x": x, "c": np.array(c)})
        t = x * 0.5 if c else x + float(np.float32(0.1))
        assert got["y"].dtype == np.float64 and isinstance(got["s"], list)
        np.testing.assert_allclose(got["y"], t * float(np.float32(0.1)) + 2, rtol=1e-15)
        np.testing.assert_array_equal(evaluator(model).run(None, {"x": x, "c": np.array(c)})[0], got["y"])
        np.testing.assert_array_equal(ReferenceEvaluator(wide).run(None, {"x": x, "c": np.array(c)})[0], got["y"])
        narrow = run_reference(model, {"x": x.astype(np.float16), "c": np.array(c)})["y"]
        assert narrow.dtype == np.float16 and np.isinf(narrow[1])


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16, FLOAT32])
def test_weights_of_every_float_type(dtype: int) -> None:
    values = numpy_helper.to_array(helper.make_tensor("w", dtype, [2, 2], [0.1, -3.0, 7.5, 1e-3]))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", dtype, [None, 2])],
        [helper.make_tensor_value_info("y", dtype, [None, 2])],
        [numpy_helper.from_array(values, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = np.array([[1.0, 2.0], [0.5, 4.0]]).astype(values.dtype)
    np.testing.assert_array_equal(run_float64(model, {"x": x})["y"], x.astype(np.float64) @ values.astype(np.float64))
    assert run_reference(model, {"x": x})["y"].dtype == values.dtype
    assert double(model).graph.initializer[0].data_type == DOUBLE


def test_constants_and_defaults_that_are_float() -> None:
    model = text(
        """g (int64[1] n) => (float[N] y) {
          z = ConstantOfShape(n)  one = Constant <value_float: float = 1.0> ()  many = Constant <value_floats: floats = [1.0, 2.0]> ()
          first = Constant <value = float[1] {3}> ()  w = HannWindow(n0)  n0 = Squeeze(n)
          a = Add(z, one)  b = ReduceSum(many)  c = Add(a, b)  d = Mul(c, first)  y = Add(d, w) }"""
    )
    order = [0, 1, 2, 3, 5, 4, 6, 7, 8, 9, 10]
    ordered = [onnx.NodeProto.FromString(model.graph.node[i].SerializeToString()) for i in order]
    del model.graph.node[:]
    model.graph.node.extend(ordered)
    got = run_float64(model, {"n": np.array([4])})["y"]
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, 12 + np.sin(np.pi * np.arange(4) / 4) ** 2, rtol=1e-14)


def test_sparse_weights() -> None:
    values, indices = helper.make_tensor("w", FLOAT32, [2], [2.0, 3.0]), helper.make_tensor("i", TensorProto.INT64, [2], [1, 4])
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    node = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    x = helper.make_tensor_value_info("x", FLOAT32, [2, 3])
    y = helper.make_tensor_value_info("y", FLOAT32, [2, 3])
    graph = helper.make_graph([node, helper.make_node("Sum", ["x", "w", "c"], ["y"])], "g", [x], [y], sparse_initializer=[sparse])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert double(model).graph.sparse_initializer[0].values.data_type == DOUBLE
    for run in (run_float64, run_reference):
        assert run(model, {"x": np.ones((2, 3), np.float32)})["y"].tolist() == [[1, 5, 1], [1, 7, 1]]


LOOP = """g (int64 n, bool c, float[2] x) => (float[2] y, float[M,2] all) <float[2] step = {0.5, 0.25}> {
  y, all = Loop(%s, x) <body = b (int64 i, bool go, float[2] v) => (bool again, float[2] w, float[2] seen) {
    again = Identity(go)  f = Cast <to = 1> (i)  s = Mul(step, f)  w = Add(v, s)  seen = Mul(w, x) }> }"""


@pytest.mark.parametrize("heads", ["n, c", "n, "])
@pytest.mark.parametrize("trips", [0, 1, 4])
def test_loop_with_captured_values(heads: str, trips: int) -> None:
    model = text(LOOP % heads)
    feeds = {"n": np.array(trips), "c": np.array(True), "x": np.array([1, 3], np.float32)}
    want = by_onnxruntime(model, feeds)
    for got in (run_float64(model, feeds), run_reference(model, feeds)):
        for name, value in zip(("y", "all"), want, strict=True):
            np.testing.assert_array_equal(got[name], value)


def test_loop_stacks_matrices() -> None:
    model = text(
        """g (int64 n, float[2,3] x) => (float[2,3] y, float[M,2,3] all) {
          y, all = Loop(n, , x) <body = b (int64 i, bool go, float[2,3] v) => (bool go2, float[2,3] w, float[2,3] seen)
            { go2 = Identity(go)  w = Add(v, v)  seen = Identity(w) }> }"""
    )
    feeds = {"n": np.array(2), "x": np.ones((2, 3), np.float32)}
    assert run_float64(model, feeds)["all"].shape == by_onnxruntime(model, feeds)[1].shape == (2, 2, 3)


FUNCTIONS = """g (float[N] x) => (float[N] y) { y = local.outer <to = 1> (x) }
<opset_import: ["": 18, "local": 1], domain: "local">
outer <to, alpha: float = 0.1> (x) => (y) {
  a = Constant <value_float: float = @alpha> ()  z = local.inner <alpha: float = @alpha> (x)  c = Cast <to: int = @to> (z)
  b = Softmax <axis = 0> (c)  y = Mul(b, a) }
<opset_import: ["": %d], domain: "local">
inner <alpha: float> (x) => (y) { h = Constant <value = float[1] {0.3}> ()  e = Elu <alpha: float = @alpha> (x)  y = Add(e, h) }"""


def test_local_functions() -> None:
    x = np.array([-1.5, 0.2, 2])
    alpha, shift = float(np.float32(0.1)), float(np.float32(0.3))
    e = np.where(x > 0, x, alpha * np.expm1(x)) + shift
    want = np.exp(e) / np.exp(e).sum() * alpha
    model = text(FUNCTIONS % 18)
    assert not double(model).functions
    got = run_float64(model, {"x": x})["y"]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    np.testing.assert_allclose(run_reference(model, {"x": x.astype(np.float32)})["y"], want, rtol=1e-6)


def test_local_function_of_another_opset_is_widened_where_it_stands() -> None:
    model = text((FUNCTIONS % 12).replace("Elu <alpha: float = @alpha> (x)", "Softmax (x)"))
    assert [f.name for f in double(model).functions] == ["inner"]
    x = np.array([[-1.5, 0.2, 2]])
    model.graph.input[0].type.tensor_type.shape.dim.add()
    e = np.exp(x) / np.exp(x).sum() + float(np.float32(0.3))
    got = run_float64(model, {"x": x})["y"]
    np.testing.assert_allclose(got, np.full((1, 3), float(np.float32(0.1))), rtol=1e-14)
    assert e.shape == got.shape


def test_what_can_only_be_float32_is_cast() -> None:
    model = text(
        "g (int64[2] i, float[2,2] x) => (float[2,2] y) { s = ai.onnx.ml.OneHotEncoder <cats_int64s = [1, 2]> (i)  y = Add(s, x) }"
    )
    got = run_float64(model, {"i": np.array([2, 1]), "x": np.full((2, 2), 0.1)})["y"]
    assert got.dtype == np.float64 and got.tolist() == [[0.1, 1.1], [1.1, 0.1]]


def test_functions_of_the_operator_set_are_widened() -> None:
    """GroupNormalization casts to float32 in its definition, MeanVarianceNormalization adds a float32 constant."""
    rng = np.random.default_rng(0)
    x, scale, b = rng.normal(size=(2, 4, 5)), rng.normal(size=4), rng.normal(size=4)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
    model = of_node(node, {k: v.astype(np.float32) for k, v in {"x": x, "s": scale, "b": b}.items()}, 21)
    rows = x.reshape(2, 2, -1)
    unit = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + float(np.float32(1e-5)))
    want = unit.reshape(x.shape) * scale[:, None] + b[:, None]
    np.testing.assert_allclose(run_float64(model, {"x": x, "s": scale, "b": b})["y"], want, rtol=1e-12, atol=1e-14)
    plain = {"x": rng.normal(size=(2, 3, 2, 2))}
    model = of_node(helper.make_node("MeanVarianceNormalization", ["x"], ["y"]), {"x": plain["x"].astype(np.float32)}, 13)
    assert run_float64(model, plain)["y"].dtype == np.float64


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_recurrent_operators_are_right_or_refused(op: str) -> None:
    rng = np.random.default_rng(0)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    feeds = {"x": rng.normal(size=(5, 2, 3)), "w": rng.normal(size=(1, gates * 4, 3)), "r": rng.normal(size=(1, gates * 4, 4))}
    feeds = {k: v.astype(np.float32) for k, v in feeds.items()}
    agree(helper.make_node(op, list(feeds), ["y", "h"], hidden_size=4), feeds, reference=False, close=1e-5)
    feeds["lengths"] = np.array([5, 5], np.int32)
    node = helper.make_node(op, ["x", "w", "r", "", "lengths"], ["y", "h"], hidden_size=4)
    agree(node, feeds, reference=False, close=1e-5)
    with pytest.raises(OracleError, match="lengths"):
        run_float64(of_node(node, feeds), feeds | {"lengths": np.array([5, 3], np.int32)})
    del feeds["lengths"]
    with pytest.raises(OracleError, match="clip"):
        run_float64(of_node(helper.make_node(op, list(feeds), ["y", "h"], hidden_size=4, clip=1.0), feeds), feeds)


def test_old_opsets_are_refused() -> None:
    with pytest.raises(OracleError, match="opset 6"):
        evaluator(of_node(helper.make_node("Relu", ["x"], ["y"]), {"x": np.zeros(1, np.float32)}, 6))


def test_empty_images() -> None:
    feeds = {"x": np.zeros((1, 4, 0, 5), np.float32), "w": np.zeros((6, 4, 3, 3), np.float32)}
    assert run_float64(of_node(helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]), feeds), feeds)["y"].shape == (1, 6, 0, 5)
    feeds = {"x": np.zeros((0, 4, 3), np.float32), "w": np.ones((4, 2, 3), np.float32)}
    assert run_float64(of_node(helper.make_node("ConvTranspose", ["x", "w"], ["y"]), feeds), feeds)["y"].shape == (0, 2, 5)


@functools.cache
def recorded() -> dict[str, Any]:
    """Returns onnx's own node tests by name."""
    return {case.name: case for case in collect_testcases(None)}


SAMPLE = ("conv", "averagepool", "maxpool", "lppool", "batchnorm", "softmax", "logsoftmax", "hardmax", "layer_normalization", "resize")
SAMPLE += (
    "gemm",
    "matmul",
    "erf",
    "gelu",
    "lrn",
    "loop",
    "if",
    "scan9",
    "quantize",
    "dequantize",
    "lstm",
    "gru",
    "pad",
    "upsample",
    "flatten",
)
SAMPLE += (
    "gather_elements",
    "group_normalization",
    "instancenorm",
    "mvn",
    "basic_conv",
    "globalmaxpool",
    "globalaveragepool",
    "convtranspose",
)
RANDOM_OR_TIED = ("bernoulli", "if_opt", "image_decoder", "adam", "not_", "scan_sum", "scatter_with", "bitcast", "dynamicquantizelinear")
LOOSE = ("bf16", "bfloat16", "fp16", "float16", "BFLOAT16", "FLOAT16")


def check_recorded(case: Any) -> None:
    """Checks the oracle on a recorded node test; a half precision is held to its own resolution."""
    close = 2e-2 if any(word in case.name for word in LOOSE) else max(case.rtol, 1e-5)
    for inputs, outputs in case.data_sets:
        arrays = [numpy_helper.to_array(v) if isinstance(v, TensorProto) else v for v in inputs]
        feeds = {i.name: a for i, a in zip(case.model.graph.input, arrays, strict=True)}
        for run in (run_reference, run_float64):
            for got, want in zip(run(case.model, feeds).values(), outputs, strict=True):
                want = numpy_helper.to_array(want) if isinstance(want, TensorProto) else want
                if isinstance(want, np.ndarray) and want.dtype.kind in "fiub":
                    assert got.shape == want.shape and (run is run_float64 or got.dtype == want.dtype)
                    assert got.dtype not in (np.float16, np.float32) or run is run_reference
                    np.testing.assert_allclose(
                        got.astype(np.float64), want.astype(np.float64), rtol=close, atol=max(case.atol, 1e-6, close / 10)
                    )


def test_recorded_node_tests() -> None:
    """A sample of them, all of the operators written here."""
    names = [n for n in recorded() if n.removeprefix("test_").startswith(SAMPLE) and not any(w in n for w in RANDOM_OR_TIED)]
    assert len(names) > 200
    for name in names:
        check_recorded(recorded()[name])


MODELS = Path(__file__).parents[3] / "shared" / "models"


@pytest.mark.slow
@pytest.mark.skipif(not MODELS.is_dir(), reason="the real models are not here")
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.name.partition(".")[0])
def test_real_models(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MODELS))
    feeds, restore = importlib.import_module("feeds"), importlib.import_module("restore")
    model = restore.restore(str(path)) if path.name.endswith(".stripped.onnx") else onnx.load(path)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    fed = feeds.feed(session, "ocr_mobile_v2.0_cls" if path.name == "ppocr_cls.onnx" else path.name)
    got = run_float64(model, fed)
    for name, want in zip(got, by_onnxruntime(model, fed), strict=True):
        assert got[name].dtype == (np.float64 if want.dtype.kind == "f" else want.dtype)
        assert np.abs(got[name] - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.slow
def test_all_recorded_node_tests() -> None:
    for name, case in recorded().items():
        if not any(word in name for word in RANDOM_OR_TIED):
            check_recorded(case)
