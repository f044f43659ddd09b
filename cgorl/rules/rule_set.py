"""RuleSet: the rules that a search may use, and how far they may make the model grow."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cgorl.ir.graph import Graph
from cgorl.rules.matcher import may_match
from cgorl.rules.pattern import operator
from cgorl.rules.rule import Rule

ROOM_BYTES = 64 << 20

_SIGNATURES = 100_000


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
    def by_root(self) -> Mapping[str, tuple[Rule, ...]]:
        """The rules by the operator at their first root."""
        index: dict[str, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            index[operator(rule.source[0]).op].append(rule)
        return {op: tuple(found) for op, found in index.items()}

    @cached_property
    def _by_signature(self) -> dict[object, tuple[Rule, ...]]:
        return {}

    def candidates(self, graph: Graph, i: int) -> tuple[Rule, ...]:
        """The rules that may match at node `i`, by operator and by the operators and constness of its operands."""
        node = graph.nodes[i]
        rules = self.by_root.get(node.op) if node.domain == "" else None
        if not rules or node.constant:
            return ()
        nodes = graph.nodes
        around = tuple(None if v is None else (nodes[v.node].op, nodes[v.node].constant) for v in node.inputs)
        found = self._by_signature.get((node.op, around))
        if found is None:
            found = tuple(r for r in rules if may_match(r, around))
            if len(self._by_signature) < _SIGNATURES:
                self._by_signature[node.op, around] = found
        return found

    @cached_property
    def depths(self) -> Mapping[str, int]:
        """How many operators deep each rule's source reaches, by name."""
        return {r.name: r.depth for r in self.rules}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each rule in the order, by name."""
        return {r.name: k for k, r in enumerate(self.rules)}

    @cached_property
    def reach(self) -> int:
        """How many operators deep the deepest source is."""
        return max(self.depths.values(), default=0)

    @cached_property
    def wide_reach(self) -> int:
        """The same of the rules with several roots, 0 if there are none."""
        return max((self.depths[r.name] for r in self.rules if r.several), default=0)

    @cached_property
    def several_roots(self) -> frozenset[str]:
        """The operators at the first root of rules with several roots."""
        return frozenset(operator(r.source[0]).op for r in self.rules if r.several)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that stand for the rules' text."""
        return hashlib.blake2b("\n".join(str(r) for r in self.rules).encode(), digest_size=8).hexdigest()

    def limit(self, weight_bytes: int) -> int:
        """Bytes of weights that a model that starts with `weight_bytes` may come to."""
        return max(int(weight_bytes * self.growth), weight_bytes + ROOM_BYTES)
