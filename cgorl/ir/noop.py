"""Nodes that give back their first operand, whatever it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cgorl.ir.forms import Form
from cgorl.ir.graph import Graph
from cgorl.ir.node import Dim, TensorType, Value
from cgorl.ir.tensor import Tensor

_FAR = 2**31 - 1


def same_as(graph: Graph, i: int, shape: Form) -> Value | None:
    """The operand that node `i` merely passes on, bit for bit; None if it does something. `shape` is the node's form."""
    node = graph.nodes[i]
    test = _TESTS.get(node.op)
    if test is None or node.domain != "" or not shape.inputs:
        return None
    if shape.missing and (node.op, shape.missing) != ("Dropout", "ratio"):
        return None
    single = not any(u.port for u in graph.users[i])
    for place in (0, 1) if node.op in ("Add", "Mul") and len(shape.inputs) == 2 else (0,):
        value = shape.inputs[place]
        other = shape.inputs[1 - place] if len(shape.inputs) == 2 else None
        if value is None:
            continue
        kind, kind_of_other = graph.type(value), None if other is None else graph.type(other)
        if test(_At(shape.attrs, kind, kind_of_other, _tensor(graph, other), len(shape.inputs), len(node.types), single)):
            return value
    return None


def _tensor(graph: Graph, value: Value | None) -> Tensor | None:
    return graph.node(value).tensor if value is not None and graph.node(value).is_constant else None


class _At(NamedTuple):
    """What a test may look at: attributes, the first operand's type, the second's type and contents, and how many there are."""

    attrs: Mapping[str, Any]
    kind: TensorType | None
    other: TensorType | None
    tensor: Tensor | None
    operands: int
    results: int
    single: bool
    """Whether nobody reads another result than the first."""

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        return None if self.kind is None else self.kind.shape


def _identity(at: _At) -> bool:
    return True


def _dropout(at: _At) -> bool:
    # before opset 7, is_test says what it is doing; from 12 on, training_mode does
    return at.single and not at.attrs.get("training_mode") and bool(at.attrs.get("is_test", 1))


def _cast(at: _At) -> bool:
    return at.kind is not None and at.attrs.get("to") == at.kind.dtype


def _cast_like(at: _At) -> bool:
    return at.kind is not None and at.other is not None and at.kind.dtype == at.other.dtype


def _reshape(at: _At) -> bool:
    dims, target = at.dims, at.attrs.get("shape")
    if dims is None or not isinstance(target, tuple) or len(target) != len(dims):
        return False
    free = [k for k, t in enumerate(target) if not (t == dims[k] or (t == 0 and not at.attrs["allowzero"]))]
    # a -1 stands for what is left over: the only dim there is, unless the rest may be empty
    return not free or (len(free) == 1 and target[free[0]] == -1 and all(d != 0 for d in dims))


def _flatten(at: _At) -> bool:
    return at.dims is not None and len(at.dims) == 2 and at.attrs["axis"] == 1


def _transpose(at: _At) -> bool:
    return "perm" in at.attrs and list(at.attrs["perm"]) == list(range(len(at.attrs["perm"])))


def _pad(at: _At) -> bool:
    return "pads" in at.attrs and not any(at.attrs["pads"])


def _slice(at: _At) -> bool:
    a, dims = at.attrs, at.dims
    if dims is None or "starts" not in a or "ends" not in a:
        return False
    axes = a.get("axes", tuple(range(len(a["starts"]))))
    steps = a.get("steps", (1,) * len(axes))
    return all(_whole(dims[axis], *span) for axis, *span in zip(axes, a["starts"], a["ends"], steps, strict=True))


def _whole(size: Dim, start: int, end: int, step: int) -> bool:
    """Whether a slice of an axis is the axis."""
    if isinstance(size, int):
        return step != 0 and range(size)[start:end:step] == range(size)
    return step == 1 and end >= _FAR and (start == 0 or start <= -_FAR)


def _alone(at: _At) -> bool:
    return at.operands == 1


def _expand(at: _At) -> bool:
    dims, target = at.dims, at.attrs.get("shape")
    if dims is None or not isinstance(target, tuple) or len(target) > len(dims):
        return False
    return all(t == 1 or t == d for t, d in zip(reversed(target), reversed(dims), strict=False))


def _tile(at: _At) -> bool:
    return isinstance(at.attrs.get("repeats"), tuple) and all(r == 1 for r in at.attrs["repeats"])


def _split(at: _At) -> bool:
    return at.results == 1


def _neutral(number: float) -> Callable[[_At], bool]:
    """A test whether the other operand holds `number` alone, the sign of a zero included, and widens nothing.

    x + 0 is not x where x is -0, but x + (-0) and x - 0 are.
    """

    def test(at: _At) -> bool:
        if at.tensor is None or at.kind is None or at.dims is None or at.tensor.dtype != at.kind.dtype or not at.tensor.small():
            return False
        shape = at.tensor.shape
        if len(shape) > len(at.dims) or any(d not in (1, size) for d, size in zip(reversed(shape), reversed(at.dims), strict=False)):
            return False
        array = at.tensor.array()
        signed = array.dtype.kind not in "iu"
        return bool((array == number).all() and (not signed or (np.signbit(array) == np.signbit(number)).all()))

    return test


_TESTS: Mapping[str, Callable[[_At], bool]] = {
    "Identity": _identity,
    "Dropout": _dropout,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _transpose,
    "Pad": _pad,
    "Slice": _slice,
    "Concat": _alone,
    "Sum": _alone,
    "Max": _alone,
    "Min": _alone,
    "Mean": _alone,
    "Expand": _expand,
    "Tile": _tile,
    "Split": _split,
    "Add": _neutral(-0.0),
    "Sub": _neutral(0.0),
    "Mul": _neutral(1.0),
    "Div": _neutral(1.0),
}
