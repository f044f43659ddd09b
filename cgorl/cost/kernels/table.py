"""Table: the kernels of a whole graph by node, kept while it is rewritten; only what an edit can be seen from is found anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cgorl.cost.kernels.kernel import Kernel
from cgorl.cost.kernels.lower import kernels
from cgorl.cost.kernels.spots import Spot, Spots
from cgorl.cost.model import After, Now, View, border
from cgorl.ir.graph import Edit, Graph
from cgorl.ir.sizes import Sizes


class Row(NamedTuple):
    """The kernels of a node, the nodes that were looked at to find them, and those whose spots were asked for."""

    kernels: tuple[Kernel, ...]
    reads: frozenset[int]
    rests: frozenset[int]


class Change(NamedTuple):
    """What an edit does: kernels that go, kernels that come, and the old nodes that this rests on."""

    gone: list[Kernel]
    made: list[Kernel]
    rests: frozenset[int]


class Table:
    """The rows of one graph, and the spots of its nodes.

    How far a layout travels is no matter: a spot that an edit changes has those found anew that asked for it, and so on until
    nothing changes; and what an edit's kernels rest on takes in every spot that they were found from, back to where it began.
    """

    def __init__(self, graph: Graph, sizes: Sizes, block: int, near: Table | None = None) -> None:
        """Finds the rows of `graph`; those of the table `near` are kept where nothing that they were found from differs."""
        self.graph, self._sizes, self._block = graph, sizes, block
        old_rows: Mapping[int, Row] = {} if near is None else near.rows
        changed = set() if near is None else set(_differences(near.graph, graph))
        old: Mapping[int, Spot] = {} if near is None else near.spots
        seen, moved = (Spots(Now(graph), sizes, block), set[int]()) if near is None else near._found_anew(Now(graph), changed)
        self.rows: dict[int, Row] = {}
        self.spots: dict[int, Spot]
        for i in graph.order():
            row = old_rows.get(i)
            kept = row is not None and row.reads.isdisjoint(changed) and row.rests.isdisjoint(moved)
            self.rows[i] = row if kept and row is not None else _row(seen, i)
        self.spots = {i: s for i, s in old.items() if i in graph.nodes} | seen.memo
        self._cones: dict[int, frozenset[int]] = {}
        self._index: tuple[dict[int, list[int]], ...] | None = None

    def kernels(self) -> Iterator[Kernel]:
        """The kernels of the whole graph."""
        for row in self.rows.values():
            yield from row.kernels

    def change(self, edit: Edit) -> Change:
        """What `edit` does to the kernels."""
        then = After(self.graph, edit)
        givers, readers = border(self.graph, edit)
        changed = {*givers, *readers, *edit.removed, *then.settled, *(v.node for v in edit.rewired)}
        if any(then.at(old.node).types[old.port] != then.at(new.node).types[new.port] for old, new in edit.rewired.items()):
            changed.update(u.node for i in readers for u in self.graph.users[i] if u.node >= 0)  # they read another size
        seen, moved = self._found_anew(then, changed)
        rows_of, rows_on, _, _ = self._looking()
        near = {i for c in changed for i in rows_of.get(c, ())} | {i for c in moved for i in rows_on.get(c, ())}
        near.update(edit.removed)
        rests = set(changed)
        for i in near:
            rests |= self.rows[i].reads
            for j in self.rows[i].rests:
                rests |= self._cone(j)
        made: list[Kernel] = []
        for i in (*sorted(near.difference(edit.removed)), *range(-1 - len(edit.added), -1)):
            row = _row(seen, i)
            made += row.kernels
            rests |= row.reads
            for j in row.rests - seen.memo.keys():
                rests |= self._cone(j)
        for i, spot in seen.memo.items():
            rests |= spot.reads
            for j in (*(spot.rests - seen.memo.keys()), *((i,) if i in self.spots else ())):
                rests |= self._cone(j)
        gone = [k for i in sorted(near) for k in self.rows[i].kernels]
        return Change(gone, made, frozenset(i for i in rests if i >= 0))

    def _found_anew(self, view: View, changed: set[int]) -> tuple[Spots, set[int]]:
        """Spots seen from `view`, in which the nodes `changed` differ; and the nodes whose spots come out otherwise."""
        _, _, spots_of, spots_on = self._looking()
        stale = {i for c in changed for i in spots_of.get(c, ())}

        def known(i: int) -> Spot | None:
            return None if i in stale else self.spots.get(i)

        seen = Spots(view, self._sizes, self._block, known)
        said: dict[int, tuple[bool, int, str] | None] = {}

        def drop(i: int) -> None:
            """Forgets what was found by asking for the spot of `i`; it is found again when somebody asks."""
            for k in [k for k, s in seen.memo.items() if i in s.rests]:
                if seen.memo.pop(k, None) is not None:
                    drop(k)
                    todo.append(k)
            for k in spots_on.get(i, ()):
                if k not in stale:
                    stale.add(k)
                    todo.append(k)

        todo = list(stale)
        while todo:
            i = todo.pop()
            if i not in self.spots:
                continue
            try:
                now: tuple[bool, int, str] | None = seen.spot(i).said
            except KeyError:  # it is gone
                now = None
            if now != said.get(i, self.spots[i].said):
                drop(i)
            said[i] = now
        return seen, {i for i, now in said.items() if now != self.spots[i].said}

    def _cone(self, i: int) -> frozenset[int]:
        """All nodes that the spot of node `i` was found from, however far up."""
        found = self._cones.get(i)
        if found is None:
            inside, stack = {i}, [i]
            nodes: set[int] = set()
            while stack:
                j = stack.pop()
                spot = self.spots.get(j)
                if spot is None:
                    continue
                nodes |= spot.reads
                for k in spot.rests - inside:
                    inside.add(k)
                    stack.append(k)
            found = self._cones[i] = frozenset(nodes)
        return found

    def _looking(self) -> tuple[dict[int, list[int]], ...]:
        """Node -> rows that were found from it, rows that asked for its spot; spots found from it, spots that asked for its own."""
        if self._index is None:
            self._index = ({}, {}, {}, {})
            for tables, things in ((self._index[:2], self.rows), (self._index[2:], self.spots)):
                for i, thing in things.items():
                    for table, sources in zip(tables, (thing.reads, thing.rests), strict=True):
                        for j in sources:
                            table.setdefault(j, []).append(i)
        return self._index


def _row(spots: Spots, i: int) -> Row:
    spots.seen, spots.asked = {i}, set()
    found = kernels(spots, i)
    return Row(found, frozenset(spots.seen), frozenset(spots.asked))


def _differences(before: Graph, after: Graph) -> Iterable[int]:
    """Nodes that are in only one of two graphs, or read or are read by others in the second."""
    for i, node in after.nodes.items():
        if before.nodes.get(i) is not node or before.users[i] != after.users[i]:
            yield i
    for i in before.nodes:
        if i not in after.nodes:
            yield i
