"""The catalogue: over many models, how often each rule matches, what it gains at best, and which rules are dead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet


@dataclass(slots=True)
class Entry:
    """One rule: matches by model, and its best gain in ms with the model it was found in."""

    rule: str
    tags: tuple[str, ...]
    matches: dict[str, int] = field(default_factory=dict)
    best_ms: float = float("-inf")
    best_in: str = ""

    @property
    def total(self) -> int:
        """Matches over all models."""
        return sum(self.matches.values())


def catalogue(models: Iterable[tuple[str, Graph]], rules: RuleSet, cost: CostModel, rounds: int = 1) -> list[Entry]:
    """One entry a rule, in the rules' order, over all matches of the (simplified) models.

    With more `rounds`, each model is also rewritten by one match of each rule that matches, and looked at again: rules
    that need another's result to match are found this way.
    """
    table = {r.name: Entry(r.name, r.tags) for r in rules}
    for name, graph in models:
        found = MatchSet(graph, rules)
        for turn in range(rounds):
            firsts: dict[str, Match] = {}
            for m in found:
                entry = table[m.rule.name]
                entry.matches[name] = entry.matches.get(name, 0) + 1
                gain = cost.gain(found.graph, m.edit)
                if gain > entry.best_ms:
                    entry.best_ms, entry.best_in = gain, name
                firsts.setdefault(m.rule.name, m)
            if turn + 1 == rounds:
                break
            for m in firsts.values():
                if all(i in found.graph.nodes for i in m.nodes) and m in list(found._at.get(m.root, ())):
                    found = found.after(found.graph.replace(m.edit), m)
    return list(table.values())
