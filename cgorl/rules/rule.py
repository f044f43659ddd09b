"""Rule, Match: a graph substitution as data, and one place where it applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cgorl.ir.graph import Edit
from cgorl.ir.node import Value
from cgorl.rules.pattern import Apply, Each, Term, Var, bare, depth


@dataclass(frozen=True, slots=True)
class Rule:
    """`source` may become `target` where `conditions` hold.

    The source has one root or more; a repeated one (`*Conv(x, *w)`) matches several alike that share what has no star.
    Every node of the source but its roots must have no user outside the match, unless its label is in `shared`. An
    attribute that the source does not mention must have its default. `where` names parts of the target. Text form:

        rule conv-batchnorm: fold conv
            BatchNormalization(Conv(x, w, [b], **c), s, t, m, v, epsilon=e, momentum=_)
         => Conv(x, w * outward(k, w), ([b] - m) * k + t, **c)
         where k = s / sqrt(v + e)
         if constant(w, b, s, t, m, v)
    """

    name: str
    tags: tuple[str, ...]
    source: tuple[Term, ...]
    target: tuple[Term, ...]
    where: tuple[tuple[str, Term], ...] = ()
    conditions: tuple[Apply, ...] = ()
    shared: tuple[str, ...] = ()
    provenance: str = "hand"
    doc: str = ""

    @property
    def depth(self) -> int:
        """How many operators deep the source reaches from a root."""
        return max(depth(root) for root in self.source)

    @property
    def several(self) -> bool:
        """Whether the source has more than one root."""
        return len(self.source) > 1 or isinstance(self.source[0], Each)

    def __str__(self) -> str:
        """The rule as text that `parse_rules` reads back to the same rule."""
        lines = [f"# {line}" for line in self.doc.splitlines()]
        lines += [f"rule {self.name}: {' '.join(self.tags)}", f"    {_join(self.source)}", f" => {_join(self.target)}"]
        lines += [f" where {name} = {bare(term)}" for name, term in self.where]
        if self.conditions:
            lines.append(" if " + ", ".join(str(c) for c in self.conditions))
        if self.shared:
            lines.append(" shared " + ", ".join(self.shared))
        return "\n".join(lines)


def _join(terms: tuple[Term, ...]) -> str:
    text = ", ".join(bare(t) for t in terms)
    alone = len(terms) == 1 and (isinstance(terms[0], Each) or (isinstance(terms[0], Var) and terms[0].star))
    return text + "," if alone else text


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """One place where a rule applies: its nodes (roots as the source lists them, each before its operands) and its names.

    `edit` is the rewrite, valid until a node around it changes; `growth` the bytes of weights that it adds; `borders` the
    values from outside whose dependence on a root would close a cycle.
    """

    rule: Rule
    nodes: tuple[int, ...]
    bound: Mapping[str, Any]
    edit: Edit
    growth: int = 0
    borders: tuple[Value, ...] = ()
    roots: tuple[int, ...] = ()
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def root(self) -> int:
        """The node whose result the match replaces (the first of several)."""
        return self.nodes[0]
