"""Random walks through the whole library: every rewrite is proven, and the whole still computes the same."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from cgorl.certificate.equivalence import compare
from cgorl.certificate.inputs import draws
from cgorl.certificate.rewrite import prove_rewrite
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.rules.matches import MatchSet
from tests.rules.test_matches import MODELS, RULES, SMALL, real, small


def walked(graph: Graph, steps: int, seed: int) -> Graph:
    rng = random.Random(seed)
    found = MatchSet(graph, RULES)
    sizes = draws(graph, {}, 2)
    for k in range(steps):
        choices = list(found)
        if not choices:
            break
        match = rng.choice(choices)
        proof = prove_rewrite(graph, match, sizes, np.random.default_rng((seed, k)))
        assert proof.ok, (match.rule.name, proof.why)
        graph = graph.replace(match.edit)
        found = found.after(graph, match)
    return graph


@pytest.mark.parametrize("name", sorted(set(SMALL) - {"nasnet_a", "nasrnn"}))
def test_a_walk_of_twenty_rewrites(name: str) -> None:
    graph = small(name)
    whole = compare(graph, fold_rewrites(walked(graph, 20, 0)), taps=True, seeds=1)
    assert whole.ok and whole.runs, whole.why


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")) or [None], ids=lambda p: p.stem if p else "absent")
def test_a_walk_of_a_hundred_rewrites_on_real_models(path: Path | None, tmp_path: Path) -> None:
    model = real(path, tmp_path)
    whole_proof = compare(model, fold_rewrites(walked(simplify(model).graph, 100, 1)), taps=True)
    assert whole_proof.ok and whole_proof.runs, whole_proof.why
