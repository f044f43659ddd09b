"""Types of one node: onnx's own, remembered by all that decides them."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import TensorProto as T
from onnx import helper as oh

from cgorl.ir import infer as module
from cgorl.ir.build import Builder
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import GraphError
from cgorl.ir.infer import UNKNOWN, InferError, infer, to_proto
from cgorl.ir.infer import from_proto as type_of
from cgorl.ir.node import TensorType
from cgorl.ir.tensor import Tensor
from tests.strategies import models

F23 = TensorType(T.FLOAT, (2, 3))
I2 = TensorType(T.INT64, (2,))


def reshaped(*shape: int) -> TensorType | None:
    return infer("Reshape", "", 17, {}, [F23, I2], [None, Tensor.of(np.array(shape))], 1)[0]


def test_constant_operands_are_part_of_the_memo_s_key() -> None:
    assert reshaped(3, 2) == TensorType(T.FLOAT, (3, 2))
    assert reshaped(6, -1) == TensorType(T.FLOAT, (6, 1))
    assert reshaped(3, 2) == TensorType(T.FLOAT, (3, 2))
    unknown = infer("Reshape", "", 17, {}, [F23, I2], [None, None], 1)[0]
    assert unknown is not None and unknown.rank == 2 and not unknown.static


def test_all_that_decides_a_type_is_part_of_the_memo_s_key() -> None:
    def of(op: str = "Concat", version: int = 17, axis: int = 0, first: TensorType = F23, outputs: int = 1) -> object:
        return infer(op, "", version, {"axis": axis}, [first, F23], [None, None], outputs)

    assert of() == (TensorType(T.FLOAT, (4, 3)),)
    assert of(axis=1) == (TensorType(T.FLOAT, (2, 6)),)
    assert of(first=TensorType(T.FLOAT, ("N", 3))) != of()
    assert of() == (TensorType(T.FLOAT, (4, 3)),)
    two = infer("Split", "", 17, {"axis": 1}, [TensorType(T.FLOAT, (2, 6))], [None], 2)
    three = infer("Split", "", 17, {"axis": 1}, [TensorType(T.FLOAT, (2, 6))], [None], 3)
    assert [t.shape for t in (*two, *three)] == [(2, 3)] * 2 + [(2, 2)] * 3  # type: ignore[union-attr]
    default_axis = [infer("Flatten", "", v, {}, [F23], [None], 1) for v in (11, 13)]
    assert default_axis[0] == default_axis[1]
    keeps = [infer("ReduceSum", "", 17, {"keepdims": k}, [F23], [None], 1)[0] for k in (0, 1)]
    assert [k.shape for k in keeps] == [(), (1, 1)]  # type: ignore[union-attr]


def test_the_second_question_is_answered_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MEMO", {})
    reshaped(1, 6)

    def never(*_: object) -> None:
        raise AssertionError("asked onnx again")

    monkeypatch.setattr(module, "_infer", never)
    assert reshaped(1, 6) == TensorType(T.FLOAT, (1, 6))
    with pytest.raises(AssertionError, match="asked onnx again"):
        reshaped(2, 3)


def test_the_memo_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MEMO", {})
    monkeypatch.setattr(module, "_MEMO_SIZE", 3)
    for n in range(1, 9):
        infer("Neg", "", 17, {}, [TensorType(T.FLOAT, (n,))], [None], 1)
        assert len(module._MEMO) <= 3


@pytest.mark.parametrize(
    ("op", "attrs", "inputs"),
    [
        ("MatMul", {}, [F23, F23]),
        ("Add", {}, [F23, TensorType(T.FLOAT, (4,))]),
        ("Concat", {"axis": 5}, [F23, F23]),
        ("Transpose", {"perm": (0, 0)}, [F23]),
        ("Conv", {}, [F23, F23]),
    ],
)
def test_what_cannot_be_is_one_sentence(op: str, attrs: dict[str, object], inputs: list[TensorType]) -> None:
    with pytest.raises(InferError) as e:
        infer(op, "", 17, attrs, inputs, [None] * len(inputs), 1)  # type: ignore[arg-type]
    assert str(e.value).startswith(f"{op}: ")
    assert "\n" not in str(e.value)
    graph = from_proto(
        oh.make_model(oh.make_graph([], "g", [oh.make_tensor_value_info(f"x{k}", t.dtype, t.shape) for k, t in enumerate(inputs)], []))
    )
    from cgorl.ir.node import Value

    with pytest.raises(GraphError, match=op):
        Builder(graph).node(op, [Value(i) for i in graph.inputs], attrs)  # type: ignore[arg-type]


def test_an_operand_of_unknown_type_is_not_an_absent_one() -> None:
    absent = infer("ReduceSum", "", 17, {"keepdims": 0}, [F23, None], [None, None], 1)
    assert absent == (TensorType(T.FLOAT, ()),)
    assert infer("ReduceSum", "", 17, {"keepdims": 0}, [F23, UNKNOWN], [None, None], 1) == (None,)


def test_an_operator_that_onnx_does_not_know_has_unknown_types() -> None:
    assert infer("Neg", "com.unknown", 1, {}, [F23], [None], 2) == (None, None)
    assert infer("NoSuchThing", "", 17, {}, [F23], [None], 1) == (None,)
    assert infer("Neg", "", 2**40, {}, [F23], [None], 1) == (None,)


@pytest.mark.parametrize(
    "kind",
    [
        TensorType(T.FLOAT, None),
        TensorType(T.INT4, ()),
        TensorType(T.BFLOAT16, (2, "N", None, 0)),
        TensorType(T.STRING, (None,)),
    ],
)
def test_types_come_back_from_protobuf(kind: TensorType) -> None:
    assert type_of(to_proto(kind)) == kind
    assert str(kind).startswith(T.DataType.Name(kind.dtype).lower())


def test_strange_dims_are_unknown_and_what_is_no_tensor_has_no_type() -> None:
    info = oh.make_tensor_value_info("x", T.FLOAT, [-1, "", 3, None])
    assert type_of(info.type) == TensorType(T.FLOAT, (None, None, 3, None))
    assert type_of(oh.make_tensor_sequence_value_info("s", T.FLOAT, [3]).type) is None
    assert type_of(onnx.TypeProto()) is None
    assert str(TensorType(99, (1, None, "N"))) == "type99[1,?,N]"


@pytest.mark.parametrize(
    ("a", "b", "agree", "meet"),
    [
        ((1, 2), (1, 2), True, (1, 2)),
        ((1, "N"), (1, 2), True, (1, 2)),
        (("N", None), (None, 3), True, ("N", 3)),
        (("N",), ("M",), True, ("N",)),
        (None, (1,), True, (1,)),
        ((1,), None, True, (1,)),
        ((1,), (2,), False, None),
        ((1,), (1, 1), False, None),
    ],
)
def test_types_agree_where_some_tensor_has_both(a: object, b: object, agree: bool, meet: object) -> None:
    first, second = TensorType(1, a), TensorType(1, b)  # type: ignore[arg-type]
    assert first.agrees(second) is second.agrees(first) is agree
    if agree:
        assert first.meet(second).shape == meet
    assert not first.agrees(TensorType(7, a))  # type: ignore[arg-type]


@given(models(max_nodes=8))
@settings(max_examples=40)
def test_one_node_at_a_time_says_nothing_else_than_the_whole_model(model: onnx.ModelProto) -> None:
    graph = from_proto(model)
    for node in graph.nodes.values():
        if node.is_source or node.captures or node.domain != "":
            continue
        kinds = [None if v is None else graph.type(v) or UNKNOWN for v in node.inputs]
        contents = [graph.node(v).tensor if v is not None and graph.node(v).is_constant else None for v in node.inputs]
        for one, known in zip(infer(node.op, "", graph.opset, node.attrs, kinds, contents, len(node.types)), node.types, strict=True):
            assert one is None or known is None or one.agrees(known), node.op


def test_a_dim_called_by_a_question_mark_is_no_symbol() -> None:
    told = oh.make_tensor_type_proto(T.FLOAT, ["?", 3, "?", "N"])
    assert type_of(told) == TensorType(T.FLOAT, (None, 3, None, "N"))
