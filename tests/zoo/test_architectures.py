"""Every zoo graph: published sizes, valid, nothing dead, finite outputs in which an error would show."""

import math
import re
from collections import Counter
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from cgorl import zoo
from tests.zoo.variants import VARIANTS, unbatched

Array = NDArray[np.float32]


@pytest.fixture(scope="module", params=VARIANTS)
def model(request: pytest.FixtureRequest) -> onnx.ModelProto:
    name, params = VARIANTS[request.param]
    return zoo.build(name, batch=1 if unbatched(request.param) else 2, **params)


def _all(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(y, np.float32) for y in session.run(None, feeds)]


def _run(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    """Returns the only output, or all in one row."""
    found = _all(model, feeds)
    return found[0] if len(found) == 1 else np.concatenate([y.ravel() for y in found])


def _dims(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    return tuple(dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim)


def _sample(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shapes = {value.name: tuple(int(dim) for dim in _dims(value)) for value in model.graph.input}
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def _rms(array: Array) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64))))


def _operators(model: onnx.ModelProto) -> Counter[str]:
    """Returns operator counts in TASO's way: a relu that is a conv's only user is counted with it, as conv_r."""
    users = Counter(source for node in model.graph.node for source in node.input)
    convs = {node.output[0] for node in model.graph.node if node.op_type == "Conv" and users[node.output[0]] == 1}
    counts = Counter(node.op_type for node in model.graph.node)
    fused = sum(node.op_type == "Relu" and node.input[0] in convs for node in model.graph.node)
    counts.update({"conv_r": fused, "Conv": -fused, "Relu": -fused})
    return +counts


def test_it_is_valid_onnx_of_the_declared_shape(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    for output, given, y in zip(inferred.graph.output, model.graph.output, _all(model, _sample(model, 0)), strict=True):
        assert _dims(output) == _dims(given) == y.shape


def test_every_name_in_every_form_is_here() -> None:
    chosen = {(name, params.get("form", zoo.defaults(name).get("form"))) for name, params in VARIANTS.values()}
    for name in zoo.names():
        if "form" not in zoo.defaults(name):
            assert (name, None) in chosen
            continue
        with pytest.raises(zoo.ZooError) as caught:  # which names the forms
            zoo.build(name, form="?")
        forms = set(re.findall(r"'(\w+)'", str(caught.value)))
        assert len(forms) >= 2 and {(name, form) for form in forms} <= chosen


def test_every_node_reaches_an_output(model: onnx.ModelProto) -> None:
    """From the outputs back; `cgorl.load` and simplify would drop what this finds."""
    makers = {output: node for node in model.graph.node for output in node.output}
    alive, stack = set(), [value.name for value in model.graph.output]
    while stack:
        name = stack.pop()
        if name in makers and makers[name].name not in alive:
            alive.add(makers[name].name)
            stack += makers[name].input
    assert alive == {node.name for node in model.graph.node}


def test_nothing_is_dead_or_unnamed(model: onnx.ModelProto) -> None:
    graph = model.graph
    used = {source for node in graph.node for source in node.input if source} | {value.name for value in graph.output}
    produced = [output for node in graph.node for output in node.output] + [tensor.name for tensor in graph.initializer]
    assert used == set(produced) | {value.name for value in graph.input}
    assert len(set(produced)) == len(produced)
    assert len({node.name for node in graph.node}) == len(graph.node)
    assert all(node.name and ".." not in node.name for node in graph.node)


def test_outputs_show_what_happens_inside(model: onnx.ModelProto) -> None:
    x, other = _sample(model, 0), _sample(model, 1)
    y = _run(model, x)
    assert np.isfinite(y).all()
    assert (0.1 if model.graph.name == "nasrnn" else 0.3) < y.std() < 5  # what leaves NasRNN is a product of gates
    assert _rms(y - _run(model, other)) > 0.04 * y.std()
    # A small error is neither hidden nor blown up on its way through the network.
    nudged = _run(model, {name: x[name] + np.float32(1e-3) * other[name] for name in x})
    assert 1e-4 < _rms(y - nudged) / y.std() < 2e-2
    weights = [tensor for tensor in model.graph.initializer if len(tensor.dims) in (2, 4)]
    for i in np.linspace(0, len(weights) - 1, 5).astype(int):
        original = weights[i].raw_data
        weights[i].raw_data = np.flip(numpy_helper.to_array(weights[i])).tobytes()
        error = _rms(y - _run(model, x)) / y.std()
        weights[i].raw_data = original
        assert error > 0.02, weights[i].name


def test_batchnorm_statistics_are_far_from_trivial(model: onnx.ModelProto) -> None:
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    for part, trivial in enumerate([1.0, 0.0, 0.0, 1.0], start=1):
        arrays = [weights[node.input[part]] for node in norms]
        assert all(np.abs(array - trivial).mean() > 0.02 for array in arrays)
        assert all(array.min() > 0 for array in arrays if part == 4)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("inception_v3", 23_834_568),
        ("resnet50", 25_557_032),
        ("resnext50", 25_028_904),
        ("repvgg_a0", 9_108_968),
        ("resnet18", 11_689_512),
        ("mobilenet_v2", 3_504_872),
        ("squeezenet1_1", 1_235_496),
        ("vit", 5_717_416 - 198 * 192),  # DeiT-Ti without its class token and learned positions
        ("bert", 4 * (12 * 512**2 + 13 * 512)),
    ],
)
def test_parameter_counts_are_the_published_ones(name: str, published: int) -> None:
    weights = zoo.build(name).graph.initializer
    counted = [tensor for tensor in weights if not tensor.name.startswith("constant/") and not tensor.name.endswith((".mean", ".var"))]
    assert sum(int(np.prod(tensor.dims)) for tensor in counted) == published


def test_taso_inception_has_the_119_operators() -> None:
    model = zoo.build("inception_v3", form="taso", width=0.125)
    assert _operators(model) == {"conv_r": 94, "AveragePool": 10, "Concat": 11, "MaxPool": 4}
    assert _dims(model.graph.output[0]) == (1, 256, 8, 8)


def test_taso_resnet_has_the_84_operators() -> None:
    model = zoo.build("resnet50", form="taso")
    assert _operators(model) == {"conv_r": 36, "Conv": 16, "Add": 16, "Relu": 16}
    assert _dims(model.graph.input[0]) == (1, 64, 56, 56)
    assert _dims(model.graph.output[0]) == (1, 2048, 7, 7)


def test_taso_resnext_has_the_86_operators() -> None:
    model = zoo.build("resnext50", form="taso", width=0.25)
    assert _operators(model) == {"conv_r": 37, "Conv": 16, "Add": 16, "Relu": 16, "MaxPool": 1}
    assert len(model.graph.initializer) == 53
    assert _dims(model.graph.output[0]) == (1, 512, 7, 7)
    assert Counter(_group(node) for node in model.graph.node if node.op_type == "Conv") == {1: 37, 32: 16}


def test_taso_nasnet_has_the_383_operators() -> None:
    model = zoo.build("nasnet_a", width=0.0625)
    assert _operators(model) == {"Conv": 180, "conv_r": 37, "Add": 90, "AveragePool": 51, "Concat": 18, "MaxPool": 7}
    assert len(model.graph.initializer) == 217
    assert _dims(model.graph.output[0]) == (1, 5 * 64, 7, 7)
    assert sum(_group(node) > 1 for node in model.graph.node if node.op_type == "Conv") == 90


def test_taso_nasrnn_has_the_230_operators() -> None:
    model = zoo.build("nasrnn", hidden=16)
    assert _operators(model) == {"MatMul": 80, "Add": 55, "Mul": 20, "Sigmoid": 25, "Tanh": 40, "Relu": 10}
    assert (len(model.graph.input), len(model.graph.initializer)) == (5, 81)


COUNTS: dict[str, tuple[dict[str, Any], dict[str, int], int, int]] = {
    "bert": ({"hidden": 64}, {"MatMul": 48, "Reshape": 32, "Transpose": 32, "Relu": 1}, 128, 32),
    "vit": ({"hidden": 48}, {"MatMul": 96, "Reshape": 48, "Transpose": 48, "Add": 24, "Relu": 1}, 264, 72),
    "transformer_transducer": (
        {"hidden": 64},
        {"MatMul": 116, "Reshape": 56, "Transpose": 56, "Add": 28, "Relu": 15, "Concat": 1},
        324,
        88,
    ),
    "inception_v3": ({"width": 0.125}, {"conv_r": 94, "AveragePool": 10, "Concat": 11, "MaxPool": 4}, 153, 94),
    "nasnet_a": (
        {"width": 0.0625},
        {"Conv": 180, "conv_r": 37, "Add": 90, "AveragePool": 51, "Concat": 18, "MaxPool": 7},
        544,
        217,
    ),
    "resnet50": ({"width": 0.125}, {"conv_r": 36, "Conv": 16, "Add": 16, "Relu": 16}, 98, 52),
    "resnext50": ({"width": 0.25}, {"conv_r": 37, "Conv": 16, "Add": 16, "Relu": 16, "MaxPool": 1}, 101, 53),
}
"""TASO's graphs as published: what shrinks them, operators, edges between them, weights."""


@pytest.mark.parametrize("name", COUNTS)
def test_tasos_graphs_have_the_published_operators_edges_and_weights(name: str) -> None:
    params, operators, edges, weights = COUNTS[name]
    model = zoo.build(name, form="taso", **params)
    found = _operators(model)
    made = {output for node in model.graph.node for output in node.output}
    between = sum(source in made for node in model.graph.node for source in node.input)
    assert found == operators
    assert between - found["conv_r"] == edges
    assert sum(not tensor.name.startswith("constant/") for tensor in model.graph.initializer) == weights


@pytest.mark.parametrize(
    ("name", "params", "operators"),
    [
        (
            "squeezenet1_1",
            {"width": 0.25},
            {"Conv": 26, "Reshape": 26, "Add": 26, "Relu": 26, "Concat": 8, "MaxPool": 3, "GlobalAveragePool": 1},
        ),
        (
            "mobilenet_v2",
            {"width": 0.25},
            {"Conv": 54, "BatchNormalization": 53, "Relu": 36, "Add": 10, "GlobalAveragePool": 1, "Flatten": 1},
        ),
        ("vgg19", {"width": 0.0625}, {"conv_r": 16, "Relu": 2, "MaxPool": 5, "MatMul": 3, "Flatten": 3, "Transpose": 3, "Dropout": 2}),
        ("resnet18", {"width": 0.125}, {"conv_r": 12, "Conv": 8, "Add": 8, "Relu": 8, "MaxPool": 1}),
    ],
)
def test_other_graphs_in_tasos_operators(name: str, params: dict[str, Any], operators: dict[str, int]) -> None:
    assert _operators(zoo.build(name, form="taso", **params)) == operators


@pytest.mark.parametrize("n", [1, 2, 6])
def test_the_small_families_have_5_and_13_operators_a_block(n: int) -> None:
    assert _operators(zoo.build("resnet_n", n=n, width=0.125)) == {"conv_r": 2 * n, "Conv": n, "Add": n, "Relu": n}
    assert _operators(zoo.build("inception_e_n", n=n, width=0.0625)) == {"conv_r": 9 * n, "MaxPool": n, "Concat": 3 * n}
    assert _dims(zoo.build("resnet_n").graph.input[0]) == (1, 256, 14, 14)
    assert _dims(zoo.build("inception_e_n", n=1).graph.input[0]) == (1, 1280, 8, 8)


def test_real_nasnet_has_a_relu_before_each_separable_conv() -> None:
    taso, real, export = (zoo.build("nasnet_a", form=form, width=0.0625, image=32) for form in ("taso", "real", "export"))
    kinds = Counter(node.op_type for node in real.graph.node)
    assert kinds - Counter(node.op_type for node in taso.graph.node) == {"Conv": 180, "Relu": 180}  # 90 separable convs once more
    makers = {node.output[0]: node.op_type for node in real.graph.node}
    depthwise = [node for node in real.graph.node if _group(node) > 1]
    assert len(depthwise) == 180 and all(makers[node.input[0]] == "Relu" for node in depthwise)
    more = Counter(node.op_type for node in export.graph.node) - kinds
    assert more == {"BatchNormalization": 217, "Relu": 1, "GlobalAveragePool": 1, "Flatten": 1, "Gemm": 1}


def _group(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "group"), 1)


def test_export_forms_keep_batchnorm_apart() -> None:
    tail = {"GlobalAveragePool": 1, "Flatten": 1, "Gemm": 1}
    inception = _operators(zoo.build("inception_v3", width=0.125))
    assert inception == tail | {"Conv": 94, "BatchNormalization": 94, "Relu": 94, "MaxPool": 4, "AveragePool": 9, "Concat": 15}
    resnet = _operators(zoo.build("resnet50", width=0.125))
    assert resnet == tail | {"Conv": 53, "BatchNormalization": 53, "Relu": 49, "MaxPool": 1, "Add": 16}
    resnext = _operators(zoo.build("resnext50", width=0.25))
    assert resnext == resnet
    resnet = _operators(zoo.build("resnet18", width=0.125))
    assert resnet == tail | {"Conv": 20, "BatchNormalization": 20, "Relu": 17, "MaxPool": 1, "Add": 8}
    mobilenet = _operators(zoo.build("mobilenet_v2", width=0.125))
    assert mobilenet == tail | {"Conv": 52, "BatchNormalization": 52, "Clip": 35, "Add": 10}
    yolo = _operators(zoo.build("yolo_csp", width=0.125))
    assert yolo["Conv"] - 3 == yolo["BatchNormalization"] == yolo["Sigmoid"] == yolo["Mul"] == 59
    repvgg = _operators(zoo.build("repvgg_a0", width=0.125))
    assert repvgg == tail | {"Conv": 44, "BatchNormalization": 61, "Relu": 22, "Add": 39}


@pytest.mark.parametrize(
    ("name", "depth", "convs"),
    [
        ("resnet50", (1, 1, 1, 1), 17),
        ("inception_v3", (1, 1, 1), 41),
        ("repvgg_a0", (1, 1, 1, 1), 10),
        ("squeezenet1_1", (1, 2, 1, 3), 23),
    ],
)
def test_depth_is_a_parameter(name: str, depth: tuple[int, ...], convs: int) -> None:
    model = zoo.build(name, width=0.125, depth=depth, classes=7)
    assert sum(node.op_type == "Conv" for node in model.graph.node) == convs
    assert _dims(model.graph.output[0]) == (1, 7)


def test_dynamic_bert_runs_at_two_sizes() -> None:
    sizes = {"layers": 2, "hidden": 32, "heads": 4}
    model = zoo.build("bert", batch="batch", seq="seq", **sizes)
    onnx.checker.check_model(model, full_check=True)
    assert _dims(model.graph.input[0]) == _dims(model.graph.output[0]) == ("batch", "seq", 32)
    for batch, seq in [(1, 5), (3, 9)]:
        fixed = zoo.build("bert", batch=batch, seq=seq, **sizes)
        np.testing.assert_array_equal(_run(model, _sample(fixed, 0)), _run(fixed, _sample(fixed, 0)))


def test_bert_is_the_encoder_as_published() -> None:
    model = zoo.build("bert", layers=1, hidden=24, heads=3, seq=7, batch=2, intermediate=40)
    x = _sample(model, 0)
    np.testing.assert_allclose(_run(model, x), _encoder_layer(model, x["input"].astype(np.float64)), atol=2e-5)


def test_bare_attention_is_alive_and_its_keys_are_transposed() -> None:
    model = zoo.build("bert", form="taso", layers=1, hidden=24, heads=3, seq=7)
    x = _sample(model, 0)
    weights = {t.name.removeprefix("layer0/attention/"): numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}
    tokens = np.maximum(x["input"].astype(np.float64), 0)
    query, key, value = (tokens @ weights[f"{part}/matmul.weight"] for part in ("query", "key", "value"))
    heads = [query[:, c] @ key[:, c].T @ value[:, c] for c in (slice(0, 8), slice(8, 16), slice(16, 24))]
    np.testing.assert_allclose(_run(model, x), np.concatenate(heads, -1) @ weights["output/matmul.weight"], atol=2e-5)


def _encoder_layer(model: onnx.ModelProto, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns one post-norm encoder layer of x (batch, seq, hidden), head by head, in float64."""
    weights = {t.name.removeprefix("layer0/"): numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer}
    erf = np.vectorize(math.erf)

    def linear(x: NDArray[np.float64], label: str) -> NDArray[np.float64]:
        return np.matmul(x, weights[f"{label}/matmul.weight"]) + weights[f"{label}/add.bias"]

    def norm(x: NDArray[np.float64], label: str) -> NDArray[np.float64]:
        centred = x - x.mean(-1, keepdims=True)
        return np.asarray(centred / centred.std(-1, keepdims=True) * weights[f"{label}.scale"] + weights[f"{label}.bias"])

    query, key, value = (linear(x, f"attention/{part}") for part in ("query", "key", "value"))
    heads = []
    for columns in (slice(0, 8), slice(8, 16), slice(16, 24)):
        scores = np.einsum("bsk,btk->bst", query[..., columns], key[..., columns]) / np.sqrt(8)
        share = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        heads.append(share @ value[..., columns])
    x = norm(x + linear(np.concatenate(heads, -1), "attention/output"), "attention/norm")
    up = linear(x, "mlp/up")
    return norm(x + linear(up * (1 + erf(up / np.sqrt(2))) / 2, "mlp/down"), "mlp/norm")
