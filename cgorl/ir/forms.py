"""Opset forms in one place: an operator's parameters as attributes, whether the opset has them as attributes or as inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.graph import Graph, GraphError
from cgorl.ir.node import Attrs, Node, TensorType, Value
from cgorl.ir.ops import defaults, schema
from cgorl.ir.tensor import Tensor

PARAMETERS: Mapping[str, tuple[tuple[str, int, int], ...]] = {
    "Reshape": (("shape", 1, 5),),
    "Squeeze": (("axes", 1, 13),),
    "Unsqueeze": (("axes", 1, 13),),
    "ReduceSum": (("axes", 1, 13),),
    **{f"Reduce{kind}": (("axes", 1, 18),) for kind in ("Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")},
    "Clip": (("min", 1, 11), ("max", 2, 11)),
    "Pad": (("pads", 1, 11), ("value", 2, 11), ("axes", 3, 18)),
    "Slice": (("starts", 1, 10), ("ends", 2, 10), ("axes", 3, 10), ("steps", 4, 10)),
    "Split": (("split", 1, 13),),
    "Expand": (("shape", 1, 8),),
    "Tile": (("repeats", 1, 6),),
    "TopK": (("k", 1, 10),),
    "Dropout": (("ratio", 1, 12), ("training_mode", 2, 12)),
}
"""Operator -> (parameter, its input's place, the opset from which it is an input and no attribute)."""

NEUTRAL = {"training_mode": 0, "spatial": 1, "allowzero": 0, "value": 0.0, "ratio": 0.5}
"""What an attribute says that its absence means anyway."""

_SINGLE = frozenset({"min", "max", "value", "k", "ratio", "training_mode"})
_FAR = 3.4e38
"""From here on a Clip's default bound is none."""

_SPATIAL = frozenset({"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"})
_AXIS = frozenset({"Concat", "Split", "Softmax", "LogSoftmax", "Hardmax", "Gather", "Flatten", "ArgMax", "ArgMin", "LayerNormalization"})


@dataclass(frozen=True, slots=True)
class Form:
    """A node as rules see it: data operands, and every attribute with its value, defaults and parameters included.

    `missing` names a parameter that is an input computed at run time; such a node matches no pattern.
    """

    op: str
    inputs: tuple[Value | None, ...]
    attrs: Attrs
    missing: str = ""
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


def form(graph: Graph, i: int) -> Form:
    """The form of node `i`; kept with the node, since a node's operands never change."""
    node = graph.nodes[i]
    found = node.memo.get("form")
    if found is None:
        found = node.memo["form"] = _form(graph, node)
    return found


def _form(graph: Graph, node: Node) -> Form:
    opset = graph.opset
    attrs: dict[str, Any] = {**defaults(node.op, node.domain, graph.opsets.get(node.domain, 1)), **node.attrs}
    inputs, missing = list(node.inputs), ""
    table = [p for p in PARAMETERS.get(node.op, ()) if node.domain == "" and opset >= p[2]]
    for name, place, _ in table:
        source = inputs[place] if place < len(inputs) else None
        if source is None:
            continue
        held = graph.node(source)
        if held.is_constant:
            array = held.tensor.array().reshape(-1)
            if name not in _SINGLE:
                attrs[name] = tuple(array.tolist())
            elif array.size == 1:
                attrs[name] = array.tolist()[0]
            else:
                missing = name
        else:
            missing = name
    if table:
        inputs = inputs[: min(p[1] for p in table)]
    while inputs and inputs[-1] is None:
        inputs.pop()
    first = graph.type(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
    if node.domain == "":
        _complete(graph, node, attrs, first)
    return Form(node.op, tuple(inputs), attrs, missing)


def _complete(graph: Graph, node: Node, attrs: dict[str, Any], first: TensorType | None) -> None:
    rank = first.rank if first is not None else None
    if node.op in _AXIS and rank is not None and isinstance(attrs.get("axis"), int) and attrs["axis"] < 0:
        attrs["axis"] += rank
    if node.op == "Transpose" and rank is not None and "perm" not in attrs:
        attrs["perm"] = tuple(reversed(range(rank)))
    if node.op in _SPATIAL and rank is not None:
        _spatial(graph, node, attrs, first)
    if node.op == "BatchNormalization":
        extra = any(n for n in node.names[1:])
        attrs["training_mode"] = attrs.get("training_mode", 0) if graph.opset >= 14 else int(extra)
        attrs.setdefault("spatial", 1)
    if node.op == "Dropout":
        attrs["training_mode"] = int(attrs.get("training_mode", 0))
        attrs.setdefault("ratio", 0.5)
    if node.op == "Pad":
        attrs.setdefault("value", 0.0)
    if node.op == "Reshape":
        attrs.setdefault("allowzero", 0)
    if node.op == "Clip":
        for bound in ("min", "max"):
            value = attrs.setdefault(bound, None)
            if isinstance(value, float) and abs(value) >= _FAR:
                attrs[bound] = None
    if node.op == "Slice" and isinstance(attrs.get("starts"), tuple):
        attrs.setdefault("axes", tuple(range(len(attrs["starts"]))))
        attrs.setdefault("steps", (1,) * len(attrs["starts"]))
    if node.op == "Split" and "split" not in attrs and first is not None and first.shape is not None:
        size, many = first.shape[attrs["axis"]], len(node.types)
        if isinstance(size, int):
            each = -(-size // many)
            attrs["split"] = tuple(min(each, size - k * each) for k in range(many))
    if node.op == "Split":
        attrs.pop("num_outputs", None)
    if rank is not None and node.op.startswith("Reduce") and "axes" not in attrs and not attrs.get("noop_with_empty_axes"):
        attrs["axes"] = tuple(range(rank))
    if rank is not None and "axes" in attrs and node.op in PARAMETERS:
        full_rank = rank + len(attrs["axes"]) if node.op == "Unsqueeze" else rank
        attrs["axes"] = tuple(a + full_rank if a < 0 else a for a in attrs["axes"])
    if node.op == "Pad" and rank is not None and "axes" in attrs and "pads" in attrs:
        axes, pads = attrs.pop("axes"), attrs["pads"]
        full = [0] * (2 * rank)
        for k, a in enumerate(axes):
            full[a], full[a + rank] = pads[k], pads[k + len(axes)]
        attrs["pads"] = tuple(full)


def _spatial(graph: Graph, node: Node, attrs: dict[str, Any], first: TensorType | None) -> None:
    assert first is not None and first.shape is not None
    dims = first.shape[2:]
    if "kernel_shape" not in attrs and len(node.inputs) > 1 and node.inputs[1] is not None:
        kind = graph.type(node.inputs[1])
        if kind is not None and kind.static:
            attrs["kernel_shape"] = kind.shape[2:]  # type: ignore[index]
    attrs.setdefault("strides", (1,) * len(dims))
    attrs.setdefault("dilations", (1,) * len(dims))
    mode = attrs.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        attrs.setdefault("pads", (0,) * (2 * len(dims)))
    elif mode == "VALID":
        attrs["pads"] = (0,) * (2 * len(dims))
    elif node.op != "ConvTranspose" and _agreed(attrs) and all(isinstance(d, int) for d in dims):
        begin, end = [], []
        for size, k, s, d in zip(dims, attrs["kernel_shape"], attrs["strides"], attrs["dilations"], strict=True):
            assert isinstance(size, int)
            total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            small, large = total // 2, total - total // 2
            begin.append(small if mode == "SAME_UPPER" else large)
            end.append(large if mode == "SAME_UPPER" else small)
        attrs["pads"] = (*begin, *end)
    else:
        return
    attrs.pop("auto_pad", None)


def _agreed(attrs: dict[str, Any]) -> bool:
    """Whether runtimes agree on SAME: not where the kernel is dilated or the stride passes over input."""
    if "kernel_shape" not in attrs:
        return False
    return all(d == 1 and s <= k for k, s, d in zip(attrs["kernel_shape"], attrs["strides"], attrs["dilations"], strict=True))


@lru_cache(maxsize=4096)
def _held(value: Any, dtype: int) -> Tensor:
    try:
        return _tensor(value, dtype)
    except OverflowError:
        raise GraphError(f"{value} is no number of type {onnx.TensorProto.DataType.Name(dtype)}") from None


def _tensor(value: Any, dtype: int) -> Tensor:
    return Tensor.of(np.array(value, tensor_dtype_to_np_dtype(dtype)), dtype)


def emit(op: str, opset: int, attrs: Attrs, dtype: int) -> tuple[dict[str, Any], dict[int, Tensor]]:
    """Attributes and constant inputs (by place) that say `attrs` at `opset`; the reverse of `form`.

    `dtype` is the element type of the first operand, which bounds and fill values share.
    """
    if not attrs:
        return {}, {}
    spec = schema(op, "", opset)
    rest = dict(attrs)
    places: dict[int, Tensor] = {}
    for name, place, since in PARAMETERS.get(op, ()):
        if opset >= since and name in rest:
            value = rest.pop(name)
            if value is None or value == NEUTRAL.get(name):
                continue
            kind = {"min": dtype, "max": dtype, "value": dtype, "ratio": onnx.TensorProto.FLOAT, "training_mode": onnx.TensorProto.BOOL}
            places[place] = _held((value,) if name == "k" else value, kind.get(name, onnx.TensorProto.INT64))
    usual = defaults(op, "", opset)
    kept = {k: v for k, v in rest.items() if v is not None and (k not in usual or usual[k] != v)}
    if spec is not None:
        for name in [k for k in kept if k not in spec.attributes]:
            value = kept.pop(name)
            if value != NEUTRAL.get(name) and not (name in ("dilations", "steps") and isinstance(value, tuple) and set(value) == {1}):
                raise GraphError(f"{op} of opset {opset} has no attribute '{name}'")
    return kept, places
