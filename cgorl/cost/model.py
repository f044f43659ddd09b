"""CostModel: what a search asks about time, and how an edit changes it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cgorl.ir.graph import OUTPUT, Edit, Graph, Use
from cgorl.ir.node import Node, Value
from cgorl.ir.ops import foldable


class CostError(ValueError):
    """A device or cost model that cannot be; the message names the value."""


class CostModel(Protocol):
    """Estimated run time in milliseconds."""

    @property
    def digest(self) -> str:
        """The same for models that give the same prices."""
        ...

    def cost_ms(self, graph: Graph) -> float:
        """The estimate for the whole graph."""
        ...

    def node_ms(self, view: View, i: int) -> float:
        """The share of node `i`, which may depend on its producers and users (one hop)."""
        ...

    def gain(self, graph: Graph, edit: Edit) -> float:
        """`cost_ms(graph) - cost_ms(graph.replace(edit))` without building the second: positive is better."""
        ...

    def price(self, graph: Graph, edit: Edit) -> Price:
        """The gain, and what it rests on: as long as neither edit nor those nodes nor who reads them change, it stands."""
        ...

    def unknown(self, graph: Graph) -> list[str]:
        """Names of the values that `graph` moves without a known size, so that their share of the cost is a guess."""
        ...


def waited(cost: CostModel) -> float:
    """Seconds that `cost` has spent so far on finding out prices, such as on measuring; 0 for those that need none."""
    return float(getattr(cost, "waited", 0.0))


class Price(NamedTuple):
    """What an edit gains in ms, and the old nodes round it that this rests on."""

    gain: float
    rests: frozenset[int] = frozenset()


class View(Protocol):
    """The part of Graph that pricing reads; also given by `After` for an edit not yet performed."""

    @property
    def opset(self) -> int:
        """Version of the default domain."""
        ...

    def at(self, i: int) -> Node:
        """Node `i`."""
        ...

    def used(self, i: int) -> tuple[Use, ...]:
        """Who reads node `i`."""
        ...


class Now:
    """A graph as a View."""

    def __init__(self, graph: Graph) -> None:
        """Views `graph`."""
        self.graph, self.opset = graph, graph.opset

    def at(self, i: int) -> Node:
        """Node `i`."""
        return self.graph.nodes[i]

    def used(self, i: int) -> tuple[Use, ...]:
        """Who reads node `i`."""
        return self.graph.users[i]


class After:
    """A graph as an edit would leave it, looked up on demand; added nodes go by their stand-in ids.

    `settled` are the old nodes that the edit makes constant (or no longer so), by id.
    """

    def __init__(self, graph: Graph, edit: Edit) -> None:
        """Views `graph` after `edit`."""
        self.graph, self.edit, self.opset = graph, edit, graph.opset
        self._dead = set(edit.removed)
        self._swap: dict[int, dict[Value, Value]] = {}
        for old, new in edit.rewired.items():
            for u in graph.users[old.node]:
                if u.port == old.port:
                    self._swap.setdefault(u.node, {})[old] = new
        self._gained: dict[int, list[Use]] = {}
        for k, node in enumerate(edit.added):
            for v in node.reads():
                self._gained.setdefault(v.node, []).append(Use(v.port, -2 - k))
        for old, new in edit.rewired.items():
            for u in graph.users[old.node]:
                if u.port == old.port and u.node not in self._dead:
                    self._gained.setdefault(new.node, []).append(Use(new.port, u.node))
        self.settled: dict[int, bool] = {}
        if any(self.at(new.node).constant for new in edit.rewired.values()):
            self._settle(list(self._swap))

    def _settle(self, stack: list[int]) -> None:
        while stack:
            i = stack.pop()
            if i == OUTPUT or i in self._dead or not (node := self.at(i)).inputs or not foldable(node.op, node.domain):
                continue
            fixed = all(self.at(v.node).constant for v in node.reads())
            if fixed != node.constant:
                self.settled[i] = fixed
                stack.extend(u.node for u in self.graph.users[i])

    def at(self, i: int) -> Node:
        """Node `i`."""
        if i < OUTPUT:
            return self.edit.added[-2 - i]
        node = self.graph.nodes[i]
        swap, fixed = self._swap.get(i, {}), self.settled.get(i, node.constant)
        return node.with_inputs(swap, fixed) if swap or fixed != node.constant else node

    def used(self, i: int) -> tuple[Use, ...]:
        """Who reads node `i`."""
        gained = tuple(self._gained.get(i, ()))
        if i < OUTPUT:
            return gained
        rewired = {old.port for old in self.edit.rewired if old.node == i}
        return tuple(u for u in self.graph.users[i] if u.node not in self._dead and u.port not in rewired) + gained


def border(graph: Graph, edit: Edit) -> tuple[set[int], set[int]]:
    """Old nodes round the edit: those that may gain or lose a reader by it, and those that read something else after it."""
    nodes, users = graph.nodes, graph.users
    givers = {v.node for i in edit.removed for v in nodes[i].reads()}
    givers.update(v.node for n in edit.added for v in n.reads() if v.node >= 0)
    readers: set[int] = set()
    for old, new in edit.rewired.items():
        givers.add(old.node)
        if new.node >= 0:
            givers.add(new.node)
        readers.update(u.node for u in users[old.node] if u.port == old.port)
    readers.discard(OUTPUT)
    return givers.difference(edit.removed), readers.difference(edit.removed)
