"""Coverage: how much of a graph the rules can touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx

from cgorl.ir.graph import Graph
from cgorl.ir.ops import bodies, schema
from cgorl.rules.pattern import Apply, walk
from cgorl.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of nodes: `touchable` by some rule, `known` operators, and by operator those that are `opaque`, in bodies too."""

    total: int
    touchable: int
    known: int
    opaque: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line for people."""
        share = 100 * self.touchable / self.total if self.total else 0.0
        text = f"rules can touch {self.touchable} of {self.total} nodes ({share:.0f} %)"
        if self.opaque:
            most = sorted(self.opaque.items(), key=lambda p: (-p[1], p[0]))
            shown = ", ".join(f"{n} {op}" for op, n in most[:4]) + (f" and {len(most) - 4} more kinds" if len(most) > 4 else "")
            text += f"; kept as they are: {shown}"
        return text


def coverage(graph: Graph, rules: Iterable[Rule]) -> Coverage:
    """The coverage of `graph` by `rules`; a node inside a body counts as opaque."""
    spoken = {t.op for r in rules for root in r.source for t in walk(root) if isinstance(t, Apply) and t.is_operator}
    total = touchable = known = 0
    opaque: Counter[str] = Counter()
    for node in graph.nodes.values():
        if node.is_source or node.op == "SparseConstant":
            continue
        total += 1
        inner = _inside(node.proto) if node.proto is not None else 0
        if inner:
            total += inner
            opaque[f"inside {node.op}"] += inner
        if node.domain != "" or schema(node.op, "", graph.opset) is None:
            opaque[f"{node.domain}.{node.op}" if node.domain else node.op] += 1
            continue
        known += 1
        touchable += node.op in spoken
    return Coverage(total, touchable, known, dict(opaque))


def _inside(proto: onnx.NodeProto) -> int:
    return sum(1 + _inside(n) for body in bodies(proto) for n in body.node)
