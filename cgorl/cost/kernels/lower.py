"""The kernels that a node stands for, by the local rule: what onnxruntime makes of a graph at ORT_ENABLE_ALL."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from cgorl.cost.kernels import fusions
from cgorl.cost.kernels.kernel import BLOCKED, FUSED, Kernel, Slot, float_slot, plain_attrs, slot
from cgorl.cost.kernels.spots import ACTIVATIONS, AFFINE, Spots
from cgorl.ir.graph import OUTPUT
from cgorl.ir.node import Node, Value

_SHAPES = onnx.TensorProto.INT64


def kernels(spots: Spots, i: int) -> tuple[Kernel, ...]:
    """The kernels of node `i` and the reorders of its results; none where another node takes it along."""
    node = spots.at(i)
    if node.constant or (node.is_source and not node.is_input) or node.op == "SparseConstant":
        return ()
    spot = spots.spot(i)
    found = () if node.is_input or spot.head != i else _own(spots, i, node, spot.blocked)
    if spots.block == 1:
        return found
    return (*found, *(k for p in range(len(node.types)) for k in _reorders(spots, Value(i, p), spot.blocked, spot.head)))


def _reorders(spots: Spots, value: Value, blocked: bool, head: int) -> list[Kernel]:
    readers = set(spots.readers(value))
    inner = {u for u in readers if u != OUTPUT and spots.spot(u).head == head}
    if inner and inner == readers:
        return []
    wants = {u != OUTPUT and spots.takes_blocks(u, value) for u in readers}
    if blocked and False in wants:
        shape = _shape(spots, value)
        more = (("channels", shape[1]),)
        return [Kernel("ReorderOutput", BLOCKED, more, (float_slot(_padded(spots, shape)),), (float_slot(shape),), 1)]
    if not blocked and True in wants:
        shape = _shape(spots, value)
        return [Kernel("ReorderInput", BLOCKED, (), (float_slot(shape),), (float_slot(_padded(spots, shape)),), 1)]
    return []


def _own(spots: Spots, i: int, node: Node, blocked: bool) -> tuple[Kernel, ...]:
    members, last = _members(spots, i)
    if node.op == "Conv":
        return _conv(spots, node, members, last, blocked)
    if node.op == "BatchNormalization" and blocked:
        return _conv(spots, node, members, last, blocked)
    if not node.domain and node.op in ("MatMul", "Gemm"):
        return _product(spots, i, node, members, last)
    if (x := fusions.quick_gelu(spots, i)) is not None:
        return (_simple(spots, "QuickGelu", FUSED, (("alpha", 1.0),), (x,), Value(i), 1, blocked),)
    if (found := fusions.gelu_of(spots, i)) is not None:
        return (_gelu(spots, i, *found),)
    if node.op == "Add" and members and spots.at(last.node).op == "LayerNormalization":
        norm = spots.at(last.node)
        attrs = tuple((k, v) for k, v in plain_attrs("LayerNormalization", "", spots.view.opset, norm.attrs) if k != "axis")
        operands = (*node.inputs, *norm.inputs[1:])
        return (_simple(spots, "SkipLayerNormalization", FUSED, attrs, operands, last, 1),)
    if blocked:
        return _follower(spots, i, node)
    if node.op == "AveragePool" and not node.domain:
        return _mean(spots, i, node, False)
    return (_default(spots, i, node),)


def _gelu(spots: Spots, last: int, name: str, x: Value) -> Kernel:
    pair = fusions.bias_last(spots, spots.at(x.node)) if spots.spot(x.node).head == last else None
    if pair is not None:  # the sum with a bias goes with it
        name = "BiasGelu" if name == "Gelu" else name
    return _simple(spots, name, FUSED, (), pair or (x,), Value(last), 1)


def _members(spots: Spots, head: int) -> tuple[list[int], Value]:
    """The nodes behind `head` that its kernel takes along, in order, and the value that the kernel gives."""
    found: list[int] = []
    here = Value(head)
    while (user := spots.sole(here)) is not None and spots.spot(user).head == head:
        found.append(user)
        here = Value(user)
    return found, here


def _conv(spots: Spots, node: Node, members: list[int], last: Value, blocked: bool) -> tuple[Kernel, ...]:
    attrs: dict[str, Any] = dict(plain_attrs("Conv", "", spots.view.opset, node.attrs)) if node.op == "Conv" else {}
    x, summed = node.inputs[0], None
    into, out = _shape(spots, x), _shape(spots, last)
    has_bias = len(node.inputs) > 2 and node.inputs[2] is not None
    if node.op == "Conv":
        weight = _shape(spots, node.inputs[1])
        into = _with_pad(spots, x, attrs, into)
    else:
        weight, has_bias = (into[1], 1, 1, 1), True
        attrs["group"] = into[1]
    for k in members:
        member = spots.at(k)
        if member.op in ("Add", "Sum", "BatchNormalization", "Mul"):
            fold = member.op in ("BatchNormalization", "Mul") or any(spots.constant(v) for v in member.inputs)
            has_bias |= fold and member.op != "Mul"
            summed = member if not fold else summed
        if member.op in ACTIVATIONS:
            attrs["activation"] = member.op
            if params := _activation_params(spots, member):
                attrs["activation_params"] = params
    if blocked:
        group = attrs.get("group", 1)
        wide = _up(spots, weight[0])
        if group > 1 and weight[1] == 1 and weight[0] == group:
            attrs["group"], weight = wide, (wide, *weight[1:])
        elif group == 1 and weight[1] >= spots.block:
            weight = (wide, _up(spots, weight[1]), *weight[2:])
            into = _padded(spots, into)
        else:
            weight = (wide, *weight[1:])
        if group > 1:
            into = _padded(spots, into)
        out = _padded(spots, out)
    fused = blocked or summed is not None or "activation" in attrs
    inputs: list[Slot | None] = [float_slot(into), float_slot(weight, spots.constant(node.inputs[1]))]
    if node.op == "Conv" and not blocked:
        inputs = [slot(spots.type(node.inputs[0])), slot(spots.type(node.inputs[1]), spots.constant(node.inputs[1]))]
        inputs[0] = float_slot(into) if inputs[0] is not None and inputs[0].shape != into else inputs[0]
    if has_bias or summed is not None:
        bias = float_slot((weight[0],), True)
        inputs.append(bias if has_bias else None)
    if summed is not None:
        inputs.append(float_slot(out))
    domain = BLOCKED if blocked else FUSED if fused else ""
    name = "FusedConv" if domain == FUSED else "Conv"
    opset = 1 if domain else spots.view.opset
    made = slot(spots.type(last))
    result = float_slot(out) if blocked else made
    return (Kernel(name, domain, tuple(sorted(attrs.items())), tuple(inputs), (result,), opset),)


def _with_pad(spots: Spots, x: Value | None, attrs: dict[str, Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a conv or pool reads, once a Pad that it takes along is in its `attrs`; `shape` without one."""
    pad = spots.at(x.node) if x is not None else None
    if pad is None or x is None or pad.op != "Pad" or pad.constant or spots.spot(x.node).head == x.node:
        return shape
    pads = fusions.padding(spots, pad)
    half = len(pads) // 2
    spatial = (*pads[2:half], *pads[half + 2 :])
    attrs["pads"] = tuple(a + b for a, b in zip(attrs.get("pads", (0,) * len(spatial)), spatial, strict=True))
    return _shape(spots, pad.inputs[0])


def _activation_params(spots: Spots, node: Node) -> tuple[float, ...]:
    """The numbers of an activation, as float32 knows them."""
    attrs: dict[str, Any] = dict(node.attrs)
    found: tuple[Any, ...] = ()
    if node.op == "LeakyRelu":
        found = (attrs.get("alpha", 0.01),)
    if node.op == "HardSigmoid":
        found = (attrs.get("alpha", 0.2), attrs.get("beta", 0.5))
    if node.op == "Clip":
        far = float(np.finfo(np.float32).max)
        low = attrs.get("min", spots.number(node.inputs[1]) if len(node.inputs) > 1 else None)
        high = attrs.get("max", spots.number(node.inputs[2]) if len(node.inputs) > 2 else None)
        found = (-far if low is None else low, far if high is None else high)
    return tuple(float(np.float32(v)) for v in found)


def _follower(spots: Spots, i: int, node: Node) -> tuple[Kernel, ...]:
    """A node whose operands and result are blocked."""
    opset, value = spots.view.opset, Value(i)
    operands = tuple(v for v in node.inputs if v is not None)
    if node.op == "AveragePool":
        return _mean(spots, i, node, True)
    if node.op in ("MaxPool", "GlobalMaxPool", "GlobalAveragePool"):
        return (_simple(spots, node.op, BLOCKED, plain_attrs(node.op, "", opset, node.attrs), operands[:1], value, 1, True),)
    if node.op in ("Resize", "Upsample"):
        scales = tuple(int(s) for s in fusions.resize_scales(spots, node))
        more = [("mode", node.attrs.get("mode", "nearest")), ("scales", scales)]
        if node.op == "Resize":
            more.append(("coordinate_transformation_mode", node.attrs.get("coordinate_transformation_mode", "half_pixel")))
        return (_simple(spots, "Upsample", BLOCKED, tuple(sorted(more)), operands[:1], value, 1, True),)
    shapes = [_shape(spots, v) for v in operands]
    if node.op in ("Add", "Mul") and spots.must_cut(node):
        return _scaling(spots, node.op, shapes, opset)
    attrs = dict(plain_attrs(node.op, "", opset, node.attrs))
    if "axis" in attrs:
        attrs["axis"] = 1
    return (_simple(spots, node.op, "", tuple(attrs.items()), operands, value, opset, True),)


def _mean(spots: Spots, i: int, node: Node, blocked: bool) -> tuple[Kernel, ...]:
    attrs = dict(plain_attrs(node.op, "", spots.view.opset, node.attrs))
    made = _simple(spots, node.op, BLOCKED if blocked else "", (), node.inputs[:1], Value(i), 1 if blocked else spots.view.opset, blocked)
    x = made.inputs[0]
    if x is not None and (shape := _with_pad(spots, node.inputs[0], attrs, x.shape)) != x.shape:
        attrs["count_include_pad"] = 1
        x = x._replace(shape=_padded(spots, shape) if blocked else shape)
    return (replace(made, attrs=tuple(sorted(attrs.items())), inputs=(x,)),)


def _scaling(spots: Spots, op: str, shapes: list[tuple[int, ...]], opset: int) -> tuple[Kernel, ...]:
    """A map times a number for each channel: both and the result are cut into blocks by Reshapes."""
    b, cut, found = spots.block, [], []
    for s in shapes:
        cut.append((s[0], s[1] // b, *s[2:], b))
        found.append(_reshape(s, cut[-1], opset))
    out = max(cut, key=math.prod)
    whole = max(shapes, key=math.prod)
    found.append(Kernel(op, "", (), tuple(map(float_slot, cut)), (float_slot(out),), opset))
    return (*found, _reshape(out, whole, opset))


def _reshape(before: tuple[int, ...], after: tuple[int, ...], opset: int) -> Kernel:
    shape = Slot(_SHAPES, (len(after),), True)
    return Kernel("Reshape", "", (), (float_slot(before), shape), (float_slot(after),), opset)


def _product(spots: Spots, i: int, node: Node, members: list[int], last: Value) -> tuple[Kernel, ...]:
    opset = spots.view.opset
    attrs: dict[str, Any] = dict(plain_attrs(node.op, "", opset, node.attrs))
    ops = [spots.at(k) for k in members]
    activation = next((n.op for n in ops if n.op not in ("Add", "Mul", "Div")), None)
    if node.op == "MatMul" and spots.spot(i).stage and members and spots.spot(members[0]).stage == AFFINE:
        a, w = _shape(spots, node.inputs[0]), _shape(spots, node.inputs[1])
        rows = (math.prod(a[:-1]), a[-1])
        other = next(v for v in ops[0].inputs if v != Value(i))
        inputs = (
            float_slot(rows, spots.constant(node.inputs[0])),
            float_slot(w, spots.constant(node.inputs[1])),
            _slot_of(spots, other, "Gemm"),
        )
        name, domain = ("Gemm", "") if activation is None else ("FusedGemm", FUSED)
        kind = () if activation is None else (("activation", activation),)
        gemm = Kernel(name, domain, kind, inputs, (float_slot((rows[0], w[1])),), 1 if domain else opset)
        if len(a) == 2:
            return (gemm,)
        out = (*a[:-1], w[1])
        found = [_reshape(_shape(spots, fusions.reshaped(spots, node.inputs[0])), rows, opset), gemm]
        user = spots.sole(last)
        if user is None or spots.at(user).op != "Reshape":
            found.append(_reshape((rows[0], w[1]), out, opset))
        return tuple(found)
    operands, alpha = list(node.inputs), 1.0
    if node.op == "MatMul":
        more: dict[str, Any] = {}
        for k, (v, side) in enumerate(zip(node.inputs, "AB", strict=True)):
            if v is None or spots.constant(v) or spots.spot(v.node).head != i:
                continue
            step = spots.at(v.node)
            if step.op == "Transpose":
                batch, swap = fusions.transposed(step) or (False, False)
                more |= {f"trans{side}": 1} if swap else {}
                more |= {f"transBatch{side}": 1} if batch else {}
                operands[k] = step.inputs[0]
            else:
                alpha *= _factor(spots, step)
                operands[k] = next(u for u in step.inputs if spots.number(u) is None)
        for n in ops:
            alpha *= _factor(spots, n)
        if alpha != 1.0 or more:
            more["alpha"] = float(f"{alpha:.4g}")
            return (_simple(spots, "FusedMatMul", FUSED, tuple(sorted(more.items())), tuple(operands), last, 1),)
    if activation is not None:
        attrs["activation"] = activation
        return (_simple(spots, "FusedGemm", FUSED, tuple(sorted(attrs.items())), tuple(operands), last, 1),)
    return (_simple(spots, node.op, "", tuple(sorted(attrs.items())), tuple(operands), last, opset),)


def _factor(spots: Spots, node: Node) -> float:
    """What a Mul or Div by one number multiplies by."""
    number = next(n for u in node.inputs if (n := spots.number(u)) is not None)
    return number if node.op == "Mul" else 1 / number


def _simple(
    spots: Spots,
    op: str,
    domain: str,
    attrs: tuple[tuple[str, Any], ...],
    operands: tuple[Value | None, ...],
    result: Value,
    opset: int,
    blocked: bool = False,
) -> Kernel:
    inputs = tuple(_slot_of(spots, v, op) for v in operands)
    outputs: tuple[Slot | None, ...] = (slot(spots.type(result)),)
    if blocked:
        inputs = tuple(None if s is None else s._replace(shape=_padded(spots, s.shape)) for s in inputs)
        outputs = tuple(None if s is None else s._replace(shape=_padded(spots, s.shape)) for s in outputs)
    return Kernel(op, domain, attrs, inputs, outputs, opset)


def _default(spots: Spots, i: int, node: Node) -> Kernel:
    opset = spots.view.opset if not node.domain else 1
    inputs = tuple(_slot_of(spots, v, node.op) for v in node.inputs)
    if node.op == "Reshape" and inputs[0] is not None:
        source = node.inputs[0]
        while source is not None and spots.spot(source.node).head == i:  # Reshapes that go into this one
            source = spots.at(source.node).inputs[0]
        inputs = (inputs[0]._replace(shape=_flat(spots, source)), *inputs[1:])
    outputs = tuple(slot(t) if node.gives(p) else None for p, t in enumerate(spots.types(i)))
    return Kernel(node.op, node.domain, plain_attrs(node.op, node.domain, opset, node.attrs), inputs, outputs, opset)


def _flat(spots: Spots, value: Value | None) -> tuple[int, ...]:
    """The shape of a value, or the rows and columns of the Gemm that it comes from."""
    shape = _shape(spots, value)
    if value is not None and len(shape) > 2 and not spots.constant(value):
        spot = spots.spot(value.node)
        if spot.stage == AFFINE and spots.at(spot.head).op == "MatMul" and spots.sole(value) is not None:
            return (math.prod(shape[:-1]), shape[-1])
    return shape


def _slot_of(spots: Spots, value: Value | None, op: str) -> Slot | None:
    if value is None:
        return None
    return slot(spots.type(value), spots.constant(value), spots.contents(value), op)


def _shape(spots: Spots, value: Value | None) -> tuple[int, ...]:
    kind = spots.type(value)
    return () if kind is None or kind.shape is None else tuple(d if isinstance(d, int) else 1 for d in kind.shape)


def _up(spots: Spots, channels: int) -> int:
    return -(-channels // spots.block) * spots.block


def _padded(spots: Spots, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], _up(spots, shape[1]), *shape[2:]) if len(shape) > 1 else shape
