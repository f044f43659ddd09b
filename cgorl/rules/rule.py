"""Rule, Match: a graph substitution as data, and one place where it applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cgorl.ir.graph import Edit
from cgorl.rules.pattern import Apply, Term


@dataclass(frozen=True, slots=True)
class Rule:
    """`source` may become `target` where `conditions` hold.

    Every node of the source but its root must have no user outside the match, unless its label is in `shared`. An
    attribute that the source does not mention must have its default. `where` names parts of the target. Text form:

        rule conv-batchnorm: fold conv
            BatchNormalization(Conv(x, w, [b], **c), s, t, m, v, epsilon=e, momentum=_)
         => Conv(x, w * outward(k, w), ([b] - m) * k + t, **c)
         where k = s / sqrt(v + e)
         if constant(w, b, s, t, m, v)
    """

    name: str
    tags: tuple[str, ...]
    source: Apply
    target: Term
    where: tuple[tuple[str, Term], ...] = ()
    conditions: tuple[Apply, ...] = ()
    shared: tuple[str, ...] = ()
    provenance: str = "hand"
    doc: str = ""

    def __str__(self) -> str:
        """The rule as text that `parse_rules` reads back to the same rule."""
        lines = [f"# {line}" for line in self.doc.splitlines()]
        lines += [f"rule {self.name}: {' '.join(self.tags)}", f"    {self.source}", f" => {self.target}"]
        lines += [f" where {name} = {term}" for name, term in self.where]
        if self.conditions:
            lines.append(" if " + ", ".join(str(c) for c in self.conditions))
        if self.shared:
            lines.append(" shared " + ", ".join(self.shared))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """One place where a rule applies: its nodes (root first, as the source lists them) and what its names stand for.

    `edit` is the rewrite, valid until a node around it changes; `growth` the bytes of weights that it adds.
    """

    rule: Rule
    nodes: tuple[int, ...]
    bound: Mapping[str, Any]
    edit: Edit
    growth: int = 0
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def root(self) -> int:
        """The node whose result the match replaces."""
        return self.nodes[0]
