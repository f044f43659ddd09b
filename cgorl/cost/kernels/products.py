"""Kernels of matrix products: Gemm with bias and activation, products that take along scales and Transposes."""

from __future__ import annotations

import math
from typing import Any

from cgorl.cost.kernels import fusions
from cgorl.cost.kernels.kernel import FUSED, Kernel, float_slot, plain_attrs
from cgorl.cost.kernels.made import reshape, shape_of, simple, slot_of
from cgorl.cost.kernels.spots import AFFINE, Spots
from cgorl.ir.node import Node, Value


def product(spots: Spots, i: int, node: Node, members: list[int], last: Value) -> tuple[Kernel, ...]:
    """The kernels of a matrix product with all that it takes along: a Gemm between Reshapes, or one."""
    opset = spots.view.opset
    attrs: dict[str, Any] = dict(plain_attrs(node.op, "", opset, node.attrs))
    ops = [spots.at(k) for k in members]
    activation = next((n.op for n in ops if n.op not in ("Add", "Mul", "Div")), None)
    if node.op == "MatMul" and spots.spot(i).stage and members and spots.spot(members[0]).stage == AFFINE:
        a, w = shape_of(spots, node.inputs[0]), shape_of(spots, node.inputs[1])
        rows = (math.prod(a[:-1]), a[-1])
        other = next(v for v in ops[0].inputs if v != Value(i))
        inputs = (
            float_slot(rows, spots.constant(node.inputs[0])),
            float_slot(w, spots.constant(node.inputs[1])),
            slot_of(spots, other, "Gemm"),
        )
        name, domain = ("Gemm", "") if activation is None else ("FusedGemm", FUSED)
        kind = () if activation is None else (("activation", activation),)
        gemm = Kernel(name, domain, kind, inputs, (float_slot((rows[0], w[1])),), 1 if domain else opset)
        if len(a) == 2:
            return (gemm,)
        out = (*a[:-1], w[1])
        found = [reshape(shape_of(spots, fusions.reshaped(spots, node.inputs[0])), rows, opset), gemm]
        user = spots.sole(last)
        if user is None or spots.at(user).op != "Reshape":
            found.append(reshape((rows[0], w[1]), out, opset))
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
            return (simple(spots, "FusedMatMul", FUSED, tuple(sorted(more.items())), tuple(operands), last, 1),)
    if activation is not None:
        attrs["activation"] = activation
        return (simple(spots, "FusedGemm", FUSED, tuple(sorted(attrs.items())), tuple(operands), last, 1),)
    return (simple(spots, node.op, "", tuple(sorted(attrs.items())), tuple(operands), last, opset),)


def _factor(spots: Spots, node: Node) -> float:
    """What a Mul or Div by one number multiplies by."""
    number = next(n for u in node.inputs if (n := spots.number(u)) is not None)
    return number if node.op == "Mul" else 1 / number
