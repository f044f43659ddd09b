"""What is encoded once for many nodes is what each would have been encoded to by itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from cgorl.agent.batch import batch, distinct_matches, nodes
from cgorl.agent.encoder import KINDS
from cgorl.agent.shared import distinct, share
from cgorl.env.observation import Observation
from cgorl.env.rewrite import RewriteEnv, Start
from tests.agent.test_policy import RULES, policy
from tests.search.test_trace import cost
from tests.texts import small


@pytest.fixture(scope="module")
def seen() -> list[Observation]:
    env, rng = RewriteEnv([Start.of(small("inception_v3"), RULES, cost())]), random.Random(0)
    found = [env.observation]
    for _ in range(5):
        found.append(env.step(rng.randrange(len(env.matches)))[0])
    return found


def apart(seen: list[Observation]) -> list[Observation]:
    """The same, with no two nodes and no two matches taken to be alike."""
    rng = np.random.default_rng(0)

    def keys(count: int) -> Any:
        return rng.integers(1, 2**63, count, dtype=np.uint64)

    return [o._replace(key_N=keys(len(o.ids_N)), key_M=keys(len(o.rule_M))) for o in seen]


@pytest.mark.parametrize("kind", KINDS)
def test_judgements_and_gradients_are_those_of_all_nodes_apart(kind: str, seen: list[Observation]) -> None:
    p = policy(kind)
    found = []
    for given in (seen, apart(seen)):
        b = batch(given)
        j = p(b)
        p.zero_grad()
        (j.logp_A[b.flat(torch.zeros(b.size, dtype=torch.long))].sum() + j.value_B.sum()).backward()
        found.append((j.logp_A.detach(), j.value_B.detach(), [q.grad.clone() for q in p.parameters() if q.grad is not None]))
    for a, b in zip(found[0][:2], found[1][:2], strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    for a, b in zip(found[0][2], found[1][2], strict=True):
        assert torch.allclose(a, b, atol=1e-4 + 1e-4 * float(b.abs().max()))


def test_few_of_many_are_made(seen: list[Observation]) -> None:
    s, b = share(nodes(seen), 3), batch(seen)
    sizes = [len(s.op_U), *(len(level.own_U) for level in s.levels)]
    assert sizes == sorted(sizes) and sizes[-1] < 0.5 * len(s.of_N)
    assert len(distinct_matches(b, s.key_N)[0]) < 0.7 * b.rule_M.shape[0]
    whole = share(nodes(apart(seen)), 3)
    assert [len(level.own_U) for level in whole.levels] == [len(whole.of_N)] * 3


def test_alike_are_those_with_equal_neighbourhoods_alone(seen: list[Observation]) -> None:
    """At each level, nodes share a row if and only if their rows below and those of whom they hear are the same."""
    n = nodes(seen)
    for layers in (1, 2):
        below, here = share(n, layers - 1), share(n, layers)
        at = below.of_N.numpy() if layers > 1 else distinct(n.key_N)[1]
        told: list[list[Any]] = [[int(k)] for k in at]
        for a, b, port in zip(n.src_E, n.dst_E, n.port_E, strict=True):
            told[b].append((1, int(at[a]), int(port)))
            told[a].append((2, int(at[b]), int(port)))
        forms = [(t[0], *sorted(t[1:])) for t in told]
        rows = here.of_N.tolist()
        assert len(set(zip(rows, forms, strict=True))) == len(set(forms)) or layers == 1
        assert len(set(rows)) >= len(set(forms)) and all(
            len({f for f, r in zip(forms, rows, strict=True) if r == k}) == 1 for k in set(rows)
        )


def test_distinct() -> None:
    rows, of = distinct(np.array([7, 3, 7, 9, 3], np.uint64))
    assert rows.tolist() == [0, 1, 3] and of.tolist() == [0, 1, 0, 2, 1]
    assert [x.tolist() for x in distinct(np.array([], np.uint64))] == [[], []]
