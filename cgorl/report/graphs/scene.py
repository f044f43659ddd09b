"""Scene: what a drawing of a graph shows, box by box, and where each box stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cgorl.cost.model import CostModel, Now
from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import AttrValue, Node, Opaque, Value
from cgorl.ir.tensor import Tensor
from cgorl.report.graphs.blocks import Block, by_branches
from cgorl.report.graphs.layout import Layout, layout

_CHAR, _PAD = 7.2, 20.0
_LONG = 90

INPUT, OUTPUT_BOX, BLOCK, CONSTANT = "Input", "Output", "Block", "Constant"
"""Labels of boxes that stand for no operator."""


@dataclass(frozen=True, slots=True)
class Box:
    """One box: a node, an output of the graph, or a closed block of nodes.

    `op` is what it is coloured by, `label` what is written in it, `about` what is known of it, a line each; `nodes` are the
    ids it stands for, `block` the number of the open block that it is part of (-1: none).
    """

    op: str
    label: str
    name: str
    about: str
    nodes: tuple[int, ...]
    cost_ms: float = 0.0
    block: int = -1

    @property
    def width(self) -> float:
        """Its width in a drawing, in pixels at full size."""
        return max(56.0, _CHAR * len(self.label) + _PAD)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Boxes, each after those that it reads, what each reads, and where they stand."""

    boxes: tuple[Box, ...]
    reads: tuple[tuple[int, ...], ...]
    layout: Layout

    @property
    def total_ms(self) -> float:
        """The cost of all boxes."""
        return sum(b.cost_ms for b in self.boxes)

    def places(self) -> dict[int, int]:
        """Number of the box that shows a node, by the node's id."""
        return {i: k for k, b in enumerate(self.boxes) for i in b.nodes}


def scene(
    graph: Graph,
    cost: CostModel | None = None,
    blocks: tuple[Block, ...] = (),
    closed: Collection[int] = (),
    constants: bool = False,
    only: Collection[int] | None = None,
) -> Scene:
    """The drawing of `graph`: the blocks numbered in `closed` as one box each; what computes on weights alone if `constants`.

    `only` these nodes are shown, if given, and those that read or are read by them as they are then. Raises DimsError from `cost`.
    """
    inside = {i: b for b, block in enumerate(blocks) for i in block.nodes}
    keep = [i for i in by_branches(graph) if (only is None or i in only) and (constants or not graph.nodes[i].constant)]
    view = Now(graph)
    groups: dict[int, list[int]] = {}
    for i in keep:
        b = inside.get(i, -1)
        groups.setdefault(-1 - b if b in closed else i, []).append(i)  # below 0: a closed block
    boxes: list[Box] = []
    reads: list[tuple[int, ...]] = []
    at: dict[int, int] = {}
    for ids in _after_what_they_read(graph, groups):
        block = inside.get(ids[0], -1)
        spent = sum(cost.node_ms(view, i) for i in ids) if cost is not None else 0.0
        if block in closed:
            about = "\n".join(_counted(graph, ids))
            boxes.append(Box(BLOCK, blocks[block].title, blocks[block].title, about, tuple(ids), spent, block))
        else:
            boxes.append(_box(graph, ids[0], spent, block))
        sources = [v.node for i in ids for v in graph.nodes[i].reads() if v.node in at and at[v.node] != len(boxes) - 1]
        reads.append(tuple(dict.fromkeys(at[s] for s in sources)))
        at.update(dict.fromkeys(ids, len(boxes) - 1))
    names = [o.name for o in graph.frame.model.graph.output]
    for k, v in enumerate(graph.outputs):
        if v.node in at:
            name = names[k] if k < len(names) else f"output {k}"
            boxes.append(Box(OUTPUT_BOX, _short(name, 24), name, str(graph.type(v) or ""), ()))
            reads.append((at[v.node],))
    return Scene(tuple(boxes), tuple(reads), layout([b.width for b in boxes], reads))


def near(graph: Graph, nodes: Collection[int], hops: int) -> set[int]:
    """The nodes up to `hops` reads or uses away from `nodes`, those included, constants left out."""
    found = {i for i in nodes if i in graph.nodes}
    edge = found
    for _ in range(hops):
        around = {v.node for i in edge for v in graph.nodes[i].reads()} | {u.node for i in edge for u in graph.users[i]}
        edge = {i for i in around - found - {OUTPUT} if not graph.nodes[i].constant}
        found |= edge
    return found


def _after_what_they_read(graph: Graph, groups: Mapping[int, list[int]]) -> Iterator[list[int]]:
    """The groups, each after all that it reads; there is such an order where no group has a way out of it that leads back in."""
    home = {i: g for g, ids in groups.items() for i in ids}
    needs = {g: {h for i in ids for v in graph.nodes[i].reads() if (h := home.get(v.node, g)) != g} for g, ids in groups.items()}
    done: set[int] = set()
    for g in groups:
        stack = [g]
        while stack:
            top = stack[-1]
            waits = [h for h in needs[top] if h not in done] if top not in done else []
            if waits:
                stack.extend(sorted(waits))
                continue
            stack.pop()
            if top not in done:
                done.add(top)
                yield groups[top]


def _box(graph: Graph, i: int, spent: float, block: int) -> Box:
    node = graph.nodes[i]
    name = node.name or graph.label(Value(i))
    if node.is_input:
        return Box(INPUT, _short(name, 24), name, str(node.types[0] or "type unknown"), (i,))
    if node.is_source:
        return Box(CONSTANT, "constant", name, str(node.types[0] or "type unknown"), (i,), 0.0, block)
    return Box(node.label, node.label, name, "\n".join(_about(graph, node)), (i,), spent, block)


def _about(graph: Graph, node: Node) -> Iterator[str]:
    for v in node.inputs:
        if v is not None:
            weight = " (constant)" if graph.is_constant(v) else ""
            yield f"reads {graph.label(v)}: {graph.type(v) or 'type unknown'}{weight}"
    for name, v in node.captures:
        yield f"captures {name}: {graph.type(v) or 'type unknown'}"
    for t in node.types:
        yield f"gives {t or 'type unknown'}"
    for key, value in node.attrs.items():
        yield f"{key} = {_short(_attribute(value), _LONG)}"


def _attribute(value: AttrValue) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of {'x'.join(map(str, value.shape)) or 'one element'}"
    if isinstance(value, Opaque):
        return "a body or type of its own"
    return str(list(value)) if isinstance(value, tuple) else f"{value:.6g}" if isinstance(value, float) else str(value)


def _counted(graph: Graph, ids: Collection[int]) -> Iterator[str]:
    counts: dict[str, int] = {}
    for i in ids:
        counts[graph.nodes[i].label] = counts.get(graph.nodes[i].label, 0) + 1
    for op, n in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"{n} {op}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
