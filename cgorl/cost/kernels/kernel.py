"""Kernel: one node of the graph that the runtime really runs, with all that its time depends on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import onnx

from cgorl.ir.node import AttrValue, Opaque, TensorType
from cgorl.ir.ops import defaults
from cgorl.ir.tensor import Tensor

BLOCKED, FUSED = "com.microsoft.nchwc", "com.microsoft"
"""The runtime's own domains: operators on channels in blocks, and operators that take several steps at once."""

_NEUTRAL = {
    "auto_pad": "NOTSET",
    "storage_order": 0,
    "ceil_mode": 0,
    "group": 1,
    "channels_last": 0,
    "training_mode": 0,
    "count_include_pad": 0,
}
_QUIET = frozenset(
    {"momentum", "epsilon", "stash_type", "spatial", "allowzero", "num_outputs", "kernel_shape of Conv", "kernel_shape of FusedConv"}
)
_ONES, _ZEROS = frozenset({"dilations", "strides"}), frozenset({"pads", "output_padding"})
_TELLING = frozenset({"Resize", "Upsample", "Clip", "Pow", "Range", "OneHot", "Pad", "Tile", "NonMaxSuppression"})
"""Operators whose small floating-point operands decide what there is to do."""

HELD = 64
"""As many numbers of a constant operand belong to the key."""


class Slot(NamedTuple):
    """An operand or result: element type, shape, whether it is constant, and its contents where they decide the work."""

    dtype: int
    shape: tuple[int, ...]
    fixed: bool = False
    holds: tuple[Any, ...] | None = None

    @property
    def elements(self) -> int:
        """How many numbers."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Kernel:
    """An operator of the runtime with attributes (those that are not defaults), operands, results and opset."""

    op: str
    domain: str
    attrs: tuple[tuple[str, Any], ...]
    inputs: tuple[Slot | None, ...]
    outputs: tuple[Slot | None, ...]
    opset: int

    @cached_property
    def key(self) -> str:
        """One line of JSON that stands for the kernel in a table."""
        parts = [self.domain, self.op, self.opset, self.attrs, self.inputs, self.outputs]
        return json.dumps(parts, separators=(",", ":"))

    @classmethod
    def of_key(cls, key: str) -> Kernel:
        """The kernel that a line stands for."""
        domain, op, opset, attrs, inputs, outputs = json.loads(key)
        return cls(op, domain, _tuples(attrs), _slots(inputs), _slots(outputs), opset)

    @property
    def label(self) -> str:
        """The operator with the runtime's domain in short."""
        return {BLOCKED: "blocked.", FUSED: "fused."}.get(self.domain, self.domain and f"{self.domain}.") + self.op

    @property
    def stands_alone(self) -> bool:
        """Whether the kernel can be run by itself: it has no body and knows all its sizes."""
        return not any(isinstance(v, str) and v.startswith("opaque ") for _, v in self.attrs)

    def __str__(self) -> str:
        """Operator, operands and what is special about it."""
        shapes = ", ".join("-" if s is None else "x".join(map(str, s.shape)) + ("c" if s.fixed else "") for s in self.inputs)
        more = ", ".join(f"{k}={v}" for k, v in self.attrs)
        return f"{self.label}({shapes})" + (f" {more}" if more else "")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _slots(given: list[Any]) -> tuple[Slot | None, ...]:
    return tuple(None if s is None else Slot(*_tuples(s)) for s in given)


def plain_attrs(op: str, domain: str, opset: int, attrs: Mapping[str, AttrValue]) -> tuple[tuple[str, Any], ...]:
    """Attributes as a kernel has them: sorted, numbers as float32 knows them, without what says nothing."""
    usual = defaults(op, domain, opset)
    found = []
    for name, value in sorted(attrs.items()):
        if name in _QUIET or f"{name} of {op}" in _QUIET or _NEUTRAL.get(name) == value or usual.get(name) == value:
            continue
        if isinstance(value, tuple) and ((name in _ONES and set(value) == {1}) or (name in _ZEROS and not any(value))):
            continue
        found.append((name, _plain(value)))
    return tuple(found)


def _plain(value: AttrValue) -> Any:
    if isinstance(value, Opaque):
        return "opaque " + value.digest.hex()
    if isinstance(value, Tensor):
        array = value.array()
        return ("tensor", value.dtype, tuple(value.shape), tuple(array.reshape(-1).tolist()) if array.size <= HELD else value.digest.hex())
    if isinstance(value, float):
        return float(np.float32(value))
    return tuple(_plain(v) for v in value) if isinstance(value, tuple) else value


def slot(kind: TensorType | None, fixed: bool = False, contents: Tensor | None = None, op: str = "") -> Slot | None:
    """A type as a slot, unknown dims counting 1; with the contents of a small constant where they decide the work."""
    if kind is None:
        return None
    shape = tuple(d if isinstance(d, int) else 1 for d in kind.shape or ())
    holds = None
    telling = kind.dtype in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) or op in _TELLING
    telling = telling and op != "Reshape"  # the result says it
    if contents is not None and telling and math.prod(shape) <= HELD and kind.dtype != onnx.TensorProto.STRING:
        holds = tuple(contents.array().reshape(-1).tolist())
    return Slot(kind.dtype, shape, fixed, holds)


def float_slot(shape: Sequence[int], fixed: bool = False) -> Slot:
    """A slot of float32 numbers."""
    return Slot(onnx.TensorProto.FLOAT, tuple(shape), fixed)
