"""A search's trace, proven: each rewrite by itself, then the whole; the guilty ones of a difference are found and dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cgorl.certificate.equivalence import Equivalence, compare
from cgorl.certificate.inputs import draws
from cgorl.certificate.rewrite import RewriteProof, prove_rewrite
from cgorl.cost.model import CostModel
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.graph import Graph
from cgorl.search.trace import Step, repriced, without


@dataclass(frozen=True, slots=True)
class Proof:
    """Both levels of proof; rewrites (rule, reason) that were `dropped` as wrong or `unproven`, and what rested on them."""

    rewrites: tuple[RewriteProof, ...] = ()
    whole: Equivalence | None = None
    dropped: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()
    unproven: tuple[tuple[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong: nothing is `dropped` and the whole agrees."""
        return not self.dropped and (self.whole is None or self.whole.ok)


def prove_trace(
    model: Graph,
    start: Graph,
    trace: tuple[Step, ...],
    cost: CostModel,
    dims: Mapping[str, int],
    seed: int,
    tell: Callable[[str, float | None], None] | None = None,
) -> tuple[Graph, tuple[Step, ...], Proof]:
    """The graph after those rewrites that are proven; the guilty of a difference in the whole are found by bisection.

    Where some are dropped, those that stay may have come out otherwise, and are proven anew.
    """
    say = tell or (lambda stage, share: None)
    sizes = draws(start, dims, 2)
    guilty: dict[int, str] = {}
    proofs: dict[int, RewriteProof] = {}
    while True:
        _, done, lost = without(start, trace, guilty) if guilty else (start, dict(enumerate(trace)), [])
        here = start
        for n, (k, step) in enumerate(done.items()):
            say("prove", n / (len(done) + 1))
            proofs[k] = prove_rewrite(here, step.match, sizes, np.random.default_rng((seed, k)))
            here = here.replace(step.match.edit)
        if unproven := {k: proofs[k].why for k in done if not proofs[k].ok}:
            guilty.update(unproven)
            continue
        say("compare", None)
        final = fold_rewrites(here)
        whole = compare(model, final, dims, taps=True)
        if whole.ok or not done:
            break
        if not compare(model, fold_rewrites(start), dims, taps=True).ok:
            lost, done = [*lost, *done], {}
            break
        guilty[_first_bad(model, start, trace, list(done), guilty, dims)] = f"the whole model: {whole.why}"
    wrong = {k for k in guilty if k not in proofs or proofs[k].ok or proofs[k].refuted}  # one proven by itself failed the whole
    dropped = tuple((trace[k].match.rule.name, guilty[k]) for k in sorted(wrong))
    unproven_ = tuple((trace[k].match.rule.name, guilty[k]) for k in sorted(guilty.keys() - wrong))
    left = tuple(trace[k].match.rule.name for k in sorted(lost))
    shown = tuple(proofs[k] for k in sorted(proofs))
    if not whole.ok:  # without any rewrite: the clean-up itself is at fault
        return model, (), Proof(shown, whole, (*dropped, ("simplify", whole.why)), left, unproven_)
    return final, repriced(start, tuple(done.values()), cost) if guilty else trace, Proof(shown, whole, dropped, left, unproven_)


def _first_bad(
    model: Graph, start: Graph, trace: tuple[Step, ...], done: list[int], guilty: Mapping[int, str], dims: Mapping[str, int]
) -> int:
    """Number of the first rewrite after which the whole differs from the original; before the first it does not."""
    low, high = 0, len(done)
    while high - low > 1:
        middle = (low + high) // 2
        graph, _, _ = without(start, trace, set(guilty) | set(done[middle:]))
        if compare(model, fold_rewrites(graph), dims, taps=True).ok:
            low = middle
        else:
            high = middle
    return done[high - 1]
