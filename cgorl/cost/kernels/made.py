"""Small pieces that kernels are made of: shapes in whole blocks of channels, operands, kernels of one operator."""

from __future__ import annotations

from typing import Any

import onnx

from cgorl.cost.kernels.kernel import Kernel, Slot, float_slot, slot
from cgorl.cost.kernels.spots import Spots
from cgorl.ir.node import Value

_SHAPES = onnx.TensorProto.INT64


def simple(
    spots: Spots,
    op: str,
    domain: str,
    attrs: tuple[tuple[str, Any], ...],
    operands: tuple[Value | None, ...],
    result: Value,
    opset: int,
    blocked: bool = False,
) -> Kernel:
    """A kernel of an operator with these operands and one result; all in blocks of channels if `blocked`."""
    inputs = tuple(slot_of(spots, v, op) for v in operands)
    outputs: tuple[Slot | None, ...] = (slot(spots.type(result)),)
    if blocked:
        inputs = tuple(None if s is None else s._replace(shape=padded(spots, s.shape)) for s in inputs)
        outputs = tuple(None if s is None else s._replace(shape=padded(spots, s.shape)) for s in outputs)
    return Kernel(op, domain, attrs, inputs, outputs, opset)


def reshape(before: tuple[int, ...], after: tuple[int, ...], opset: int) -> Kernel:
    """A Reshape by a constant shape."""
    shape = Slot(_SHAPES, (len(after),), True)
    return Kernel("Reshape", "", (), (float_slot(before), shape), (float_slot(after),), opset)


def slot_of(spots: Spots, value: Value | None, op: str) -> Slot | None:
    """A value as an operand of an operator."""
    if value is None:
        return None
    return slot(spots.type(value), spots.constant(value), spots.contents(value), op)


def shape_of(spots: Spots, value: Value | None) -> tuple[int, ...]:
    """The shape of a value, unknown dims counting 1."""
    kind = spots.type(value)
    return () if kind is None or kind.shape is None else tuple(d if isinstance(d, int) else 1 for d in kind.shape)


def padded(spots: Spots, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a value whose channels are in whole blocks."""
    return (shape[0], up(spots, shape[1]), *shape[2:]) if len(shape) > 1 else shape


def up(spots: Spots, channels: int) -> int:
    """So many channels in whole blocks."""
    return -(-channels // spots.block) * spots.block
