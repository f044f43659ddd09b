"""Matches kept up to date equal those of a full scan; explanations agree with matches."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from cgorl import zoo
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import load
from cgorl.ir.simplify import simplify
from cgorl.rules.match import explain, matches
from cgorl.rules.matches import MatchSet, constant_bytes
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library, parse_rules
from tests.texts import model

RULES = RuleSet(library())
MODELS = Path(__file__).parents[3] / "shared" / "models"
SMALL = {
    "bert": {"layers": 1, "hidden": 32, "heads": 2, "seq": 8},
    "inception_v3": {"image": 75, "width": 0.125},
    "nasnet_a": {},
    "nasrnn": {},
    "repvgg_a0": {"image": 32, "width": 0.125, "depth": (1, 2, 2, 1)},
    "resnet50": {"image": 32, "width": 0.125},
    "resnext50": {"image": 32},
}


def small(name: str) -> Graph:
    return simplify(from_proto(zoo.build(name, **SMALL.get(name, {})))).graph


def real(path: Path | None, folder: Path) -> Graph:
    """One of the shared models, its weights restored."""
    if path is None:
        pytest.skip("../shared/models is not here")
    if ".stripped" in path.name:
        whole = folder / "whole.onnx"
        subprocess.run([sys.executable, str(MODELS / "restore.py"), str(path), str(whole)], check=True, capture_output=True)
        path = whole
    return load(path)


def listed(found: MatchSet) -> list[tuple[str, tuple[int, ...], int]]:
    return [(m.rule.name, m.nodes, m.growth) for m in found]


def walk(graph: Graph, steps: int, seed: int, every: int) -> None:
    rng = random.Random(seed)
    found = MatchSet(graph, RULES)
    for k in range(steps):
        choices = list(found)
        if not choices:
            return
        match = rng.choice(choices)
        graph = graph.replace(match.edit)
        found = found.after(graph, match)
        assert found.weight_bytes == constant_bytes(graph), match.rule.name
        if k % every == 0:
            full = MatchSet(graph, RULES, found.limit)
            assert [m[:2] for m in listed(found)] == [m[:2] for m in listed(full)], f"after step {k}, {match.rule.name}"


@pytest.mark.parametrize("name", sorted(SMALL))
def test_incremental_equals_full(name: str) -> None:
    walk(small(name), 16, 0, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.names())
def test_incremental_equals_full_over_two_hundred_edits(name: str) -> None:
    walk(simplify(from_proto(zoo.build(name))).graph, 200, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")) or [None], ids=lambda p: p.stem if p else "absent")
def test_incremental_equals_full_on_real_models(path: Path | None, tmp_path: Path) -> None:
    walk(simplify(real(path, tmp_path)).graph, 200, 2, 1)


@pytest.mark.parametrize("name", ["bert", "repvgg_a0"])
def test_an_explanation_is_empty_just_where_a_rule_matches(name: str) -> None:
    graph = small(name)
    for i in list(graph.nodes)[::3]:
        for rule in list(RULES)[::2]:
            here = bool(matches(rule, graph, i))
            why = explain(rule, graph, i)
            if not graph.nodes[i].constant:
                assert here == (why == ""), (rule.name, why)


def test_a_candidate_list_leaves_no_match_out() -> None:
    for name in ("inception_v3", "bert"):
        graph = small(name)
        for i in graph.nodes:
            chosen = {r.name for r, k in RULES.candidates(graph, i) if k == 0}
            assert all(not matches(r, graph, i) for r in RULES if r.name not in chosen)


@pytest.mark.parametrize("rule", library(), ids=lambda r: r.name)
def test_text_round_trip(rule: object) -> None:
    (again,) = parse_rules(str(rule))
    assert again == rule


def test_a_condition_that_looks_past_the_source_is_seen_to_change() -> None:
    """Whether a Relu counts with its conv hangs on the conv's other users, one operator upstream of what the rule reads."""
    past, shut = parse_rules("""
rule past: swap
    Tanh((r := Relu(x)))
 => Relu(Tanh(x))
 if not_activation(r)

rule shut: swap
    Sub(x, y)
 => Neg(y)
""")
    rules = RuleSet((past, shut))
    graph = from_proto(
        model("""agraph (float[1,2,4,4] x, float[1,2,4,4] q) => (float[1,2,4,4] y, float[1,2,4,4] z)
        <float[2,2,1,1] w = {1,2,3,4}> { c = Conv(x, w) r = Relu(c) y = Tanh(r) z = Sub(c, q) }""")
    )
    found = MatchSet(graph, rules)
    assert [m.rule.name for m in found] == ["past", "shut"]
    match = list(found)[1]
    after = graph.replace(match.edit)
    assert listed(found.after(after, match)) == listed(MatchSet(after, rules, found.limit)) == []


def test_growth_limit_leaves_out_matches_that_would_pass_it() -> None:
    graph = small("resnext50")
    free = MatchSet(graph, RULES)
    tight = MatchSet(graph, RULES, free.weight_bytes)
    assert len(list(free)) > len(list(tight)) > 0
    assert all(m.growth <= 0 for m in tight)
