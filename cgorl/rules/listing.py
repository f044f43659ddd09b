"""Listing: the matches of a graph in order, and how it came of the listing before; what is known of each match is carried over by that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cgorl.rules.rule import Match


class Listing(NamedTuple):
    """Matches by root id, those at one root in the order of their rules.

    `fresh` are those that were not in the listing before, in order, `gone` those that are no more. `origin_M` has for each
    match its number before; of fresh ones, which follow in a column to be carried over, that behind the last.
    """

    matches: tuple[Match, ...]
    roots: list[int]
    fresh: tuple[Match, ...]
    gone: tuple[Match, ...]
    origin_M: Any

    @classmethod
    def of(cls, matches: Mapping[int, tuple[Match, ...]]) -> Listing:
        """The first listing of a graph, from the matches at each root."""
        listed = tuple([m for i in sorted(matches) for m in matches[i]])
        return cls(listed, [m.root for m in listed], listed, (), np.arange(len(listed)))

    def with_changes(self, changes: Mapping[int, tuple[Match, ...]]) -> Listing:
        """The listing in which some roots have other matches; all of one root are given."""
        matches, roots, count = list(self.matches), self.roots.copy(), len(self.matches)
        fresh: list[Match] = []
        gone: list[Match] = []
        origin: list[Any] = []
        old = np.arange(count)
        at = 0
        for i in sorted(changes):
            here = changes[i]
            start = bisect_left(self.roots, i, at)
            stop = start
            while stop < count and self.roots[stop] == i:
                stop += 1
            before = self.matches[start:stop]
            if before == here:
                continue
            shift = len(matches) - count
            matches[start + shift : stop + shift] = here
            roots[start + shift : stop + shift] = [i] * len(here)
            numbers = {m: start + k for k, m in enumerate(before)}
            places = []
            for m in here:
                place = numbers.pop(m, -1)
                if place < 0:
                    place = count + len(fresh)
                    fresh.append(m)
                places.append(place)
            gone += numbers
            origin += (old[at:start], places)
            at = stop
        return Listing(tuple(matches), roots, tuple(fresh), tuple(gone), np.concatenate([*origin, old[at:]]).astype(np.int64, copy=False))

    def carried(self, column_M: Any, fresh_M: Any) -> Any:
        """A column (an array, a row for each match) of the listing before, and that of the fresh ones, as a column of this one."""
        return np.concatenate([column_M, fresh_M]).take(self.origin_M, 0)

    def place(self, match: Match) -> int:
        """The number of a match."""
        return self.matches.index(match, bisect_left(self.roots, match.root))
