"""The kernels that a node stands for, by the local rule: what onnxruntime makes of a graph at ORT_ENABLE_ALL."""

from __future__ import annotations

import math

import onnx

from cgorl.cost.kernels import fusions, gelu
from cgorl.cost.kernels.convs import conv, mean
from cgorl.cost.kernels.kernel import BLOCKED, FUSED, HELD, Kernel, Slot, float_slot, plain_attrs, slot
from cgorl.cost.kernels.made import padded, reshape, shape_of, simple, slot_of
from cgorl.cost.kernels.products import product
from cgorl.cost.kernels.spots import AFFINE, Spots
from cgorl.ir.graph import OUTPUT
from cgorl.ir.node import Node, Value


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
        shape = shape_of(spots, value)
        more = (("channels", shape[1]),)
        return [Kernel("ReorderOutput", BLOCKED, more, (float_slot(padded(spots, shape)),), (float_slot(shape),), 1)]
    if not blocked and True in wants:
        shape = shape_of(spots, value)
        return [Kernel("ReorderInput", BLOCKED, (), (float_slot(shape),), (float_slot(padded(spots, shape)),), 1)]
    return []


def _own(spots: Spots, i: int, node: Node, blocked: bool) -> tuple[Kernel, ...]:
    members, last = _members(spots, i)
    if node.op == "Conv":
        return conv(spots, node, members, last, blocked)
    if node.op == "BatchNormalization" and blocked:
        return conv(spots, node, members, last, blocked)
    if not node.domain and node.op in ("MatMul", "Gemm"):
        return product(spots, i, node, members, last)
    if (x := gelu.quick(spots, i)) is not None:
        return (simple(spots, "QuickGelu", FUSED, (("alpha", 1.0),), (x,), Value(i), 1, blocked),)
    if (found := gelu.ending(spots, i)) is not None:
        return (_gelu(spots, i, *found),)
    if node.op == "Add" and members and spots.at(last.node).op == "LayerNormalization":
        norm = spots.at(last.node)
        attrs = tuple((k, v) for k, v in plain_attrs("LayerNormalization", "", spots.view.opset, norm.attrs) if k != "axis")
        operands = (*node.inputs, *norm.inputs[1:])
        return (simple(spots, "SkipLayerNormalization", FUSED, attrs, operands, last, 1),)
    if blocked:
        return _follower(spots, i, node)
    if (parts := fusions.focus(spots, i)) is not None:
        return _focus(spots, i, *parts)
    if node.op == "AveragePool" and not node.domain:
        return mean(spots, i, node, False)
    return (_default(spots, i, node),)


def _gelu(spots: Spots, last: int, name: str, x: Value) -> Kernel:
    pair = gelu.bias_last(spots, spots.at(x.node)) if spots.spot(x.node).head == last else None
    if pair is not None:  # the sum with a bias goes with it
        name = "BiasGelu" if name == "Gelu" else name
    return simple(spots, name, FUSED, (), pair or (x,), Value(last), 1)


def _focus(spots: Spots, i: int, x: Value, order: tuple[int, ...]) -> tuple[Kernel, ...]:
    found = simple(spots, "SpaceToDepth", "", (("blocksize", 2),), (x,), Value(i), spots.view.opset)
    if order == (0, 1, 2, 3):
        return (found,)
    channels = shape_of(spots, x)[1]
    places = tuple(channels * k + c for k in order for c in range(channels))
    at = Slot(onnx.TensorProto.INT64, (len(places),), True, places if len(places) <= HELD else None)
    return found, Kernel("Gather", "", (("axis", 1),), (found.outputs[0], at), found.outputs, spots.view.opset)


def _members(spots: Spots, head: int) -> tuple[list[int], Value]:
    """The nodes behind `head` that its kernel takes along, in order, and the value that the kernel gives."""
    found: list[int] = []
    here = Value(head)
    while (user := spots.sole(here)) is not None and spots.spot(user).head == head:
        found.append(user)
        here = Value(user)
    return found, here


def _follower(spots: Spots, i: int, node: Node) -> tuple[Kernel, ...]:
    """A node whose operands and result are blocked."""
    opset, value = spots.view.opset, Value(i)
    operands = tuple(v for v in node.inputs if v is not None)
    if node.op == "AveragePool":
        return mean(spots, i, node, True)
    if node.op in ("MaxPool", "GlobalMaxPool", "GlobalAveragePool"):
        return (simple(spots, node.op, BLOCKED, plain_attrs(node.op, "", opset, node.attrs), operands[:1], value, 1, True),)
    if node.op in ("Resize", "Upsample"):
        scales = tuple(int(s) for s in fusions.resize_scales(spots, node))
        more = [("mode", node.attrs.get("mode", "nearest")), ("scales", scales)]
        if node.op == "Resize":
            more.append(("coordinate_transformation_mode", node.attrs.get("coordinate_transformation_mode", "half_pixel")))
        return (simple(spots, "Upsample", BLOCKED, tuple(sorted(more)), operands[:1], value, 1, True),)
    shapes = [shape_of(spots, v) for v in operands]
    if node.op in ("Add", "Mul") and spots.must_cut(node):
        return _scaling(spots, node.op, shapes, opset)
    attrs = dict(plain_attrs(node.op, "", opset, node.attrs))
    if "axis" in attrs:
        attrs["axis"] = 1
    return (simple(spots, node.op, "", tuple(attrs.items()), operands, value, opset, True),)


def _scaling(spots: Spots, op: str, shapes: list[tuple[int, ...]], opset: int) -> tuple[Kernel, ...]:
    """A map times a number for each channel: both and the result are cut into blocks by Reshapes."""
    b, cut, found = spots.block, [], []
    for s in shapes:
        cut.append((s[0], s[1] // b, *s[2:], b))
        found.append(reshape(s, cut[-1], opset))
    out = max(cut, key=math.prod)
    whole = max(shapes, key=math.prod)
    found.append(Kernel(op, "", (), tuple(map(float_slot, cut)), (float_slot(out),), opset))
    return (*found, reshape(out, whole, opset))


def _default(spots: Spots, i: int, node: Node) -> Kernel:
    opset = spots.view.opset if not node.domain else 1
    inputs = tuple(slot_of(spots, v, node.op) for v in node.inputs)
    if node.op == "Reshape" and inputs[0] is not None:
        source = node.inputs[0]
        while source is not None and spots.spot(source.node).head == i:  # Reshapes that go into this one
            source = spots.at(source.node).inputs[0]
        inputs = (inputs[0]._replace(shape=_flat(spots, source)), *inputs[1:])
    outputs = tuple(slot(t) if node.gives(p) else None for p, t in enumerate(spots.types(i)))
    return Kernel(node.op, node.domain, plain_attrs(node.op, node.domain, opset, node.attrs), inputs, outputs, opset)


def _flat(spots: Spots, value: Value | None) -> tuple[int, ...]:
    """The shape of a value, or the rows and columns of the Gemm that it comes from."""
    shape = shape_of(spots, value)
    if value is not None and len(shape) > 2 and not spots.constant(value):
        spot = spots.spot(value.node)
        if spot.stage == AFFINE and spots.at(spot.head).op == "MatMul" and spots.sole(value) is not None:
            return (math.prod(shape[:-1]), shape[-1])
    return shape
