"""Nodes that give back their first operand, whatever it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cgorl.ir.forms import Form
from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.tensor import Tensor

_FAR = 2**31 - 1


def same_as(graph: Graph, node: Node, shape: Form) -> Value | None:
    """The operand that `node` merely passes on; None if it does something. `shape` is the node's form."""
    test = _TESTS.get(node.op)
    if test is None or node.domain != "" or shape.missing or not shape.inputs:
        return None
    for place in (0, 1) if node.op in ("Add", "Mul") and len(shape.inputs) == 2 else (0,):
        value = shape.inputs[place]
        if value is None:
            continue
        other = shape.inputs[1 - place] if len(shape.inputs) == 2 else None
        at = _At(
            node, shape.attrs, graph.type(value), graph.type(other) if other is not None else None, _tensor(graph, other), len(shape.inputs)
        )
        if test(at):
            return value
    return None


def _tensor(graph: Graph, value: Value | None) -> Tensor | None:
    return graph.node(value).tensor if value is not None and graph.node(value).is_constant else None


class _At:
    """What a test may look at: the node, its attributes, and the types of its operands."""

    __slots__ = ("attrs", "count", "kind", "node", "other", "tensor")

    def __init__(
        self, node: Node, attrs: Mapping[str, Any], kind: TensorType | None, other: TensorType | None, tensor: Tensor | None, count: int
    ) -> None:
        self.node, self.attrs, self.kind, self.other, self.tensor, self.count = node, attrs, kind, other, tensor, count

    @property
    def dims(self) -> tuple[Any, ...] | None:
        return None if self.kind is None else self.kind.shape

    @property
    def single(self) -> bool:
        """Whether only the first result exists for anybody."""
        return not any(self.node.names[1:])


def _identity(at: _At) -> bool:
    return True


def _dropout(at: _At) -> bool:
    return not at.attrs.get("training_mode") and at.single


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
    return all(
        step == 1 and start == 0 and (end >= _FAR or (isinstance(dims[axis], int) and end >= dims[axis]))
        for start, end, axis, step in zip(a["starts"], a["ends"], axes, steps, strict=True)
    )


def _alone(at: _At) -> bool:
    return at.count == 1


def _expand(at: _At) -> bool:
    dims, target = at.dims, at.attrs.get("shape")
    if dims is None or not isinstance(target, tuple) or len(target) > len(dims):
        return False
    return all(t == 1 or t == d for t, d in zip(reversed(target), reversed(dims), strict=False))


def _tile(at: _At) -> bool:
    return isinstance(at.attrs.get("repeats"), tuple) and all(r == 1 for r in at.attrs["repeats"])


def _split(at: _At) -> bool:
    return len(at.node.types) == 1


def _neutral(number: float) -> Callable[[_At], bool]:
    def test(at: _At) -> bool:
        if at.tensor is None or at.kind is None or at.kind.rank is None or at.tensor.dtype != at.kind.dtype:
            return False
        shape = at.tensor.shape
        return len(shape) <= at.kind.rank and all(d == 1 for d in shape) and bool((at.tensor.array() == number).all())

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
    "Add": _neutral(0),
    "Sub": _neutral(0),
    "Mul": _neutral(1),
    "Div": _neutral(1),
}
