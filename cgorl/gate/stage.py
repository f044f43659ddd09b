"""The gate as a stage of a job: which graphs are run, how the winner is proven, and what an interrupt leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cgorl.certificate.equivalence import compare
from cgorl.certificate.inputs import feeds
from cgorl.certificate.trace import Proof, prove_trace
from cgorl.cost.model import CostModel
from cgorl.gate.candidates import RESULT, Candidate, candidates
from cgorl.gate.judge import ORIGINAL, SIMPLIFIED, Verdict, judge
from cgorl.gate.runner import Run, even, runner
from cgorl.gate.shares import shares
from cgorl.gate.timing import LEAST, affordable
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.graph import Graph
from cgorl.ir.run import RunError
from cgorl.ir.sizes import symbols
from cgorl.ir.tensor import Array
from cgorl.search.trace import Step, repriced

_MAKING = 0.25
_MOST_BYTES = 3 << 30
"""All sessions together hold no more weights than this, original and result apart."""

Tell = Callable[[float | None], None]


@dataclass(frozen=True, slots=True)
class Gated:
    """How a result is measured: for how long, its rewrites for how long, at which session level, the size of symbols that have none."""

    seconds: float = 20.0
    level: str = "all"
    unbound: int | None = None
    shares: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a job would hand back: the graph, the steps to it from the cleaned-up graph, and their proof."""

    graph: Graph
    trace: tuple[Step, ...]
    proof: Proof


def gate(
    model: Graph,
    start: Graph,
    found: Found,
    cost: CostModel,
    dims: Mapping[str, int],
    how: Gated,
    seed: int = 0,
    tell: Tell | None = None,
) -> tuple[Found, Verdict]:
    """The best measured of the original `model`, its cleaned-up form `start`, `found`, and what else the trace offers.

    What `found` does not prove is proven before it wins, unless nothing was. An interrupt keeps what is measured by then.
    """
    say: Tell = tell or (lambda share: None)
    sizes = {s: dims.get(s, how.unbound or 1) for s in symbols(model)}
    options = f"onnxruntime, 1 thread, level {how.level}" + "".join(f", {k}={v}" for k, v in sizes.items())
    original = Found(model, (), Proof())
    runs: dict[str, Run] = {}
    pool: dict[str, Candidate] = {ORIGINAL: Candidate(ORIGINAL, model, ())}
    begin = time.monotonic()
    try:
        runs[ORIGINAL], given = _original(model, sizes, how.level, seed)
        failed = _ready(pool, runs, _others(model, start, found), given, how, begin)
    except RunError as e:
        return original, Verdict(ORIGINAL, (), options, f"the original does not run: {e}")
    except KeyboardInterrupt:
        return original, Verdict(ORIGINAL, (), options, "interrupted before anything was measured")
    while True:
        names = affordable({n: r.took_ms for n, r in runs.items()}, how.seconds)
        if not names:
            return original, Verdict(ORIGINAL, (), options, failed or _too_short(runs, how.seconds))
        even(runs.values())
        verdict = judge({n: runs[n] for n in names}, how.seconds - (time.monotonic() - begin), seed, options, say)
        kept = pool[verdict.kept]
        try:
            done = _proven(model, start, kept, found, cost, dims, seed)
        except KeyboardInterrupt:
            return original, replace(verdict, kept=ORIGINAL, why=f"interrupted while '{kept.name}' was being proven")
        if done is not None:
            break
        del pool[kept.name], runs[kept.name]  # its rewrites agree one by one, and all together, but not these
        failed = f"'{kept.name}' could not be proven"
        begin = time.monotonic()
    runs.clear()
    if verdict.faster and done.trace and not verdict.why:
        say(None)
        saved = shares(model, start, done.graph, done.trace, given, how.level, how.shares, seed, say)
        verdict = replace(verdict, shares=saved)
    return done, verdict


def _original(model: Graph, sizes: Mapping[str, int], level: str, seed: int) -> tuple[Run, dict[str, Array]]:
    """The original, ready to run, and what it is fed: random numbers, else ones or zeros for models that those break."""
    why = ""
    for mode in ("random", "ones", "zeros"):
        try:
            given = feeds(model, sizes, np.random.default_rng(seed), mode)
            return runner(model, given, level), given
        except RunError as e:
            why = why or str(e)
        except ValueError as e:  # an input that is no tensor
            raise RunError(str(e)) from None
    raise RunError(why)


def _others(model: Graph, start: Graph, found: Found) -> Iterator[Candidate]:
    if not found.trace:
        yield Candidate(SIMPLIFIED, found.graph, ())
        return
    yield Candidate(RESULT, found.graph, found.trace)
    if start.key != model.key:
        yield Candidate(SIMPLIFIED, fold_rewrites(start), ())
    yield from candidates(start, found.trace)


def _ready(
    pool: dict[str, Candidate], runs: dict[str, Run], others: Iterator[Candidate], given: Mapping[str, Array], how: Gated, begin: float
) -> str:
    """Readies candidates to run while there is time and room; what the runtime said of the result, if it does not run."""
    failed, held = "", 0
    for made in others:
        late = time.monotonic() - begin > _MAKING * how.seconds
        held += sum(n.tensor.nbytes for n in made.graph.nodes.values() if n.holds_tensor)
        if made.name not in (RESULT, SIMPLIFIED) and (late or held > _MOST_BYTES):
            break
        try:
            runs[made.name] = runner(made.graph, given, how.level)
            pool[made.name] = made
        except RunError as e:
            failed = failed or f"the {made.name} does not run: {e}"
    return failed


def _proven(model: Graph, start: Graph, kept: Candidate, found: Found, cost: CostModel, dims: Mapping[str, int], seed: int) -> Found | None:
    """What to hand back for a candidate, None if its proof fails. Where `found` was not proven, nothing is."""
    if kept.graph is found.graph:
        return found
    if kept.graph is model:
        return Found(model, (), found.proof if found.proof.dropped else Proof())
    if found.proof.whole is None:
        return Found(kept.graph, repriced(start, kept.trace, cost), found.proof)
    if kept.anew:
        graph, trace, proof = prove_trace(model, start, repriced(start, kept.trace, cost), cost, dims, seed)
        return Found(graph, trace, proof) if proof.ok and len(trace) == len(kept.trace) else None
    whole = compare(model, kept.graph, dims, taps=True)
    if not whole.ok:
        return None
    proof = replace(found.proof, whole=whole)
    if len(proof.rewrites) == len(found.trace):
        proof = replace(proof, rewrites=proof.rewrites[: len(kept.trace)])
    return Found(kept.graph, kept.trace, proof)


def _too_short(runs: Mapping[str, Run], seconds: float) -> str:
    need = 2 * LEAST * sum(r.took_ms for r in list(runs.values())[:2]) / 1000
    return f"a run takes {runs[ORIGINAL].took_ms / 1000:.3g} s, so {seconds:g} s tell nothing: gate_seconds={need * 1.2:.0f} would"
