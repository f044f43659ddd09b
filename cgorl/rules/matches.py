"""MatchSet: all matches of a rule set in one graph, kept up to date through edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from immutables import Map

from cgorl.ir.graph import OUTPUT, Edit, Graph
from cgorl.rules.listing import Listing
from cgorl.rules.look import LOOK, alone
from cgorl.rules.match import closes_cycle, growth, matches, type_bytes
from cgorl.rules.matcher import Matcher
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import Place, RuleSet


class MatchSet:
    """All matches of `rules` in `graph`: a mapping from root node to its matches, in a fixed order.

    Immutable; `after` gives the set of the edited graph and looks again only round the edit. `listing` has them all by root id,
    rules in their order; `matches`, and iteration, leave out those in `barred`, which cannot be performed: they would take the
    model's weights past `limit` bytes, or close a cycle. `touched` are the nodes that the last edit changed.
    """

    def __init__(self, graph: Graph, rules: RuleSet, limit: int | None = None) -> None:
        """Scans the whole graph. `limit` defaults to what `rules` allow the graph's weights to come to."""
        self.graph, self.rules = graph, rules
        self.weight_bytes = constant_bytes(graph)
        self.limit = rules.limit(self.weight_bytes) if limit is None else limit
        self.touched: set[int] = set(graph.nodes)
        self._places: Map[int, tuple[Place, ...]] = Map((i, rules.candidates(graph, i)) for i in graph.nodes)
        self._at: Map[int, tuple[Match, ...]] = Map(
            (i, found)
            for i, places in self._places.items()
            if (found := tuple([m for r, k in places if k == 0 for m in matches(r, graph, i, recipes=rules.recipes)]))
        )
        self._in: Map[int, frozenset[int]] = Map(_listed(m for found in self._at.values() for m in found if len(m.roots) > 1))
        self._take(Listing.of(self._at), np.zeros(0, np.int64), ())

    def after(self, graph: Graph, match: Match) -> MatchSet:
        """The set for `graph`, which is `self.graph.replace(match.edit)`; equal to a full scan of it.

        A root is stale for a rule if the edit is within the rule's depth upstream of it. Looked for anew are the matches
        with a stale root: at that root, at the first roots it may go with, and at those it went with before.
        """
        made = object.__new__(MatchSet)
        made.graph, made.rules, made.limit = graph, self.rules, self.limit
        made.weight_bytes = self.weight_bytes + growth(self.graph, match.edit)
        depths, several = self.rules.depths, self.rules.several
        touched = made.touched = touched_by(self.graph, graph, match.edit)
        changed = {i for i in touched if self.graph.nodes.get(i) is not graph.nodes[i]}
        # who reads a node matters to what is behind it; to rules with their root there seldom
        roots = touched
        if not self.rules.minds_readers:
            roots = {i for i in touched if i in changed or len(graph.nodes[i].types) > 1 or i in match.nodes}
        far = _downstream(graph, roots, touched, self.rules.reach - 1)
        places = self._places.mutate()
        for i in (touched if self.rules.minds_readers else changed).union(_downstream(graph, changed, changed, LOOK)):
            places[i] = self.rules.candidates(graph, i)
        again: dict[int, set[str]] = {i: set() for i in far if i in self._at}
        read = Matcher(graph)
        for i, distance in far.items():
            for rule, k in places[i]:
                if depths[rule.name] > distance:
                    pairs = rule.name in several
                    if pairs and alone(graph, i, rule, k):
                        continue
                    if k == 0:
                        again.setdefault(i, set()).add(rule.name)
                    if pairs:
                        for first in read.first_roots(rule, k, i):
                            again.setdefault(first, set()).add(rule.name)
        removed = set(graph.gone)
        for i in (*far, *removed):
            for m in (m for first in self._in.get(i, ()) for m in self._at.get(first, ()) if i in m.roots):
                if i in removed or depths[m.rule.name] > far[i]:
                    for r in m.roots:  # which may now go with others, or be the first of fewer
                        if r in graph.nodes:
                            again.setdefault(r, set()).add(m.rule.name)
        table, listed = self._at.mutate(), self._in.mutate()
        for i in removed:
            table.pop(i, None)
            listed.pop(i, None)
            places.pop(i, None)
        made._places = places.finish()
        changes: dict[int, tuple[Match, ...]] = {i: () for i in removed if i in self._at}
        for i in sorted(again):
            changes[i] = found = self._renewed(made, i, again[i], far)
            if found:
                table[i] = found
                for j, firsts in _listed(m for m in found if len(m.roots) > 1).items():
                    listed[j] = listed.get(j, frozenset()) | firsts
            else:
                table.pop(i, None)
        made._at, made._in = table.finish(), listed.finish()
        made._take(self.listing.with_changes(changes), self._growth_M, self._bordered)
        return made

    def _take(self, listing: Listing, growth_M: Any, bordered: tuple[Match, ...]) -> None:
        self.listing = listing
        self._growth_M = listing.carried(growth_M, np.array([m.growth for m in listing.fresh], np.int64))
        if bordered or any([m.borders for m in listing.fresh]):
            gone = set(listing.gone)
            bordered = (*(m for m in bordered if m not in gone), *(m for m in listing.fresh if m.borders))
        self._bordered = bordered
        room = self.limit - self.weight_bytes
        # what is shared by others may have changed since a match was found: those that grow the weights much are looked at again
        large = [listing.matches[k] for k in np.flatnonzero(self._growth_M > max(room // 4, 0)).tolist()]
        barred = {m for m in large if growth(self.graph, m.edit) > room}
        barred.update([m for m in bordered if closes_cycle(self.graph, m)])
        self.barred = frozenset(barred)
        self.matches = tuple([m for m in listing.matches if m not in barred]) if barred else listing.matches

    def _renewed(self, made: MatchSet, i: int, names: set[str], far: Mapping[int, int]) -> tuple[Match, ...]:
        """The matches at node `i`: those of the rules in `names` looked for anew, the others kept, none with a stale root."""
        graph, depths, places = made.graph, self.rules.depths, self.rules.places
        kept: list[Match] = []
        known: dict[str, dict[tuple[int, ...], Match]] = {}
        for m in self._at.get(i, ()):
            name = m.rule.name
            fresh = all(r in graph.nodes and depths[name] <= far.get(r, depths[name]) for r in m.roots)
            if fresh:
                known.setdefault(name, {})[m.nodes] = m
        for name, held in known.items():
            if name not in names:
                kept += held.values()
        if names:
            wanted = [r for r, k in made._places[i] if k == 0 and r.name in names]
            kept += [m for r in wanted for m in matches(r, graph, i, known.get(r.name), self.rules.recipes)]
        return tuple(sorted(kept, key=lambda m: places[m.rule.name]))  # stable: matches of one rule keep their order

    def __iter__(self) -> Iterator[Match]:
        """The matches that can be performed."""
        return iter(self.matches)

    def __len__(self) -> int:
        """How many can be performed."""
        return len(self.matches)

    def at(self, root: int) -> tuple[Match, ...]:
        """The matches at node `root`, rules in their order; those that iteration leaves out are among them."""
        return self._at.get(root, ())


def touched_by(before: Graph, after: Graph, edit: Edit) -> set[int]:
    """Nodes of `after` that are new, read something else, or are read by others than in `before` (constants left out)."""
    touched = set(range(before.next_id, after.next_id))
    for i in after.gone:
        if i in before.nodes:
            touched.update(v.node for v in before.nodes[i].reads())
    for i in range(before.next_id, after.next_id):
        touched.update(v.node for v in after.nodes[i].reads())
    for old, new in edit.rewired.items():
        moved = [u.node for u in before.users[old.node]]
        touched.update(moved)
        touched.add(new.node)
        while moved:  # what has become constant is seen by its readers
            i = moved.pop()
            if i in before.nodes and i in after.nodes and before.nodes[i].constant != after.nodes[i].constant:
                moved.extend(u.node for u in after.users[i])
                touched.update(u.node for u in after.users[i])
    return {i for i in touched if i in after.nodes and not after.nodes[i].is_constant}


def _downstream(graph: Graph, first: set[int], behind: set[int], reach: int) -> dict[int, int]:
    """Nodes by their distance downstream of those in `behind`, up to `reach`; of these themselves those in `first` alone."""
    far = dict.fromkeys(first, 0)
    frontier = behind
    for distance in range(1, reach + 1):
        frontier = {u.node for i in frontier for u in graph.users[i]} - far.keys() - {OUTPUT}
        far.update(dict.fromkeys(frontier, distance))
    return far


def _listed(found: Iterable[Match]) -> dict[int, frozenset[int]]:
    """Root -> first roots of the matches that have it."""
    table: dict[int, set[int]] = {}
    for m in found:
        for i in m.roots:
            table.setdefault(i, set()).add(m.root)
    return {i: frozenset(roots) for i, roots in table.items()}


def constant_bytes(graph: Graph) -> int:
    """Bytes of the constants that the graph's running nodes read: the weights of the saved model."""
    found = graph.memo.get("constant_bytes")
    if found is None:
        seen = {v for n in graph.nodes.values() if not n.constant for v in n.reads() if graph.nodes[v.node].constant}
        seen.update(v for v in graph.outputs if graph.nodes[v.node].constant)
        found = graph.memo["constant_bytes"] = sum(type_bytes(graph.type(v)) for v in seen)
    return found
