"""Conditions for rules in TASO's manner: its activated convs, its padding, its order of operands."""

from __future__ import annotations

from typing import Any

from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def operand_is(at: Context, node: int, place: int, value: Any) -> None:
    """Operand number `place` of the node is `value`: its operands stand as the rule writes them, though they commute."""
    if node in at.graph.nodes and at.graph.nodes[node].inputs[place] != value:
        raise NoMatch(f"the operands of '{at.label(Value(node))}' stand in the other order")


def unactivated(at: Context, node: int) -> None:
    """The conv is not one with its activation: no Relu is its only user."""
    if _is_activated(at.graph, node):
        raise NoMatch(f"'{at.label(Value(node))}' counts with its Relu as one activated conv")


def not_activation(at: Context, node: int) -> None:
    """The Relu is not one with a conv: it is not the only user of one."""
    source = at.graph.nodes[node].inputs[0] if node in at.graph.nodes else None
    if source is not None and at.graph.node(source).op == "Conv" and _is_activated(at.graph, source.node):
        raise NoMatch(f"'{at.label(Value(node))}' counts with its Conv as one activated conv")


def _is_activated(graph: Graph, conv: int) -> bool:
    users = [u.node for u in graph.users.get(conv, ())]
    return len(users) == 1 and users[0] != OUTPUT and graph.nodes[users[0]].op == "Relu" and graph.nodes[users[0]].domain == ""


def same_padding(at: Context, kernel: Any, pads: Any) -> None:
    """The kernel is odd and padded by half of itself on every side (TASO's SAME, where all agree on what it means)."""
    half = tuple(k // 2 for k in kernel)
    if any(k % 2 == 0 for k in kernel) or tuple(pads) != half + half:
        raise NoMatch(f"kernel {list(kernel)} with pads {list(pads)} is not odd and centred")


def valid_padding(at: Context, kernel: Any, pads: Any) -> None:
    """There are no pads, and the kernel is larger than 1x1 (TASO's VALID; of a 1x1 kernel it cannot be told from SAME, which counts)."""
    if any(pads) or all(k == 1 for k in kernel):
        raise NoMatch(f"kernel {list(kernel)} with pads {list(pads)} is not larger than one and unpadded")


def kernel_of(at: Context, kernel: Any, weight: Any) -> None:
    """The spatial dims of `weight` are known, and the kernel that the conv speaks of."""
    kind = at.type(weight)
    if kind.shape is None or kind.shape[2:] != tuple(kernel):
        raise NoMatch(f"'{at.label(weight)}' ({kind}) is not known to hold kernels {list(kernel)}")


def joinable(at: Context, axis: int, a: Any, b: Any) -> None:
    """The values agree in element type and in every dim but `axis`, each known or of one symbol."""
    x, y = at.type(a), at.type(b)
    if x.shape is None or y.shape is None or len(x.shape) != len(y.shape) or len(x.shape) <= axis or x.dtype != y.dtype:
        raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) cannot be joined along axis {axis}")
    if any(d is None or d != e for k, (d, e) in enumerate(zip(x.shape, y.shape, strict=True)) if k != axis):
        raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) are not known to agree beside axis {axis}")
