"""Graph, Edit: an immutable dataflow graph and the one way to change it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from immutables import Map

from cgorl.ir.node import Node, TensorType, Value
from cgorl.ir.ops import foldable

OUTPUT = -1
"""The user id under which a graph output counts as a use of its value."""


class GraphError(ValueError):
    """A graph, node or edit that cannot be; the message names it."""


class Use(NamedTuple):
    """Node `node` (or OUTPUT) reads output `port`."""

    port: int
    node: int


@dataclass(frozen=True, slots=True)
class Edit:
    """A rewrite not yet performed; it stays valid while the nodes around it are untouched, whatever else changes.

    `added[k]` is known as node `fresh(k)` until `Graph.replace` gives it an id; it reads old values or added ones. Each use
    of a value in `rewired`, by old nodes and graph outputs, moves to the new one; `removed` are the nodes that die of it.
    """

    removed: tuple[int, ...]
    added: tuple[Node, ...]
    rewired: Mapping[Value, Value]


def fresh(k: int) -> int:
    """The stand-in id of an edit's added node number `k`."""
    return -2 - k


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What surrounds the nodes of a model: all of the ModelProto but nodes and weights, kept as read."""

    model: onnx.ModelProto
    value_info: Mapping[str, onnx.ValueInfoProto]
    reserved: frozenset[str] = frozenset()
    base: Path | None = None
    digest: bytes = b""
    """What the local functions say (part of `Graph.key`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A computation graph: nodes by stable id, their uses, and the frame of the model they came from.

    Never changed in place: `replace` gives a new graph that shares all untouched nodes. Dead nodes do not occur after a
    `replace`; a graph as loaded may hold some, since a load loses nothing.
    """

    nodes: Mapping[int, Node]
    users: Mapping[int, tuple[Use, ...]]
    inputs: tuple[int, ...]
    outputs: tuple[Value, ...]
    opsets: Mapping[str, int]
    frame: Frame
    next_id: int
    gone: tuple[int, ...] = ()
    """The nodes that died of the edit that led here."""
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        """One line, however large the graph is."""
        count = sum(1 for node in self.nodes.values() if not (node.is_source or node.constant))
        return f"Graph({self.frame.model.graph.name or 'unnamed'}: {count} nodes, opset {self.opset})"

    @property
    def key(self) -> str:
        """Structural hash, 32 hex digits: blind to ids, names, order, and the order of commutative operands."""
        from cgorl.ir.key import structural_key  # which knows Graph

        return structural_key(self)

    @property
    def opset(self) -> int:
        """Version of the default domain's operator set (1 where a model imports none)."""
        return self.opsets.get("", 1)

    def node(self, value: Value) -> Node:
        """The node that produces `value`."""
        return self.nodes[value.node]

    def type(self, value: Value) -> TensorType | None:
        """Type of `value`; None where nothing is known or it is no tensor."""
        return self.nodes[value.node].types[value.port]

    def uses(self, value: Value) -> int:
        """How many nodes and graph outputs read `value` (a node that reads it twice counts twice)."""
        return sum(1 for u in self.users[value.node] if u.port == value.port)

    def is_constant(self, value: Value) -> bool:
        """Whether `value` is computed from initializers alone."""
        return self.nodes[value.node].constant

    def order(self) -> tuple[int, ...]:
        """Node ids, producers before users, otherwise by id (the order of the file for nodes that came from one)."""
        found = self.memo.get("order")
        if found is None:
            found = self.memo["order"] = topological({i: [v.node for v in n.reads()] for i, n in self.nodes.items()})
        return found

    def edit(self, added: Iterable[Node], rewired: Mapping[Value, Value]) -> Edit:
        """The edit that adds nodes and moves uses; finds what dies. Raises GraphError if a type would change or a value is unknown."""
        added = tuple(added)

        def kind(v: Value) -> TensorType | None:
            try:
                return (self.nodes[v.node] if v.node >= 0 else added[-2 - v.node]).types[v.port]
            except LookupError:
                raise GraphError(f"edit speaks of output {v.port} of node {v.node}, which is not in the graph") from None

        for old, new in rewired.items():
            before, after = kind(old), kind(new)
            if before is not None and after is not None and not before.agrees(after):
                raise GraphError(f"edit would change the type of '{self.label(old)}' from {before} to {after}")
        kept = {v.node for node in added for v in node.reads()}
        kept.update([new.node for new in rewired.values()])
        return Edit(self.dying(kept, rewired), added, dict(rewired))

    def dying(self, kept: Collection[int], rewired: Iterable[Value]) -> tuple[int, ...]:
        """The nodes that nothing rests on any more once the uses of values are moved, and nodes that read those in `kept` are added."""
        removed: dict[int, None] = {}
        lost: dict[int, int] = {}
        for old in rewired:
            lost[old.node] = lost.get(old.node, 0) + self.uses(old)
        stack = list(lost)
        while stack:
            i = stack.pop()
            if i in kept or i in removed or lost[i] < len(self.users[i]) or self.nodes[i].is_input:
                continue
            removed[i] = None
            for v in self.nodes[i].reads():
                lost[v.node] = lost.get(v.node, 0) + 1
                stack.append(v.node)
        return tuple(sorted(removed))

    def replace(self, edit: Edit) -> Graph:
        """The graph after `edit`, without the nodes that die of it: O(edit), whatever the size of the graph.

        Raises GraphError if the edit speaks of nodes that are gone, or removes a running one that is still read.
        """
        nodes, users = _shared(self.nodes).mutate(), _shared(self.users).mutate()
        base = self.next_id
        ids = range(base, base + len(edit.added))

        def real(v: Value) -> Value:
            return v if v.node >= 0 else Value(base - 2 - v.node, v.port)

        for i, node in zip(ids, edit.added, strict=True):
            swap = {v: real(v) for v in node.reads() if v.node < 0}
            nodes[i], users[i] = node.with_inputs(swap, node.constant) if swap else node, ()
        touched: dict[int, None] = dict.fromkeys(ids)
        try:
            for i in ids:
                for v in nodes[i].reads():
                    users[v.node] += (Use(v.port, i),)
            moved: dict[int, dict[Value, Value]] = {}
            arrived: list[tuple[int, Use]] = []
            for old, stand_in in edit.rewired.items():
                new = real(stand_in)
                stay: list[Use] = []
                for u in users[old.node]:
                    if u.port != old.port or u.node >= base:
                        stay.append(u)
                    else:
                        arrived.append((new.node, Use(new.port, u.node)))
                        moved.setdefault(u.node, {})[old] = new
                users[old.node] = tuple(stay)
            for i, u in arrived:  # after all have left, since two values may change places
                users[i] += (u,)
            outputs = tuple(moved[OUTPUT].get(v, v) for v in self.outputs) if OUTPUT in moved else self.outputs
            moved.pop(OUTPUT, None)
            for i, swap in moved.items():
                nodes[i] = nodes[i].with_inputs(swap, nodes[i].constant)
            touched.update(dict.fromkeys(moved))
            self._settle_constants(nodes, users, [*ids, *moved])
            gone = tuple(self._bury(nodes, users, [old.node for old in edit.rewired]))
            for i in edit.removed:
                if i in nodes and not nodes[i].constant:
                    raise GraphError(f"edit removes node {i}, which is still read")
        except KeyError as e:
            raise GraphError(f"edit speaks of node {e.args[0]}, which is not in the graph") from None
        made = Graph(nodes.finish(), users.finish(), self.inputs, outputs, self.opsets, self.frame, base + len(edit.added), gone)
        hashes, pending = self.memo.get("hashes"), self.memo.get("pending")
        if hashes is not None:
            made.memo["pending"] = (hashes, tuple(touched), gone)
        elif pending is not None:
            made.memo["pending"] = (pending[0], (*pending[1], *touched), (*pending[2], *gone))
        return made

    @staticmethod
    def _settle_constants(nodes: Any, users: Any, stack: list[int]) -> None:
        while stack:
            i = stack.pop()
            if i < 0 or not (node := nodes[i]).inputs or not foldable(node.op, node.domain):
                continue
            if node.constant != all(nodes[v.node].constant for v in node.reads()):
                nodes[i] = node.with_inputs({}, not node.constant)
                stack.extend(u.node for u in users[i])

    @staticmethod
    def _bury(nodes: Any, users: Any, stack: list[int]) -> list[int]:
        """Takes away what nobody reads, and what nobody reads then; the ids of those."""
        gone: list[int] = []
        while stack:
            i = stack.pop()
            if i not in nodes or users[i] or nodes[i].is_input:
                continue
            for v in nodes[i].reads():
                users[v.node] = tuple(u for u in users[v.node] if u.node != i)
                stack.append(v.node)
            del nodes[i], users[i]
            gone.append(i)
        return gone

    def label(self, value: Value) -> str:
        """The name people know a value by: its own in the file, or operator and id."""
        node = self.nodes[value.node]
        name = node.names[value.port] if value.port < len(node.names) else ""
        return name or f"{node.op}#{value.node}" + (f":{value.port}" if value.port else "")


def _shared(table: Mapping[int, Any]) -> Map[int, Any]:
    """`table` as a map whose changed copies share what is unchanged."""
    return table if isinstance(table, Map) else Map(table)


def topological(reads: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """The keys of `reads` ordered so that each follows all that it reads; smallest id first. Raises GraphError on a cycle."""
    after: dict[int, list[int]] = {i: [] for i in reads}
    waits: dict[int, int] = {}
    for i, sources in reads.items():
        unique = set(sources)
        waits[i] = len(unique)
        for s in unique:
            after[s].append(i)
    ready = [i for i, n in waits.items() if n == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in after[i]:
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, j)
    if len(order) < len(reads):
        stuck = sorted(set(reads) - set(order))[:5]
        raise GraphError(f"the graph has a cycle through nodes {stuck}")
    return tuple(order)


def link(nodes: Mapping[int, Node], outputs: Iterable[Value]) -> Map[int, tuple[Use, ...]]:
    """The users of every node, computed from scratch."""
    users: dict[int, list[Use]] = {i: [] for i in nodes}
    for i, node in nodes.items():
        for v in node.reads():
            users[v.node].append(Use(v.port, i))
    for v in outputs:
        users[v.node].append(Use(v.port, OUTPUT))
    return Map({i: tuple(u) for i, u in users.items()})
