"""GELU and its kin, which exporters spell out and onnxruntime runs as one kernel; each is asked for around one node."""

from __future__ import annotations

from cgorl.cost.kernels.look import FLOAT, Look
from cgorl.ir.graph import OUTPUT
from cgorl.ir.node import Node, Value


def taken(look: Look, i: int, node: Node) -> int | None:
    """The last node of the GELU or x * sigmoid(x) that node `i` is a part of, or None."""
    if node.op == "Sigmoid":
        user = look.sole(Value(i))
        return user if user is not None and quick(look, user) == node.inputs[0] else None
    if node.op == "Mul" and quick(look, i) is not None:
        return i
    if node.op in ("Pow", "Mul", "Add", "Tanh") and (tanh := _tanh_near(look, i, node)) is not None:
        found = by_tanh(look, tanh)
        if found is not None and i in found[2]:
            return found[1]
    if node.op in ("Div", "Mul", "Erf", "Add") and (erf := _erf_near(look, i, node)) is not None:
        found = by_erf(look, erf)
        return found[1] if found is not None and i in found[2] else None
    return None


def quick(look: Look, i: int) -> Value | None:
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


def by_erf(look: Look, erf: int) -> tuple[Value, int, frozenset[int]] | None:
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


def by_tanh(look: Look, tanh: int) -> tuple[Value, int, frozenset[int]] | None:
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
    found = ending(look, last) if last is not None else None
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


def ending(look: Look, last: int) -> tuple[str, Value] | None:
    """The runtime's operator and the operand of the GELU that node `last` ends; None if it ends none."""
    node = look.at(last)
    if node.op == "Mul":
        for name, near, whole in (("FastGelu", _tanh_near, by_tanh), ("Gelu", _erf_near, by_erf)):
            middle = near(look, last, node)
            found = whole(look, middle) if middle is not None else None
            if found is not None and found[1] == last:
                return name, found[0]
    return None
