"""Variants: one graph rewritten at random several times over, and whether prices put the variants into the measured order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Console

from cgorl import gate
from cgorl.calibration.filling import Chosen
from cgorl.certificate.inputs import feeds
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.graph import Graph
from cgorl.ir.tensor import Array
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet

COUNT, MOST_STEPS = 20, 12
_DEAR = 1.5
"""Variants that are foretold to take more than so many times the original are no test of an order."""


class Variant(NamedTuple):
    """A variant: how many rewrites away it is, and its time in ms, foretold and measured."""

    steps: int
    predicted_ms: float
    measured_ms: float


def variants(model: Chosen, seconds: float, seed: int = 0, count: int = COUNT) -> list[Variant]:
    """`count` variants of a model, the model itself among them, run in turn for so many seconds in all."""
    rng = random.Random(seed)
    graphs, taken = {gate.ORIGINAL: model.graph}, {gate.ORIGINAL: 0}
    keys, start = {model.graph.key}, model.prices.cost_ms(model.graph)
    predicted = {gate.ORIGINAL: start}
    for k in range(50 * count):
        if len(graphs) == count:
            break
        steps = rng.randint(1, MOST_STEPS)
        graph = _walk(model.graph, model.rules, steps, rng)
        if graph.key in keys or (cost := model.prices.cost_ms(graph)) > _DEAR * start:
            continue
        keys.add(graph.key)
        graphs[f"{k}"], taken[f"{k}"], predicted[f"{k}"] = fold_rewrites(graph), steps, cost
    runners, _ = gate.runners(graphs, feeds(model.graph, model.sizes, np.random.default_rng(seed)), model.prices.level)
    timings = gate.compare(runners, seconds, np.random.default_rng(seed))
    base = timings[gate.ORIGINAL].cpu_ms
    return [Variant(taken[n], predicted[n], base / timings[n].ratio.middle) for n in runners]


def _walk(graph: Graph, rules: RuleSet, steps: int, rng: random.Random) -> Graph:
    """A graph some rewrites on, each by a rule drawn from those that match, where it matches."""
    found = MatchSet(graph, rules)
    for _ in range(steps):
        by_rule: dict[str, list[Match]] = {}
        for m in found:
            by_rule.setdefault(m.rule.name, []).append(m)
        if not by_rule:
            break
        match = rng.choice(by_rule[rng.choice(sorted(by_rule))])
        graph = graph.replace(match.edit)
        found = found.after(graph, match)
    return graph


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's; equal values share their ranks."""
    return float(np.corrcoef(_ranks(np.asarray(a)), _ranks(np.asarray(b)))[0, 1])


def _ranks(values: Array) -> Array:
    ranks: Array = (values[:, None] > values).sum(1) + (values[:, None] == values).sum(1) / 2
    return ranks


def show(name: str, found: Sequence[Variant], console: Console) -> None:
    """Prints how well they are put into order."""
    predicted, measured = [v.predicted_ms for v in found], [v.measured_ms for v in found]
    text = f"{name}: {len(found)} variants, {min(measured):.3f} to {max(measured):.3f} ms measured"
    console.print(f"{text}; rank correlation {rank_correlation(predicted, measured):.3f}", highlight=False)
