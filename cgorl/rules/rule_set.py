"""RuleSet: the rules that a search may use, and how far they may make the model grow."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from cgorl.rules.pattern import depth
from cgorl.rules.rule import Rule

ROOM_BYTES = 64 << 20


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
        """The rules by the operator at their root."""
        index: dict[str, list[Rule]] = defaultdict(list)
        for rule in self.rules:
            index[rule.source.op].append(rule)
        return {op: tuple(found) for op, found in index.items()}

    @cached_property
    def reach(self) -> int:
        """How many operators deep the deepest source is."""
        return max((depth(r.source) for r in self.rules), default=0)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that stand for the rules' text."""
        return hashlib.blake2b("\n".join(str(r) for r in self.rules).encode(), digest_size=8).hexdigest()

    def limit(self, weight_bytes: int) -> int:
        """Bytes of weights that a model that starts with `weight_bytes` may come to."""
        return max(int(weight_bytes * self.growth), weight_bytes + ROOM_BYTES)
