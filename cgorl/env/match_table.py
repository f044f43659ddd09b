"""MatchTable: what an agent sees of each match, in rows; after an edit only the rows of those that are new are made.

Shape suffixes: M matches, R some rows, Y features of a match, K places (a match at one of its nodes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from cgorl.env.node_rows import row_sums
from cgorl.env.prices import Prices
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet

Y = 9
BETTER = 4
"""The feature that says whether the match leads below the best cost so far."""


class MatchTable:
    """All matches of a graph in the order of their listing, those that cannot be performed or have no price among them. Immutable.

    `rule_M` numbers in the rule set, `percent_M` gains in percent of the first cost (float64), `y_MY` features (float32) and
    `sum_M` (uint64) `row_sums` of rule and features, both as if none led below the best cost; `size_M` how many nodes a match
    has, `ids_K` these nodes, `role_K` their places in it.
    """

    __slots__ = ("_first_M", "_scale", "ids_K", "percent_M", "prices", "role_K", "rule_M", "size_M", "sum_M", "y_MY")

    def __init__(self, prices: Prices, initial_ms: float) -> None:
        """Looks at all matches; `initial_ms` is the first cost."""
        self.prices, self._scale = prices, 100 / (initial_ms or 1.0)
        listed = prices.found.listing.matches
        self.rule_M, self.percent_M, self.y_MY, self.sum_M = self._rows(listed)
        self.size_M, self.ids_K = _nodes(listed)
        self._place()

    def after(self, prices: Prices) -> MatchTable:
        """The table after one more edit."""
        made = object.__new__(MatchTable)
        made.prices, made._scale = prices, self._scale
        listing = prices.found.listing
        fresh, renewed = listing.fresh, prices.renewed
        rows = made._rows((*fresh, *renewed))
        columns = self.rule_M, self.percent_M, self.y_MY, self.sum_M
        made.rule_M, made.percent_M, made.y_MY, made.sum_M = (
            listing.carried(old, new[: len(fresh)]) for old, new in zip(columns, rows, strict=True)
        )
        if renewed:
            places = [listing.place(m) for m in renewed]
            for column, new in zip((made.percent_M, made.y_MY, made.sum_M), rows[1:], strict=True):
                column[places] = new[len(fresh) :]
        sizes, ids_K = _nodes(fresh)
        first_M = listing.carried(self._first_M, len(self.ids_K) + np.cumsum(sizes) - sizes)
        made.size_M = listing.carried(self.size_M, sizes)
        made._place()
        made.ids_K = np.concatenate([self.ids_K, ids_K]).take(np.repeat(first_M, made.size_M) + made.role_K)
        return made

    def _place(self) -> None:
        self._first_M = np.cumsum(self.size_M) - self.size_M
        self.role_K = np.arange(int(self.size_M.sum())) - np.repeat(self._first_M, self.size_M)

    def _rows(self, matches: Sequence[Match]) -> tuple[Any, Any, Any, Any]:
        prices, rules = self.prices, self.prices.found.rules
        # what does not depend on the graph is kept with the match: rule, counts of nodes and bytes
        facts_R5 = np.array([m.memo.get("seen") or _facts(m, rules) for m in matches], np.float32).reshape(-1, 5)
        percent_R = np.array([prices[m].gain if m in prices else 0.0 for m in matches], np.float64) * self._scale
        y_RY = np.zeros((len(matches), Y), np.float32)
        y_RY[:, 0] = np.sign(percent_R) * np.log1p(10 * np.abs(percent_R))
        y_RY[:, 1] = np.clip(percent_R, -5, 5)
        y_RY[:, 2], y_RY[:, 3] = percent_R > 1e-9, percent_R < -1e-9
        y_RY[:, 5:] = facts_R5[:, 1:]
        rule_R = facts_R5[:, 0].astype(np.int64)
        return rule_R, percent_R, y_RY, row_sums(rule_R, y_RY)


def _nodes(matches: Sequence[Match]) -> tuple[Any, Any]:
    """How many nodes each match has, and all of these."""
    nodes = [m.nodes for m in matches]
    return np.array([len(n) for n in nodes], np.int64), np.array(list(chain.from_iterable(nodes)), np.int64)


def _facts(match: Match, rules: RuleSet) -> tuple[float, ...]:
    edit = match.edit
    new = sum(1 for n in edit.added if not n.constant)
    growth = math.copysign(math.log2(1 + abs(match.growth)), match.growth) / 30
    found = match.memo["seen"] = (rules.places[match.rule.name], len(edit.removed) / 8, new / 8, len(match.nodes) / 8, growth)
    return found
