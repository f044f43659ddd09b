"""RuleSet: the rules that a search may use, and how far they may make the model grow."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cgorl.ir.graph import Graph
from cgorl.rules.conditions import PAST, ROUND
from cgorl.rules.look import Glances, Names, look_at, may_match, spoken_of
from cgorl.rules.pattern import operator
from cgorl.rules.recipe import Recipes
from cgorl.rules.rule import Rule

ROOM_BYTES = 64 << 20

Place = tuple[Rule, int]
"""A rule and the number of one of its roots."""

_LOOKS = 100_000


@dataclass(frozen=True)
class RuleSet:
    """Rules in a fixed order; weights may grow to `growth` times their bytes, or by 64 MiB, the larger."""

    rules: tuple[Rule, ...] = field(default=())
    growth: float = 1.5

    def __iter__(self) -> Iterator[Rule]:
        """The rules in order."""
        return iter(self.rules)

    def __len__(self) -> int:
        """The number of rules."""
        return len(self.rules)

    @cached_property
    def by_root(self) -> Mapping[str, tuple[Place, ...]]:
        """The roots of the rules by operator."""
        index: dict[str, list[Place]] = defaultdict(list)
        for rule in self.rules:
            for k, root in enumerate(rule.source):
                index[operator(root).op].append((rule, k))
        return {op: tuple(found) for op, found in index.items()}

    @cached_property
    def _names(self) -> Names:
        return spoken_of(self.rules)

    @cached_property
    def _glances(self) -> Glances:
        return Glances(self._names, self.minds_readers)

    @cached_property
    def minds_readers(self) -> bool:
        """Whether a rule asks who reads its roots."""
        return any(c.op in ROUND for r in self.rules for c in r.conditions)

    @cached_property
    def _by_glance(self) -> dict[tuple[str | int | bool, ...], tuple[Place, ...]]:
        return {}

    def candidates(self, graph: Graph, i: int) -> tuple[Place, ...]:
        """The rules of which node `i` may be a root, with the root's number, by how it looks."""
        node = graph.nodes[i]
        roots = self.by_root.get(node.op) if node.domain == "" else None
        if not roots or node.constant:
            return ()
        glance = self._glances.at(graph, i)
        found = self._by_glance.get(glance)
        if found is None:
            look = look_at(graph, i, self._names)
            found = tuple((r, k) for r, k in roots if may_match(r, k, look, self._names))
            if len(self._by_glance) < _LOOKS:
                self._by_glance[glance] = found
        return found

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """How many operators deep each rule looks from a root, by name: its source, and conditions that look past it."""
        return {r.name: r.depth + any(c.op in PAST for c in r.conditions) for r in self.rules}

    @cached_property
    def several(self) -> frozenset[str]:
        """The names of the rules with more than one root."""
        return frozenset(r.name for r in self.rules if r.several)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each rule in the order, by name."""
        return {r.name: k for k, r in enumerate(self.rules)}

    @cached_property
    def reach(self) -> int:
        """How many operators deep the rules look at most."""
        return max(self.depths.values(), default=0)

    @cached_property
    def recipes(self) -> Recipes:
        """What came of the rules so far."""
        return Recipes()

    @cached_property
    def digest(self) -> str:
        """16 hex digits that stand for the rules' text."""
        return hashlib.blake2b("\n".join(str(r) for r in self.rules).encode(), digest_size=8).hexdigest()

    def limit(self, weight_bytes: int) -> int:
        """Bytes of weights that a model that starts with `weight_bytes` may come to."""
        return max(int(weight_bytes * self.growth), weight_bytes + ROOM_BYTES)
