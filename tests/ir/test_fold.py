"""Constants are computed ahead where the file does not grow for it, by whichever runtime can, and never what may not be."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh

from cgorl.ir.build import Builder
from cgorl.ir.fold import SMALL_BYTES, fold_native, fold_rewrites
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.ir.onnx_io import load, save
from cgorl.ir.simplify import simplify
from cgorl.ir.to_proto import complete
from tests.bits import outputs, same


def build(
    nodes: Sequence[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    opset: int = 17,
    dims: Sequence[int | None] = (2, 3),
    dtype: int = T.FLOAT,
) -> onnx.ModelProto:
    """A model of input x and output y of any shape."""
    x, y = oh.make_tensor_value_info("x", dtype, list(dims)), oh.make_tensor_value_info("y", dtype, None)
    graph = oh.make_graph(list(nodes), "g", [x], [y], [nh.from_array(a, n) for n, a in weights.items()])
    return oh.make_model(graph, ir_version=10, opset_imports=[oh.make_opsetid("", opset)])


def ops(graph: Graph) -> Counter[str]:
    return Counter(n.op for n in graph.nodes.values() if not n.is_source)


def simplified(model: onnx.ModelProto, run: bool = True) -> Graph:
    """The simplified graph, which is no larger and gives the same bits."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    before = from_proto(copy)
    after = simplify(before).graph
    written = complete(after)
    assert written.ByteSize() <= model.ByteSize() + SMALL_BYTES * sum(not n.is_source for n in before.nodes.values())
    assert not simplify(after).steps
    if run:
        kind = model.graph.input[0].type.tensor_type
        given = {"x": np.ones([d.dim_value for d in kind.shape.dim], oh.tensor_dtype_to_np_dtype(kind.elem_type))}
        assert same(outputs(model, given), outputs(written, given))
    return after


node = oh.make_node
BIG = np.zeros((SMALL_BYTES // 4 + 4,), np.float32)


def test_a_large_result_takes_the_place_of_the_weight_it_rests_on() -> None:
    weight = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    model = build([node("Transpose", ["w"], ["t"]), node("MatMul", ["x", "t"], ["y"])], {"w": weight}, dims=(2, 200))
    assert ops(simplified(model)) == Counter(MatMul=1)


def test_a_large_result_beside_the_weight_it_rests_on_is_not_made() -> None:
    """Tied weights stay one: an embedding read as it is and transposed."""
    weight = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    nodes = [node("Transpose", ["w"], ["t"]), node("MatMul", ["x", "t"], ["z"]), node("MatMul", ["z", "w"], ["y"])]
    assert ops(simplified(build(nodes, {"w": weight}, dims=(2, 200)))) == Counter(Transpose=1, MatMul=2)


def test_two_large_results_do_not_both_take_the_place_of_one_weight() -> None:
    weight = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    nodes = [
        node("Transpose", ["w"], ["t"]),
        node("Neg", ["w"], ["n"]),
        node("MatMul", ["x", "t"], ["z"]),
        node("MatMul", ["z", "n"], ["y"]),
    ]
    assert ops(simplified(build(nodes, {"w": weight}, dims=(2, 200)))) == Counter(Transpose=1, Neg=1, MatMul=2)


def test_all_parts_of_a_split_weight_take_its_place() -> None:
    weight = np.arange(120_000, dtype=np.float32).reshape(200, 600)
    nodes = [node("Split", ["w"], ["a", "b", "c"], axis=1), *(node("MatMul", ["x", n], [f"y{n}"]) for n in "abc")]
    nodes.append(node("Sum", ["ya", "yb", "yc"], ["y"]))
    assert ops(simplified(build(nodes, {"w": weight}, opset=13, dims=(2, 200)))) == Counter(MatMul=3, Sum=1)


def test_a_part_of_a_split_weight_whose_other_part_is_shown_elsewhere_does_not() -> None:
    weight = np.arange(120_000, dtype=np.float32).reshape(200, 600)
    nodes = [node("Split", ["w"], ["a", "b", "c"], axis=1), node("MatMul", ["x", "a"], ["z"]), node("Gemm", ["z", "w"], ["y"])]
    assert ops(simplified(build(nodes, {"w": weight}, opset=13, dims=(2, 200)))) == Counter(Split=1, MatMul=1, Gemm=1)


def test_a_dead_reader_does_not_hold_a_weight() -> None:
    weight = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    nodes = [node("MatMul", ["x", "w"], ["dead"]), node("Transpose", ["w"], ["t"]), node("MatMul", ["x", "t"], ["y"])]
    assert ops(simplified(build(nodes, {"w": weight}, dims=(2, 200)))) == Counter(MatMul=1)


def test_a_large_result_of_little_stays_an_expression_whose_operands_are_computed() -> None:
    shape = np.array([2, 40_000], np.int64)
    nodes = [node("Mul", ["s", "one"], ["t"]), node("Neg", ["f"], ["g"]), node("Expand", ["g", "t"], ["e"]), node("Add", ["x", "e"], ["y"])]
    weights = {"s": shape, "one": np.array([1, 1], np.int64), "f": np.array([[3]], np.float32)}
    assert ops(simplified(build(nodes, weights, dims=(1, 1)))) == Counter(Expand=1, Add=1)


@pytest.mark.parametrize(("size", "left"), [(SMALL_BYTES // 4, 0), (SMALL_BYTES // 4 + 1, 1)])
def test_constant_of_shape_up_to_the_limit(size: int, left: int) -> None:
    model = build([node("ConstantOfShape", ["s"], ["c"]), node("Add", ["x", "c"], ["y"])], {"s": np.array([size])}, dims=(1,))
    assert ops(simplified(model))["ConstantOfShape"] == left


def test_nothing_huge_is_made_on_the_way_to_something_small() -> None:
    """40 GB, at once and by doubling."""
    doubling = [node("Expand", ["c", "s"], ["c0"]), *(node("Concat", [f"c{k}", f"c{k}"], [f"c{k + 1}"], axis=0) for k in range(10))]
    ends = [node("ReduceSum", ["c10"], ["r"]), node("Add", ["x", "r"], ["y"])]
    weights = {"c": np.ones(1, np.float32), "s": np.array([3000, 3000])}
    assert ops(simplified(build(doubling + ends, weights), run=False)) == Counter(Expand=1, Concat=10, ReduceSum=1, Add=1)
    at_once = [node("Expand", ["c", "s"], ["e"]), node("ReduceSum", ["e"], ["r"]), node("Add", ["x", "r"], ["y"])]
    weights = {"c": np.ones(1, np.float32), "s": np.array([100_000, 100_000])}
    assert ops(simplified(build(at_once, weights), run=False)) == Counter(Expand=1, ReduceSum=1, Add=1)
    unknown = [node("Abs", ["s"], ["t"]), node("NonZero", ["t"], ["u"]), node("Expand", ["c", "v"], ["e"])]
    unknown += [
        node("Mul", ["u", "big"], ["m"]),
        node("Squeeze", ["m"], ["v"]),
        node("ReduceSum", ["e"], ["r"]),
        node("Add", ["x", "r"], ["y"]),
    ]
    assert ops(simplified(build(unknown, weights | {"big": np.array(100_000)}), run=False))["Add"] == 1


def test_a_diamond_of_constants_is_walked_once() -> None:
    nodes = [node("Add", [f"c{k}", f"c{k}"], [f"c{k + 1}"]) for k in range(60)] + [node("Add", ["x", "c60"], ["y"])]
    assert ops(simplified(build(nodes, {"c0": np.ones(3, np.float32)}))) == Counter(Add=1)


def test_a_chain_of_constants_that_all_are_read_takes_linear_time() -> None:
    nodes = []
    for k in range(3000):
        nodes += [node("Add", [f"c{k}", "one"], [f"c{k + 1}"]), node("Add", [f"x{k}" if k else "x", f"c{k + 1}"], [f"x{k + 1}"])]
    nodes.append(node("Relu", ["x3000"], ["y"]))
    graph = from_proto(build(nodes, {"c0": np.ones(3, np.float32), "one": np.ones(3, np.float32)}))
    start = time.process_time()
    assert ops(simplify(graph).graph) == Counter(Add=3000, Relu=1)
    assert time.process_time() - start < 15


# ---------------------------------------------------------------- what may not be computed


def test_quantization_stays() -> None:
    nodes = [
        node("QuantizeLinear", ["w", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Add", ["x", "d"], ["y"]),
    ]
    weights = {"w": np.ones((2, 3), np.float32), "s": np.array(0.5, np.float32), "z": np.array(3, np.uint8)}
    assert ops(simplified(build(nodes, weights))) == Counter(QuantizeLinear=1, DequantizeLinear=1, Add=1)


def test_what_stands_on_a_dequantized_weight_stays() -> None:
    nodes = [node("DequantizeLinear", ["q", "s"], ["d"]), node("Transpose", ["d"], ["t"]), node("MatMul", ["x", "t"], ["y"])]
    assert ops(simplified(build(nodes, {"q": np.ones((2, 3), np.uint8), "s": np.array(0.5, np.float32)})))["Transpose"] == 1


@pytest.mark.parametrize(
    "random",
    [
        node("RandomNormalLike", ["w"], ["r"], seed=1.0),
        node("RandomUniform", [], ["r"], shape=[2, 3]),
        node("Bernoulli", ["w"], ["r"]),
        node("Dropout", ["w", "half", "yes"], ["r"]),
        node("other", ["w"], ["r"], domain="other"),
        node("If", ["unknown"], ["r"], then_branch=oh.make_graph([], "t", [], [oh.make_tensor_value_info("w", T.FLOAT, [2, 3])]),
             else_branch=oh.make_graph([], "e", [], [oh.make_tensor_value_info("w", T.FLOAT, [2, 3])])),
    ],
    ids=lambda n: n.op_type,
)  # fmt: skip
def test_what_is_no_constant_stays(random: onnx.NodeProto) -> None:
    weights = {"w": np.ones((2, 3), np.float32), "half": np.array(0.5, np.float32), "yes": np.array(True)}
    unknown = [node("ReduceMax", ["x"], ["m"], keepdims=0), node("Cast", ["m"], ["unknown"], to=T.BOOL)]
    model = build([*unknown, random, node("Neg", ["r"], ["n"]), node("Add", ["x", "n"], ["y"])], weights)
    found = ops(simplified(model, run=False))
    assert found[random.op_type] == 1 and found["Neg"] == 1


def test_a_weight_that_a_caller_may_override_is_no_constant() -> None:
    model = build([node("Neg", ["w"], ["n"]), node("Add", ["x", "n"], ["y"])], {"w": np.ones((2, 3), np.float32)})
    model.graph.input.append(oh.make_tensor_value_info("w", T.FLOAT, [2, 3]))
    assert ops(simplify(from_proto(model)).graph) == Counter(Neg=1, Add=1)


# ---------------------------------------------------------------- by whom, and of what type


def test_one_that_onnxruntime_cannot_compute_does_not_spoil_the_rest() -> None:
    bf16 = oh.tensor_dtype_to_np_dtype(T.BFLOAT16)
    nodes = [node("Add", ["b", "b"], ["c"]), node("Cast", ["c"], ["d"], to=T.FLOAT), node("Add", ["w", "w"], ["v"])]
    nodes += [node("Add", ["x", "d"], ["z"]), node("Add", ["z", "v"], ["y"])]
    after = simplified(build(nodes, {"b": np.array([1.5, 2, 3], bf16), "w": np.ones(3, np.float32)}), run=False)
    assert ops(after) == Counter(Add=2)
    values = sorted(n.tensor.array().tolist() for n in after.nodes.values() if n.is_constant)
    assert values == [[2, 2, 2], [3, 4, 6]]


@pytest.mark.parametrize(
    "dtype", [T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.BFLOAT16, T.FLOAT16, T.INT4, T.UINT4, T.DOUBLE, T.UINT8, T.BOOL, T.STRING]
)
def test_a_result_of_any_type_is_right(dtype: int) -> None:
    nodes = [node("Cast", ["w"], ["c"], to=dtype), node("Cast", ["c"], ["d"], to=T.FLOAT), node("Add", ["x", "d"], ["y"])]
    keep = node("Identity", ["c"], ["k"])
    model = build([*nodes, keep], {"w": np.array([[0, 1, 7], [2, 3, 5]], np.float32)}, opset=21)
    model.graph.output.append(oh.make_tensor_value_info("k", dtype, [2, 3]))
    after = simplify(from_proto(model)).graph
    assert ops(after) == Counter(Add=1)
    tensor = after.node(after.outputs[1]).tensor
    wanted = [[0, 1, 1], [1, 1, 1]] if dtype == T.BOOL else [[0, 1, 7], [2, 3, 5]]
    assert tensor.dtype == dtype and tensor.array().astype(np.float32).tolist() == wanted


def test_strings() -> None:
    nodes = [node("Concat", ["a", "b"], ["c"], axis=0), node("Concat", ["c", "x"], ["y"], axis=0)]
    model = build(nodes, {"a": np.array(["ä"], object), "b": np.array(["b", ""], object)}, dims=(1,), dtype=T.STRING)
    after = simplify(from_proto(model)).graph
    assert ops(after) == Counter(Concat=1)
    assert outputs(complete(after), {"x": np.array(["x"], object)})[0].tolist() == ["ä", "b", "", "x"]


def test_no_elements() -> None:
    nodes = [node("Neg", ["w"], ["n"]), node("Concat", ["x", "n"], ["y"], axis=0)]
    assert ops(simplified(build(nodes, {"w": np.zeros((0, 3), np.float32)}))) == Counter(Concat=1)


def test_a_result_of_unforeseen_size() -> None:
    nodes = [
        node("NonZero", ["w"], ["n"]),
        node("Transpose", ["n"], ["t"]),
        node("Cast", ["t"], ["f"], to=T.FLOAT),
        node("Concat", ["x", "f"], ["y"], axis=0),
    ]
    assert ops(simplified(build(nodes, {"w": np.array([[0, 1, 2, 3]], np.int64)}, dims=(1, 2)))) == Counter(Concat=1)


def test_sequences_of_constants_are_no_tensors() -> None:
    nodes = [
        node("SequenceConstruct", ["w", "v"], ["s"]),
        node("SequenceAt", ["s", "k"], ["a"]),
        node("ConcatFromSequence", ["s"], ["c"], axis=0),
    ]
    nodes += [
        node("Concat", ["x", "a", "c"], ["z"], axis=0),
        node("SequenceInsert", ["s", "z"], ["i"]),
        node("ConcatFromSequence", ["i"], ["y"], axis=0),
    ]
    weights = {"w": np.ones((2, 3), np.float32), "v": np.zeros((1, 3), np.float32), "k": np.array(1)}
    assert ops(simplified(build(nodes, weights)))["SequenceConstruct"] == 1


def test_an_optional_constant_is_no_tensor() -> None:
    nodes = [node("Optional", ["w"], ["o"]), node("OptionalHasElement", ["o"], ["h"]), node("OptionalGetElement", ["o"], ["g"])]
    nodes += [node("Cast", ["h"], ["f"], to=T.FLOAT), node("Add", ["x", "f"], ["z"]), node("Add", ["z", "g"], ["y"])]
    simplified(build(nodes, {"w": np.ones((2, 3), np.float32)}))


def test_a_file_that_declares_another_type_is_not_contradicted() -> None:
    model = build([node("NonZero", ["w"], ["n"]), node("Gather", ["x", "n"], ["y"])], {"w": np.array([[0, 1, 2, 3]], np.int64)}, dims=(5,))
    model.graph.value_info.append(oh.make_tensor_value_info("n", T.INT64, [2, 4]))
    assert ops(simplify(from_proto(model)).graph) == Counter(NonZero=1, Gather=1)


def test_external_weights_are_read_also_those_of_a_branch(tmp_path: Path) -> None:
    def branch(name: str) -> onnx.GraphProto:
        weight = nh.from_array(np.full((200, 200), 2, np.float32), f"{name}_w")
        out = oh.make_tensor_value_info(f"{name}_y", T.FLOAT, None)
        return oh.make_graph([node("MatMul", ["t", f"{name}_w"], [f"{name}_y"])], name, [], [out], [weight])

    nodes = [
        node("Transpose", ["w"], ["v"]),
        node("MatMul", ["x", "v"], ["t"]),
        node("If", ["c"], ["y"], then_branch=branch("a"), else_branch=branch("b")),
    ]
    weights = {"w": np.arange(40_000, dtype=np.float32).reshape(200, 200), "c": np.array(True)}
    model = build(nodes, weights, dims=(2, 200))
    given = {"x": np.ones((2, 200), np.float32)}
    expected = outputs(model, given)
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", convert_attribute=True)
    after = simplify(load(tmp_path / "m.onnx")).graph
    assert ops(after) == Counter(MatMul=2)
    save(after, tmp_path / "n.onnx")
    assert same(expected, outputs(onnx.load(tmp_path / "n.onnx"), given))


def test_only_what_is_read_is_computed() -> None:
    nodes = [node("Neg", ["w"], ["dead"]), node("Abs", ["w"], ["a"]), node("Exp", ["a"], ["e"]), node("Add", ["x", "e"], ["y"])]
    graph = from_proto(build(nodes, {"w": np.ones(3, np.float32)}))
    assert {graph.label(v) for v in fold_native(graph)} == {"e"}


def test_fold_rewrites_leaves_what_the_file_held() -> None:
    graph = from_proto(
        build([node("Expand", ["c", "s"], ["e"]), node("Add", ["x", "e"], ["y"])], {"c": BIG[:1], "s": np.array([100_000])}, dims=(1,))
    )
    assert fold_rewrites(graph).key == graph.key


def test_weights_that_rewrites_make_equal_are_one() -> None:
    nodes = [node("Add", ["x", "w"], ["p"]), node("Mul", ["p", "w"], ["q"]), node("Sub", ["q", "v"], ["y"])]
    graph = from_proto(build(nodes, {"w": np.full((2, 3), 2.0, np.float32), "v": np.full((2, 3), 4.0, np.float32)}))
    for op in ("Add", "Mul", "Sub"):
        builder, i = Builder(graph), next(i for i, n in graph.nodes.items() if n.op == op)
        x, w = graph.nodes[i].inputs
        assert x is not None and w is not None
        same = builder.node("Neg", [builder.node("Neg", [w])])
        graph = graph.replace(builder.edit({Value(i): builder.node(op, [x, same])}))
    folded = fold_rewrites(graph)
    assert Counter(n.op for n in folded.nodes.values() if not n.is_source) == Counter(Add=1, Mul=1, Sub=1)
    assert sum(n.is_constant for n in folded.nodes.values()) == 2
    assert fold_rewrites(folded).key == folded.key
