"""Operators of onnx's reference evaluator that are wrong there: quantisers, Loop, the recurrent ones, AffineGrid.

`CORRECTED` replaces them by class name, like `oracle_ops.VECTORISED`; each class says what was wrong.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TypeProto
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference.op_run import OpRun, OpRunExpand
from onnx.reference.ops._quant_utils import reshape_input
from onnx.reference.ops.op_gru import GRU as ReferenceGRU
from onnx.reference.ops.op_lstm import LSTM as ReferenceLSTM
from onnx.reference.ops.op_quantize_linear import QuantizeLinear_25 as ReferenceQuantizeLinear
from onnx.reference.ops.op_rnn import RNN_14 as ReferenceRNN

from cgorl.ir.oracle_ops import OracleError
from cgorl.ir.oracle_windows import Array


class QuantizeLinear(ReferenceQuantizeLinear):
    """QuantizeLinear. The reference wraps round at 2^31 before it saturates."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        x, scale, *zero = inputs
        bound = 2.0**30 * np.abs(reshape_input(scale, x.shape, attributes["axis"], attributes["block_size"]))
        return super()._run(np.clip(x, -bound, bound).astype(x.dtype), scale, *zero, **attributes)


class DequantizeLinear(OpRun):
    """DequantizeLinear. The reference rounds an int32 to float32 first."""

    def _run(
        self, x: Array, scale: Array, zero: Array | None = None, axis: int = 1, block_size: int = 0, output_dtype: int = 0
    ) -> tuple[Array]:
        y = x.astype(np.float64)
        if zero is not None:
            y = y - reshape_input(zero, x.shape, axis, block_size).astype(np.float64)
        y = y * reshape_input(scale, x.shape, axis, block_size).astype(np.float64)
        return (y.astype(tensor_dtype_to_np_dtype(output_dtype) if output_dtype else scale.dtype),)


class DynamicQuantizeLinear(OpRun):
    """DynamicQuantizeLinear. The reference takes the scale in float32 whatever the input is."""

    def _run(self, x: Array) -> tuple[Array, Array, Array]:
        low, high = np.minimum(x.min(), 0), np.maximum(x.max(), 0)
        scale = ((high - low) / 255).astype(x.dtype) if high > low else np.array(1, x.dtype)
        zero = np.rint(np.clip(-low / scale, 0, 255))
        return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), np.asarray(scale), np.asarray(zero.astype(np.uint8))


class Loop(OpRun):
    """Loop. The reference never runs a body without a condition, and stacks matrices without a new axis."""

    def need_context(self) -> bool:
        """Returns true: a body reads the values around it."""
        return True

    def _run(
        self, trips: Array | None, cond: Array | None = None, *carried: Any, context: Mapping[str, Any], body: Any, attributes: Any = None
    ) -> tuple[Any, ...]:
        names, kinds, steps = body.input_names, body.output_types[1 + len(carried) :], 0
        scanned: list[list[Array]] = [[] for _ in kinds]
        going = cond is None or bool(cond.item())
        while going and (trips is None or steps < trips.item()):
            state = dict(zip(names, (np.array(steps, np.int64), np.array(True), *carried), strict=True))
            flag, *values = body.run(None, {**context, **state}, attributes=attributes)
            going, carried, steps = bool(flag.item()), tuple(values[: len(carried)]), steps + 1
            for rows, value in zip(scanned, values[len(carried) :], strict=True):
                rows.append(value)
        return (*carried, *(np.stack(rows) if rows else _none_of(kind) for rows, kind in zip(scanned, kinds, strict=True)))


def _none_of(kind: TypeProto) -> Array:
    """Returns no values of a type, shape (0, *dims) with 0 for an unknown dim."""
    tensor = kind.tensor_type
    return np.zeros((0, *(d.dim_value for d in tensor.shape.dim)), tensor_dtype_to_np_dtype(tensor.elem_type))


def _evaluable(op: Any, inputs: tuple[Any, ...], activations: Sequence[str]) -> tuple[Any, ...]:
    """Returns the inputs of a recurrent operator of which onnx's own evaluates everything; raises OracleError on another."""
    given = [name.lower() for name in getattr(op, "activations", None) or activations]
    if given != [activations[i % len(activations)] for i in range(len(given))] or op.clip or getattr(op, "input_forget", 0):
        raise OracleError(f"{op.op_type} {op.onnx_node.name!r} with activations {given}, clip or input_forget")
    if len(inputs) > 4 and inputs[4] is not None and (inputs[4] != inputs[0].shape[1 if getattr(op, "layout", 0) else 0]).any():
        raise OracleError(f"{op.op_type} {op.onnx_node.name!r} over sequences of different lengths")
    return inputs


class LSTM(ReferenceLSTM):
    """LSTM. The reference ignores sequence lengths, activations, clip and input_forget: refused."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        return super()._run(*_evaluable(self, inputs, ("sigmoid", "tanh", "tanh")), **attributes)  # type: ignore[no-untyped-call]


class GRU(ReferenceGRU):
    """GRU. The reference ignores sequence lengths, activations and clip: refused."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        return super()._run(*_evaluable(self, inputs, ("sigmoid", "tanh")), **attributes)  # type: ignore[no-untyped-call]


class RNN(ReferenceRNN):
    """RNN. The reference ignores sequence lengths, clip and the activation of the second direction: refused."""

    def _run(self, *inputs: Any, **attributes: Any) -> Any:
        return super()._run(*_evaluable(self, inputs, ("tanh",)), **attributes)  # type: ignore[no-untyped-call]


class AffineGrid(OpRunExpand):
    """AffineGrid, by the function that defines it. The reference rounds to float32."""


CORRECTED: list[type[OpRun]] = [AffineGrid, DequantizeLinear, DynamicQuantizeLinear, GRU, LSTM, Loop, QuantizeLinear, RNN]
