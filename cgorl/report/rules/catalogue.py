"""The catalogue: over many models, how often each rule matches, what it gains at best, and which rules are dead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    With two `rounds`, each model is also rewritten by the first match of each rule, one at a time, and the matches that
    come up are counted too: rules that need another's result are found this way. With more, those again, and so on.
    """
    table = {r.name: Entry(r.name, r.tags) for r in rules}
    for name, graph in models:
        for found, fresh in _rewritten(MatchSet(graph, rules), rounds):
            for m in fresh:
                entry = table[m.rule.name]
                entry.matches[name] = entry.matches.get(name, 0) + 1
                gain = cost.gain(found.graph, m.edit)
                if gain > entry.best_ms:
                    entry.best_ms, entry.best_in = gain, name
    return list(table.values())


def _rewritten(start: MatchSet, rounds: int) -> Iterator[tuple[MatchSet, list[Match]]]:
    """The set and those that up to `rounds` - 1 rewrites lead to, each with its matches that are new in it."""
    level = [(start, list(start))]
    for turn in range(rounds):
        yield from level
        if turn + 1 < rounds:
            level = [_after(found, m) for found, fresh in level for m in _firsts(fresh)]


def _firsts(matches: Iterable[Match]) -> list[Match]:
    firsts: dict[str, Match] = {}
    for m in matches:
        firsts.setdefault(m.rule.name, m)
    return list(firsts.values())


def _after(found: MatchSet, match: Match) -> tuple[MatchSet, list[Match]]:
    after = found.after(found.graph.replace(match.edit), match)
    known = {id(m) for m in found}
    return after, [m for m in after if id(m) not in known]
