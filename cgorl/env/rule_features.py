"""What an agent sees of a rule besides its name: the operators of both sides and the shape of its source, an array a rule set.

Shape suffixes: R rules, S features of a rule.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from cgorl.env.node_rows import NUMBER, OPS
from cgorl.rules.pattern import Apply, Each, Term, walk
from cgorl.rules.rule import Rule
from cgorl.rules.rule_set import RuleSet

S = 2 * (len(OPS) + 1) + 6
"""How many features a rule has."""


def rule_features(rules: RuleSet) -> Any:
    """float32 [R, S], rules in their order."""
    return np.array([_features(r) for r in rules], np.float32).reshape(-1, S)


def rule_digest(rule: Rule) -> str:
    """16 hex digits that stand for the text of a rule."""
    return hashlib.blake2b(str(rule).encode(), digest_size=8).hexdigest()


def _features(rule: Rule) -> list[float]:
    before, after = _count(rule.source), _count((*rule.target, *(term for _, term in rule.where)))
    return [
        *before,
        *after,
        rule.depth / 4,
        len(rule.source) / 4,
        float(rule.several),
        (sum(after) - sum(before)) / 2,
        len(rule.conditions) / 8,
        float(any(isinstance(t, Each) for term in (*rule.source, *rule.target) for t in walk(term))),
    ]


def _count(terms: tuple[Term, ...]) -> list[float]:
    found = [0.0] * (len(OPS) + 1)
    for term in terms:
        for t in walk(term):
            if isinstance(t, Apply) and t.is_operator:
                found[NUMBER.get(t.op, 0)] += 0.5
    return found
