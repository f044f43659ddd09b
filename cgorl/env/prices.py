"""Prices: what each match of a graph gains, in their order; inherited where the last edit is far away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from immutables import Map

from cgorl.cost.model import Price
from cgorl.ir.graph import Edit, Graph
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match

Pricer = Callable[[Graph, Edit], Price | None]
"""The price of an edit, as `CostModel.price`; None where no more can be paid for."""


class Prices(Mapping[Match, Price]):
    """Matches with their prices, in the order of `found`: all of them, or the first few where that was too much. Immutable.

    `renewed` are matches that were listed before whose price is a new one.
    """

    __slots__ = ("_known", "_resting", "found", "matches", "renewed")

    def __init__(self, found: MatchSet, price: Pricer, most: int | None = None, before: Prices | None = None) -> None:
        """Prices `most` matches at most, until `price` says None; `before` are the prices of the graph before the last edit."""
        self.found, self.matches = found, found.matches if most is None else found.matches[:most]
        self._known: dict[Match, Price] = {}
        self._resting: Map[int, tuple[Match, ...]] = Map()
        wanted: Sequence[Match] = self.matches if before is None else self._inherit(before)
        self._pay(wanted, price)
        if len(self.matches) < len(self._known):
            self._known = {m: self._known[m] for m in self.matches}
        fresh = set(found.listing.fresh)
        self.renewed = tuple([m for m in wanted if m not in fresh and m in self._known])

    def _inherit(self, before: Prices) -> list[Match]:
        """Takes over what stands; the matches that are left to price, in order."""
        found = self.found
        known = self._known = before._known.copy()
        for m in (*found.listing.gone, *found.barred):
            known.pop(m, None)
        stale = found.touched.union(found.graph.gone)
        moved = dict.fromkeys([m for i in stale for m in before._resting.get(i, ()) if m in known])
        for m in moved:
            del known[m]
        self._resting = before._resting
        if len(self.matches) < len(found) or len(before) < len(before.found):
            return [m for m in self.matches if m not in known]
        reopened = before.found.barred.difference(found.listing.gone)
        return sorted([m for m in (*found.listing.fresh, *moved, *reopened) if m not in found.barred], key=found.listing.place)

    def _pay(self, wanted: Iterable[Match], price: Pricer) -> None:
        graph, known, table = self.found.graph, self._known, self._resting.mutate()
        for m in wanted:
            paid = price(graph, m.edit)
            if paid is None:
                self.matches = self.matches[: self.matches.index(m)]
                break
            for i in paid.rests:
                table[i] = (*[x for x in table.get(i, ()) if x in known], m)
            known[m] = paid
        self._resting = table.finish()

    def __getitem__(self, match: Match) -> Price:
        """The price of a match."""
        return self._known[match]

    def __contains__(self, match: object) -> bool:
        """Whether a match is there and priced."""
        return match in self._known

    def __iter__(self) -> Iterator[Match]:
        """The matches in order."""
        return iter(self.matches)

    def __len__(self) -> int:
        """How many are priced."""
        return len(self.matches)
