"""The named conditions that rules in TASO's manner need: its activated convs, its padding, its order of operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.rules.context import Context, NoMatch


def as_written(at: Context, node: int, first: Any, second: Any) -> None:
    """The node's operands stand in the order that the rule writes them in (TASO has a rule for each order)."""
    if at.graph.nodes[node].inputs != (first, second):
        raise NoMatch(f"the operands of '{at.label(Value(node))}' stand in the other order")


def unactivated(at: Context, node: int) -> None:
    """The conv is not one with its activation: no Relu is its only user."""
    if _is_activated(at.graph, node):
        raise NoMatch(f"'{at.label(Value(node))}' counts with its Relu as one activated conv")


def not_activation(at: Context, node: int) -> None:
    """The Relu is not one with a conv: it is not the only user of one."""
    source = at.graph.nodes[node].inputs[0]
    if (
        source is not None
        and at.graph.node(source).op == "Conv"
        and at.graph.node(source).domain == ""
        and _is_activated(at.graph, source.node)
    ):
        raise NoMatch(f"'{at.label(Value(node))}' counts with its Conv as one activated conv")


def _is_activated(graph: Graph, conv: int) -> bool:
    users = graph.users[conv]
    return len(users) == 1 and users[0].node >= 0 and graph.nodes[users[0].node].op == "Relu" and graph.nodes[users[0].node].domain == ""


def same_padding(at: Context, kernel: Any, pads: Any) -> None:
    """The kernel is odd and padded by half of itself on every side (TASO's SAME, where all agree on what it means)."""
    half = tuple(k // 2 for k in kernel)
    if any(k % 2 == 0 for k in kernel) or tuple(pads) != half + half:
        raise NoMatch(f"kernel {list(kernel)} with pads {list(pads)} is not odd and centred")


def joinable(at: Context, axis: int, a: Any, b: Any) -> None:
    """The values agree in element type and in every dim but `axis`, each known or of one symbol."""
    x, y = at.type(a), at.type(b)
    if x.shape is None or y.shape is None or len(x.shape) != len(y.shape) or len(x.shape) <= axis or x.dtype != y.dtype:
        raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) cannot be joined along axis {axis}")
    if any(d is None or d != e for k, (d, e) in enumerate(zip(x.shape, y.shape, strict=True)) if k != axis):
        raise NoMatch(f"'{at.label(a)}' ({x}) and '{at.label(b)}' ({y}) are not known to agree beside axis {axis}")


TASO_CONDITIONS: Mapping[str, Callable[..., None]] = {
    f.__name__: f for f in (as_written, unactivated, not_activation, same_padding, joinable)
}
