"""The gate as a stage of a job: which graphs are run, how the winner is proven, and what an interrupt leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime as ort

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
from cgorl.search.way import Way

_MAKING = 0.25
_MOST_BYTES = 3 << 30
"""All sessions together hold no more weights than this, original and result apart."""


@dataclass(frozen=True, slots=True)
class Gated:
    """How a result is measured: for how long, its rewrites for how long, at which session level, the size of symbols that have none."""

    seconds: float = 20.0
    level: str = "all"
    unbound: int | None = None
    shares: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a job would hand back: the graph, the steps to it from the cleaned-up graph, their proof, and the next best of its search."""

    graph: Graph
    trace: tuple[Step, ...]
    proof: Proof
    runners_up: tuple[Way, ...] = ()


def gate(
    model: Graph,
    start: Graph,
    found: Found,
    cost: CostModel,
    dims: Mapping[str, int],
    how: Gated,
    seed: int = 0,
    tell: Callable[[float], None] | None = None,
) -> tuple[Found, Verdict]:
    """The best measured of the original `model`, its cleaned-up form `start`, `found`, and what else the trace offers.

    What `found` does not prove is proven before it wins, unless nothing was. An interrupt keeps what is measured by then.
    """
    sizes = {s: dims.get(s, how.unbound or 1) for s in symbols(model)}
    where = f"onnxruntime {ort.__version__} on the CPU, level {how.level}, 1 thread without spinning"
    options = where + "".join(f", {k}={v}" for k, v in sizes.items())
    original = Found(model, (), Proof())
    made: list[Verdict] = []
    begin = time.monotonic()
    with TemporaryDirectory(prefix="cgorl-") as folder:
        try:
            runs, pool, given, failed = _ready(model, start, found, sizes, how, seed, Path(folder))
            while True:
                names = affordable({n: r.took_ms + 0.75 * r.made_ms for n, r in runs.items()}, how.seconds)
                if not names:
                    return original, Verdict(ORIGINAL, (), options, failed or _too_short(runs, how.seconds))
                even(runs.values())
                left, asked = how.seconds - (time.monotonic() - begin), {n: runs[n] for n in names}
                made.append(judge(asked, left, seed, options, lambda name: runs[name].again(), tell))
                kept = pool[made[-1].kept]
                done = _proven(model, start, kept, found, cost, dims, seed)
                if done is not None:
                    break
                del pool[kept.name], runs[kept.name]  # its rewrites agree one by one, and all together, but not these
                failed, begin = f"'{kept.name}' could not be proven", time.monotonic()
        except RunError as e:
            return original, Verdict(ORIGINAL, (), options, f"the original does not run: {e}")
        except KeyboardInterrupt:
            said = "anything was measured" if not made else f"'{made[-1].kept}' was proven"
            timings = made[-1].timings if made else ()
            return original, Verdict(ORIGINAL, timings, options, f"interrupted before {said}")
        verdict = made[-1]
        if verdict.faster and done.trace and not verdict.why:
            pair = runs[ORIGINAL], runs[kept.name]
            runs.clear()
            with suppress(KeyboardInterrupt):
                saved = shares(start, done.trace, pair, given, how.level, how.shares, Path(folder), seed, tell)
                verdict = replace(verdict, shares=saved)
    return done, verdict


def _original(model: Graph, sizes: Mapping[str, int], level: str, seed: int, path: Path) -> tuple[Run, dict[str, Array]]:
    """The original, ready to run, and what it is fed: random numbers, else ones or zeros for models that those break."""
    why = ""
    for mode in ("random", "ones", "zeros"):
        try:
            given = feeds(model, sizes, np.random.default_rng(seed), mode)
            return runner(model, given, path, level), given
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
    yield from candidates(start, found.trace, found.runners_up)


def _ready(
    model: Graph, start: Graph, found: Found, sizes: Mapping[str, int], how: Gated, seed: int, folder: Path
) -> tuple[dict[str, Run], dict[str, Candidate], dict[str, Array], str]:
    """The original and as many candidates as there is time and room for, ready to run; what they are fed; why the result is not there.

    Raises RunError if the original does not run.
    """
    begin = time.monotonic()
    original, given = _original(model, sizes, how.level, seed, folder / "original.onnx")
    runs, pool = {ORIGINAL: original}, {ORIGINAL: Candidate(ORIGINAL, model, ())}
    failed, held = "", 0
    for made in _others(model, start, found):
        late = time.monotonic() - begin > _MAKING * how.seconds
        held += sum(n.tensor.nbytes for n in made.graph.nodes.values() if n.holds_tensor)
        if made.name not in (RESULT, SIMPLIFIED) and (late or held > _MOST_BYTES):
            break
        try:
            runs[made.name] = runner(made.graph, given, folder / f"{len(runs)}.onnx", how.level)
            pool[made.name] = made
        except RunError as e:
            failed = failed or f"the {made.name} does not run: {e}"
    return runs, pool, given, failed


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
    need = 2 * LEAST * sum(r.took_ms + 0.75 * r.made_ms for r in list(runs.values())[:2]) / 1000
    enough = max(1, round(1.2 * need))
    return f"a run takes {runs[ORIGINAL].took_ms / 1000:.3g} s, so {seconds:g} s tell nothing: gate_seconds={enough} would"
