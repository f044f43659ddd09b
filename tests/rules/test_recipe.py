"""A rewrite that is remembered is the one that would be worked out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cgorl.ir.graph import Edit, Graph, GraphError
from cgorl.rules.context import NoMatch
from cgorl.rules.matcher import Found
from cgorl.rules.matches import MatchSet
from cgorl.rules.recipe import Recipes, worked_out
from cgorl.rules.rule import Rule
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library
from tests.texts import graph, small


def told(edit: Edit | None) -> Any:
    """All that an edit says."""
    if edit is None:
        return None
    added = [(n.op, n.inputs, n.signature, n.types, n.constant, n.name, n.names) for n in edit.added]
    return edit.removed, [(*a[:-1], tuple(a[-1]) if any(a[-1]) else ()) for a in added], dict(edit.rewired)


@pytest.mark.parametrize("name", ["bert", "inception_v3", "repvgg_a0", "resnet50"])
def test_on_a_walk_every_edit_is_the_one_worked_out_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner, asked, learnt = Recipes.edit, [0], [0]
    learn = Recipes._learn

    def edit(self: Recipes, rule: Rule, graph: Graph, read: Found) -> Edit | None:
        try:
            anew: Edit | None = worked_out(rule, graph, read)
        except (NoMatch, GraphError, IndexError):
            anew = None
        try:
            found = inner(self, rule, graph, read)
        except (NoMatch, GraphError, IndexError):
            found = None
        asked[0] += 1
        assert told(found) == told(anew), rule.name
        return found

    def learns(self: Recipes, *args: Any) -> Any:
        learnt[0] += 1
        return learn(self, *args)

    monkeypatch.setattr(Recipes, "edit", edit)
    monkeypatch.setattr(Recipes, "_learn", learns)
    at, rng = small(name), random.Random(name)
    found = MatchSet(at, RuleSet(library()))
    for _ in range(25):
        match = rng.choice(found.matches)
        at = at.replace(match.edit)
        found = found.after(at, match)
    assert asked[0] > learnt[0] > 0


def test_what_a_constant_holds_tells_apart_what_looks_alike() -> None:
    rules = RuleSet(tuple(r for r in library() if r.name == "max-relu"))
    two = graph(
        """agraph (float[4] x) => (float[4] a, float[4] b) <float[1] zero = {0}, float[1] one = {1}> {
             a = Max(x, zero)
             b = Max(x, one)
           }"""
    )
    for _ in range(2):  # learnt, then remembered
        (found,) = MatchSet(two, rules)
        assert two.label(next(iter(found.edit.rewired))) == "a"
