"""The patterns that onnxruntime runs as one kernel, each asked for around one node."""

from __future__ import annotations

import math

from cgorl.cost.kernels.look import FLOAT, Look
from cgorl.ir.node import Node, Value


def bounds_known(look: Look, node: Node) -> bool:
    """Whether the bounds of a Clip are constants (an activation without bounds has none to know)."""
    return node.op != "Clip" or all(v is None or look.contents(v) is not None for v in node.inputs[1:])


def pad_of(look: Look, i: int, user: int) -> bool:
    """Whether Pad `i` goes into its only reader, a conv or mean: zeros at the spatial dims."""
    node, conv = look.at(i), look.at(user)
    if (
        conv.op not in ("Conv", "AveragePool")
        or conv.inputs[0] != Value(i)
        or node.attrs.get("mode", "constant") != "constant"
        or len(node.inputs) > 3
    ):
        return False
    if conv.attrs.get("auto_pad", "NOTSET") != "NOTSET" or (len(node.inputs) > 2 and node.inputs[2] and look.number(node.inputs[2]) != 0.0):
        return False
    pads = padding(look, node)
    half = len(pads) // 2
    return half > 2 and min(pads) >= 0 and not any((*pads[:2], *pads[half : half + 2]))


def padding(look: Look, node: Node) -> tuple[int, ...]:
    """The pads of a Pad, or none if they are not known."""
    if isinstance(pads := node.attrs.get("pads"), tuple):
        return pads  # type: ignore[return-value]
    held = look.contents(node.inputs[1]) if len(node.inputs) > 1 else None
    return tuple(int(p) for p in held.array().reshape(-1)) if held is not None else ()


def whole_scales(look: Look, node: Node) -> bool:
    """Whether a Resize enlarges rows and columns by whole numbers and can be done in blocks."""
    scales = resize_scales(look, node)
    mode, where = node.attrs.get("mode", "nearest"), node.attrs.get("coordinate_transformation_mode", "half_pixel")
    if len(scales) != 4 or scales[:2] != (1.0, 1.0) or any(s != int(s) or s < 1 for s in scales):
        return False
    if node.op == "Upsample":
        return mode == "nearest"
    if mode == "nearest":
        return where == "asymmetric" and node.attrs.get("nearest_mode", "round_prefer_floor") == "floor"
    return mode == "linear" and where in ("asymmetric", "align_corners", "half_pixel")


def resize_scales(look: Look, node: Node) -> tuple[float, ...]:
    """The factors of a Resize or Upsample, from its scales or sizes; none if they are not known."""
    place = 2 if node.op == "Resize" and len(node.inputs) > 2 else 1
    held = look.contents(node.inputs[place]) if len(node.inputs) > place else None
    if held is not None and math.prod(held.shape):
        return tuple(float(s) for s in held.array().reshape(-1))
    sizes, shape = look.contents(node.inputs[3]) if len(node.inputs) > 3 else None, look.shape(node.inputs[0])
    return tuple(float(n) / d for n, d in zip(sizes.array().reshape(-1), shape, strict=True)) if sizes is not None and shape else ()


# ---------------------------------------------------------------- matrix products
def bias(look: Look, head: int, add: Node, value: Value) -> bool:
    """Whether product `head` and the sum `add` of its `value` with a bias are one Gemm."""
    product = look.at(head)
    a, b = (look.shape(v) for v in product.inputs[:2])
    other = next((v for v in add.inputs if v != value), None)
    shape = look.shape(other)
    if a is None or b is None or shape is None or len(b) != 2 or len(a) < 2:
        return False
    wide = b[1]
    if len(a) == 2:
        return len(shape) in (1, 2) and shape[-1] == wide and shape[:-1] in ((), (1,), (a[0],))
    known = all(v is not None and look.declared(v) for v in product.inputs[:2]) and look.declared(value)
    return known and look.constant(product.inputs[1]) and shape == (wide,)


def flat(look: Look, head: int) -> bool:
    """Whether product `head` is of matrices, so that its Gemm needs no Reshape and can take an activation."""
    shape = look.shape(look.at(head).inputs[0])
    return shape is not None and len(shape) == 2


def scaled(look: Look, node: Node, value: Value) -> bool:
    """Whether `node` multiplies or divides `value` by one number."""
    others = [v for v in node.inputs if v != value]
    return len(others) == 1 and look.number(others[0]) is not None and (node.op == "Mul" or node.inputs[0] == value)


def for_product(look: Look, i: int, node: Node) -> int | None:
    """The matrix product that takes along node `i`, which scales or transposes one of its operands; or None."""
    user = look.sole(Value(i))
    if user is None or look.at(user).op != "MatMul":
        return None
    if node.op == "Transpose":
        if transposed(node) is None:
            return None
    elif not any(v is not None and look.number(v) is None and scaled(look, node, v) for v in node.inputs):
        return None
    after = look.sole(Value(user))
    if after is not None and look.at(after).op == "Add" and bias(look, user, look.at(after), Value(user)):
        return None
    return user


def transposed(node: Node) -> tuple[bool, bool] | None:
    """Whether a Transpose moves the batch behind the rows and whether it swaps rows and columns; None if it does other things."""
    return _TRANSPOSES.get(node.attrs.get("perm"))  # type: ignore[arg-type]


_TRANSPOSES = {
    (1, 0): (False, True),
    (0, 2, 1): (False, True),
    (0, 1, 3, 2): (False, True),
    (1, 0, 2): (True, False),
    (1, 2, 0): (True, True),
    (1, 2, 0, 3): (True, False),
    (1, 2, 3, 0): (True, True),
}


def skip(look: Look, i: int, node: Node) -> int | None:
    """The sum that layer normalization `i` is run together with, or None."""
    first = node.inputs[0]
    if first is None or look.at(first.node).op != "Add" or look.sole(first) != i or len([n for n in node.names if n]) > 1:
        return None
    added = look.at(first.node)
    shapes = [look.shape(v) for v in added.inputs]
    if shapes[0] is None or shapes[0] != shapes[1] or len(shapes[0]) != 3 or node.attrs.get("axis", -1) not in (-1, 2):
        return None
    if any(look.constant(v) or v is None or not look.declared(v) for v in added.inputs):
        return None
    return first.node


# ---------------------------------------------------------------- slices
def focus(look: Look, concat: int) -> tuple[Value, tuple[int, ...]] | None:
    """What a Concat of its every second row and column is made of, and the order of the four, as SpaceToDepth numbers them; or None."""
    node = look.at(concat)
    if node.op != "Concat" or node.attrs.get("axis") not in (1, -3) or len(node.inputs) != 4:
        return None
    sources, order = set(), []
    for v in node.inputs:
        if v is None or look.sole(v) != concat or (corner := _corner(look, look.at(v.node))) is None:
            return None
        sources.add(look.at(v.node).inputs[0])
        order.append(corner)
    source = sources.pop() if len(sources) == 1 else None
    return (source, tuple(order)) if source is not None and sorted(order) == [0, 1, 2, 3] else None


def _corner(look: Look, node: Node) -> int | None:
    """Which of four a Slice takes: 2 for odd rows and 1 for odd columns; None if it takes anything else."""
    if node.op != "Slice" or len(node.inputs) != 5:
        return None
    shape, held = look.shape(node.inputs[0]), [look.contents(v) for v in node.inputs[1:]]
    if shape is None or len(shape) != 4 or shape[2] % 2 or shape[3] % 2 or look.type(node.inputs[0]).dtype != FLOAT:  # type: ignore[union-attr]
        return None
    told = [tuple(int(n) for n in t.array().reshape(-1)) for t in held if t is not None]
    if len(told) != 4 or told[2:] != [(2, 3), (2, 2)] or not set(told[0]) <= {0, 1}:
        return None
    if told[1][0] < shape[2] or told[1][1] < shape[3]:
        return None
    return 2 * told[0][0] + told[0][1]


# ---------------------------------------------------------------- reshapes
def reshaped_again(look: Look, i: int) -> int | None:
    """The node that Reshape `i` goes into: the Reshape, or the product of rows with a bias, that alone reads it; or None."""
    user = look.sole(Value(i))
    if user is None:
        return None
    node = look.at(user)
    if node.op == "Reshape" and look.declared(Value(user)) and node.inputs[0] == Value(i):
        return further if (further := reshaped_again(look, user)) is not None else user
    if node.op == "MatMul" and node.inputs[0] == Value(i) and not flat(look, user):
        after = look.sole(Value(user))
        if after is not None and look.at(after).op == "Add" and bias(look, user, look.at(after), Value(user)):
            return user
    return None


def reshaped(look: Look, value: Value | None) -> Value | None:
    """What `value` was before the Reshapes that go into its reader."""
    while value is not None and look.at(value.node).op == "Reshape" and not look.constant(value) and look.sole(value) is not None:
        value = look.at(value.node).inputs[0]
    return value
