"""Kernels of convolutions and averages: in blocks of channels or plain, with sum, activation and Pad."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cgorl.cost.kernels import fusions
from cgorl.cost.kernels.kernel import BLOCKED, FUSED, Kernel, Slot, float_slot, plain_attrs, slot
from cgorl.cost.kernels.made import padded, shape_of, simple, up
from cgorl.cost.kernels.spots import ACTIVATIONS, Spots
from cgorl.ir.node import Node, Value


def conv(spots: Spots, node: Node, members: list[int], last: Value, blocked: bool) -> tuple[Kernel, ...]:
    """The kernel of a conv (or batchnorm in blocks) with all that it takes along."""
    attrs: dict[str, Any] = dict(plain_attrs("Conv", "", spots.view.opset, node.attrs)) if node.op == "Conv" else {}
    x, summed = node.inputs[0], None
    into, out = shape_of(spots, x), shape_of(spots, last)
    has_bias = len(node.inputs) > 2 and node.inputs[2] is not None
    if node.op == "Conv":
        weight = shape_of(spots, node.inputs[1])
        into = with_pad(spots, x, attrs, into)
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
        wide = up(spots, weight[0])
        if group > 1 and weight[1] == 1 and weight[0] == group:
            attrs["group"], weight = wide, (wide, *weight[1:])
        elif group == 1 and weight[1] >= spots.block:
            weight = (wide, up(spots, weight[1]), *weight[2:])
            into = padded(spots, into)
        else:
            weight = (wide, *weight[1:])
        if group > 1:
            into = padded(spots, into)
        out = padded(spots, out)
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


def mean(spots: Spots, i: int, node: Node, blocked: bool) -> tuple[Kernel, ...]:
    """The kernel of an AveragePool, with the Pad that it takes along."""
    attrs = dict(plain_attrs(node.op, "", spots.view.opset, node.attrs))
    made = simple(spots, node.op, BLOCKED if blocked else "", (), node.inputs[:1], Value(i), 1 if blocked else spots.view.opset, blocked)
    x = made.inputs[0]
    if x is not None and (shape := with_pad(spots, node.inputs[0], attrs, x.shape)) != x.shape:
        attrs["count_include_pad"] = 1
        x = x._replace(shape=padded(spots, shape) if blocked else shape)
    return (replace(made, attrs=tuple(sorted(attrs.items())), inputs=(x,)),)


def with_pad(spots: Spots, x: Value | None, attrs: dict[str, Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a conv or pool reads, once a Pad that it takes along is in its `attrs`; `shape` without one."""
    pad = spots.at(x.node) if x is not None else None
    if pad is None or x is None or pad.op != "Pad" or pad.constant or spots.spot(x.node).head == x.node:
        return shape
    pads = fusions.padding(spots, pad)
    half = len(pads) // 2
    spatial = (*pads[2:half], *pads[half + 2 :])
    attrs["pads"] = tuple(a + b for a, b in zip(attrs.get("pads", (0,) * len(spatial)), spatial, strict=True))
    return shape_of(spots, pad.inputs[0])


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
