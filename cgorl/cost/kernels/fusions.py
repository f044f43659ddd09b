"""The patterns that onnxruntime runs as one kernel, each asked for around one node."""

from __future__ import annotations

import math

from cgorl.cost.kernels.look import FLOAT, Look
from cgorl.ir.graph import OUTPUT
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


# ---------------------------------------------------------------- gelu and its kin
def taken(look: Look, i: int, node: Node) -> int | None:
    """The last node of the GELU or x * sigmoid(x) that node `i` is a part of, or None."""
    if node.op == "Sigmoid":
        user = look.sole(Value(i))
        return user if user is not None and quick_gelu(look, user) == node.inputs[0] else None
    if node.op == "Mul" and quick_gelu(look, i) is not None:
        return i
    if node.op in ("Pow", "Mul", "Add", "Tanh") and (tanh := _tanh_near(look, i, node)) is not None:
        found = fast_gelu(look, tanh)
        if found is not None and i in found[2]:
            return found[1]
    if node.op in ("Div", "Mul", "Erf", "Add") and (erf := _erf_near(look, i, node)) is not None:
        found = gelu(look, erf)
        return found[1] if found is not None and i in found[2] else None
    return None


def quick_gelu(look: Look, i: int) -> Value | None:
    """The x of a product x * sigmoid(x), whose sigmoid nobody else reads; or None."""
    node = look.at(i)
    if node.op != "Mul" or node.domain:
        return None
    for x, gate in (node.inputs, node.inputs[::-1]):
        if x is None or gate is None or look.at(gate.node).op != "Sigmoid" or look.constant(gate):
            continue
        kind = look.type(x)
        if look.at(gate.node).inputs[0] == x and look.sole(gate) == i and kind is not None and kind.dtype == FLOAT:
            return x
    return None


def _erf_near(look: Look, i: int, node: Node) -> int | None:
    """The Erf that node `i` would share a GELU with."""
    if node.op == "Erf":
        return i
    user = look.sole(Value(i))
    if user is not None and look.at(user).op == "Erf":
        return user
    for _ in range(3):  # from the last product back over the others to the sum and its Erf
        for v in node.inputs:
            if v is not None and look.at(v.node).op == "Erf":
                return v.node
        back = next((v for v in node.inputs if v is not None and look.at(v.node).op in ("Add", "Mul") and look.sole(v) is not None), None)
        if back is None:
            return None
        node = look.at(back.node)
    return None


def gelu(look: Look, erf: int) -> tuple[Value, int, frozenset[int]] | None:
    """Operand, last node and all nodes of x / sqrt(2) -> Erf -> + 1, times x, times a half (in either order); or None."""
    source = look.at(erf).inputs[0]
    divided = look.at(source.node) if source is not None else None
    if source is None or divided is None or divided.op not in ("Div", "Mul") or look.sole(source) != erf:
        return None
    x = next((v for v in divided.inputs if v is not None and look.number(v) is None), None)
    add = look.sole(Value(erf))
    if x is None or add is None or look.at(add).op != "Add" or 1.0 not in map(look.number, look.at(add).inputs):
        return None
    first = look.sole(Value(add))
    if first is None or look.at(first).op != "Mul":
        return None
    members = {source.node, erf, add, first}
    other = next((v for v in look.at(first).inputs if v != Value(add)), None)
    if other == x:
        last = look.sole(Value(first))
        if last is None or look.at(last).op != "Mul" or 0.5 not in map(look.number, look.at(last).inputs):
            return None
        return x, last, frozenset({*members, last})
    if other is None:
        return None
    half = look.at(other.node)
    if half.op == "Mul" and 0.5 in map(look.number, half.inputs) and x in half.inputs and look.sole(other) == first:
        return x, first, frozenset({*members, other.node})
    if look.number(other) == 0.5:
        last = look.sole(Value(first))
        return (x, last, frozenset({*members, last})) if last is not None and x in look.at(last).inputs else None
    return None


def _tanh_near(look: Look, i: int, node: Node) -> int | None:
    """The Tanh that node `i` would share a GELU with."""
    here = i
    for op in {"Pow": ("Mul", "Add", "Mul", "Tanh"), "Mul": ("Add", "Mul", "Tanh"), "Add": ("Mul", "Tanh"), "Tanh": ()}[node.op]:
        user = look.sole(Value(here))
        if user is None or look.at(user).op not in (op, "Tanh"):
            break
        here = user
        if look.at(here).op == "Tanh":
            return here
    if node.op == "Tanh":
        return i
    users = [u for v in (*node.inputs, Value(i)) if v is not None and (u := look.sole(v)) is not None and look.at(u).op == "Mul"]
    for k in (i, *users):
        for v in look.at(k).inputs:
            producer = look.at(v.node) if v is not None else node
            if v is not None and producer.op == "Tanh":
                return v.node
            if producer.op == "Add" and (t := next((w for w in producer.inputs if w and look.at(w.node).op == "Tanh"), None)):
                return t.node
    return None


def fast_gelu(look: Look, tanh: int) -> tuple[Value, int, frozenset[int]] | None:
    """Operand, last node and all nodes of x / 2 * (1 + tanh(0.8 (x + 0.045 x^3))); or None."""

    def before(i: int, op: str) -> tuple[int, Value] | None:
        """The only producer of `i` that is of this operator and read by nobody else, and the other operand."""
        for v, w in (look.at(i).inputs[:2], look.at(i).inputs[1::-1]):
            if v is not None and w is not None and look.at(v.node).op == op and look.sole(v) == i:
                return v.node, w
        return None

    source = look.at(tanh).inputs[0]
    if source is None or look.at(source.node).op != "Mul" or (added := before(source.node, "Add")) is None:
        return None
    if (cubic := before(added[0], "Mul")) is None or (power := before(cubic[0], "Pow")) is None:
        return None
    x, one = cubic[1], look.sole(Value(tanh))
    if look.at(power[0]).inputs[0] != x or look.number(look.at(power[0]).inputs[1]) != 3.0 or one is None or look.at(one).op != "Add":
        return None
    last = look.sole(Value(one))
    if last is None or look.at(last).op != "Mul" or (half := before(last, "Mul")) is None or x not in look.at(half[0]).inputs:
        return None
    return x, last, frozenset({tanh, source.node, added[0], cubic[0], power[0], one, last, half[0]})


def biased(look: Look, i: int, node: Node) -> int | None:
    """The last node of the GELU that takes along node `i`, the sum of its operand and a bias; or None."""
    if node.op != "Add" or node.domain or bias_last(look, node) is None:
        return None
    users = set(look.readers(Value(i)))
    ends = {None if u == OUTPUT else taken(look, u, look.at(u)) for u in users}
    last = ends.pop() if len(ends) == 1 else None
    found = gelu_of(look, last) if last is not None else None
    return last if found is not None and found[1] == Value(i) else None


def bias_last(look: Look, node: Node) -> tuple[Value, Value] | None:
    """The operands of a sum, the vector that is added to each row behind the other; None if it is not such a sum."""
    a, b = node.inputs
    if a is None or b is None:
        return None
    shapes = [kind.shape if (kind := look.at(v.node).types[v.port]) is not None else None for v in (a, b)]
    if not shapes[0] or not shapes[1] or shapes[0][-1] != shapes[1][-1] or not isinstance(shapes[0][-1], int):
        return None
    return (b, a) if len(shapes[0]) == 1 else (a, b) if len(shapes[1]) == 1 else None


def gelu_of(look: Look, last: int) -> tuple[str, Value] | None:
    """The runtime's operator and the operand of the GELU that node `last` ends; None if it ends none."""
    node = look.at(last)
    if node.op == "Mul":
        for name, near, whole in (("FastGelu", _tanh_near, fast_gelu), ("Gelu", _erf_near, gelu)):
            middle = near(look, last, node)
            found = whole(look, middle) if middle is not None else None
            if found is not None and found[1] == last:
                return name, found[0]
    return None


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
