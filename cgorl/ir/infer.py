"""Output types of one node, by onnx's own shape inference, memoised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import shape_inference

from cgorl.ir.node import Attrs, TensorType
from cgorl.ir.ops import make_node, schema
from cgorl.ir.tensor import Tensor

_MEMO: dict[Any, tuple[TensorType | None, ...]] = {}
_MEMO_SIZE = 100_000


UNKNOWN = TensorType(0, None)
"""Stands for an operand that is there but of unknown type, among the inputs of `infer`."""


_INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
_FLOATS_DECIDE = frozenset({"Resize", "Upsample", "Range"})
"""Operators whose results' shapes rest on floating-point contents; for all others only integers count."""


def decides(op: str, kind: TensorType) -> bool:
    """Whether the contents of an operand of this type may decide the types of results."""
    return kind.dtype in _INTEGERS or op in _FLOATS_DECIDE


class InferError(ValueError):
    """onnx says that the operator cannot take these inputs; the message is onnx's."""


def infer(
    op: str,
    domain: str,
    version: int,
    attrs: Attrs,
    inputs: Sequence[TensorType | None],
    constants: Sequence[Tensor | None],
    outputs: int,
) -> tuple[TensorType | None, ...]:
    """Types of the `outputs` outputs of one node.

    `inputs` are the operands' types (None: absent; with one UNKNOWN nothing is found) and `constants` their contents where
    they are constants: small ones decide shapes (of Reshape, Slice, ...) and belong to the memo's key. Raises InferError.
    """
    if UNKNOWN in inputs:
        return (None,) * outputs
    data = tuple([t if t is not None and (t.dtype in _INTEGERS or op in _FLOATS_DECIDE) and t.small() else None for t in constants])
    key = (op, domain, version, outputs, tuple(attrs.items()), tuple(inputs), tuple([None if t is None else t.digest for t in data]))
    found = _MEMO.get(key)
    if found is None:
        found = _infer(op, domain, version, attrs, inputs, data, outputs)
        if len(_MEMO) >= _MEMO_SIZE:
            _MEMO.clear()
        _MEMO[key] = found
    return found


def _infer(op: str, domain: str, version: int, attrs: Attrs, inputs: Sequence[Any], data: Sequence[Any], outputs: int) -> Any:
    spec = schema(op, domain, version)
    if spec is None:
        return (None,) * outputs
    names = [f"i{k}" if t is not None else "" for k, t in enumerate(inputs)]
    node = make_node(op, domain, version, names, [f"o{k}" for k in range(outputs)], attrs)
    try:
        found = shape_inference.infer_node_outputs(
            spec,
            node,
            {f"i{k}": to_proto(t) for k, t in enumerate(inputs) if t is not None},
            {f"i{k}": t.to_proto(f"i{k}") for k, t in enumerate(data) if t is not None and inputs[k] is not None},
            opset_imports=[onnx.helper.make_opsetid(domain, version)],
        )
    except (shape_inference.InferenceError, onnx.checker.ValidationError, KeyError, RuntimeError) as e:
        raise InferError(f"{op}: {str(e).strip().splitlines()[0]}") from None
    return tuple(from_proto(found[f"o{k}"]) if f"o{k}" in found else None for k in range(outputs))


def from_proto(proto: onnx.TypeProto) -> TensorType | None:
    """The TensorType that a TypeProto says; None for what is no dense tensor or has no element type."""
    if proto.WhichOneof("value") != "tensor_type" or proto.tensor_type.elem_type == 0:
        return None
    if not proto.tensor_type.HasField("shape"):
        return TensorType(proto.tensor_type.elem_type, None)
    dims = []
    for d in proto.tensor_type.shape.dim:
        known = d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
        symbol = d.dim_param if d.dim_param != "?" else ""  # which exporters write for any size, be it another each time
        dims.append(known if known is not None else (symbol or None))
    return TensorType(proto.tensor_type.elem_type, tuple(dims))


def to_proto(kind: TensorType) -> onnx.TypeProto:
    """The TypeProto that says `kind`."""
    return onnx.helper.make_tensor_type_proto(kind.dtype, None if kind.shape is None else list(kind.shape))
