"""One job: load, simplify, search, prove, save; the same path for script, notebook and service."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from cgorl import gate, zoo
from cgorl.certificate.equivalence import Equivalence, compare
from cgorl.certificate.inputs import draws, feeds
from cgorl.certificate.rewrite import RewriteProof, prove_rewrite
from cgorl.cost.model import CostModel, Now
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import ModelError, load, save
from cgorl.ir.simplify import simplify
from cgorl.ir.sizes import DimsError, symbols
from cgorl.rules.coverage import Coverage, coverage
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import OPEN, Budget, Progress, Searcher
from cgorl.search.trace import Step, repriced, to_json, without

MIN_OPSET = 7


class Refused(ValueError):
    """A model that is valid but that the engine will not optimize; the message says why."""


class Status(Enum):
    """How a job ended."""

    OPTIMIZED = "optimized"
    OPTIMAL = "already optimal"
    UNCHANGED = "nothing found within the budget"
    REFUSED = "refused"
    PROOF_FAILED = "proof failed"


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


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a job gives: the optimized graph, the original, costs in ms, the trace and the proof.

    `unknown` are the values whose size the cost could not know, `files` what a job wrote, `gate` what was measured of it
    (None: nothing), `notes` what the prices rest on.
    """

    status: Status
    graph: Graph
    original: Graph
    start: Graph
    initial_cost_ms: float
    cost_ms: float
    trace: tuple[Step, ...]
    proof: Proof
    coverage: Coverage
    simplified: Mapping[str, int]
    seconds: Mapping[str, float]
    search: Mapping[str, Any] = field(default_factory=dict)
    rules: RuleSet = field(default_factory=RuleSet)
    unknown: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    before_ms: Mapping[str, float] = field(default_factory=dict)
    after_ms: Mapping[str, float] = field(default_factory=dict)
    gate: gate.Verdict | None = None
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> list[Path]:
        """Writes the optimized model; returns the files. Raises ModelError."""
        return save(self.graph, path)

    def trace_json(self) -> dict[str, Any]:
        """The trace as JSON data, replayable from the simplified graph."""
        graph = self.start
        for step in self.trace:
            graph = graph.replace(step.match.edit)
        return to_json(self.start, graph, self.trace, self.rules)


@dataclass(frozen=True, slots=True)
class Gated:
    """How a result is measured: for how long, at which session level, and the size of symbols that have none."""

    seconds: float = 20.0
    level: str = "all"
    unbound: int | None = None


Stage = Callable[[str, Progress | float | None], None]
"""Told of each stage by name, with the search's progress or the share done."""


def load_model(name: str | Path, parameters: Mapping[str, Any] | None = None) -> Graph:
    """The graph in a file, or the zoo's graph of that name built with `parameters`. Raises ModelError and ZooError."""
    text = str(name)
    if text in zoo.names() and not Path(text).is_file():
        return from_proto(zoo.build(text, **(parameters or {})))
    if parameters:
        raise ModelError(f"'{text}' is a file: parameters ({', '.join(parameters)}) are for graphs of the zoo")
    check_name(text)
    return load(text)


def check_name(name: str) -> None:
    """Raises ZooError for what is neither a file nor a path to one nor a name of the zoo, with the names that there are."""
    if name not in zoo.names() and not Path(name).exists() and "/" not in name and "." not in name:
        zoo.defaults(name)  # no such name: says what there is


def check_model(model: Graph, dims: Mapping[str, int]) -> None:
    """Raises Refused for a model that the engine will not optimize, and DimsError for a size of a symbol that it does not have."""
    if "" in model.opsets and model.opset < MIN_OPSET:
        raise Refused(
            f"the model uses opset {model.opset}; opsets before {MIN_OPSET} broadcast in other ways: convert it to {MIN_OPSET} or newer"
        )
    if model.frame.model.training_info:
        raise Refused("the model carries training_info, which speaks of its nodes by name: remove that, or keep the model as it is")
    _check_dims(model, dims)


def optimize(
    model: Graph,
    rules: RuleSet,
    cost: CostModel,
    search: Searcher,
    budget: Budget,
    clean: bool = True,
    prove: bool = True,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    tell: Stage | None = None,
    gated: Gated | None = None,
) -> Outcome:
    """The optimized graph with its proof, measured if `gated`. Raises Refused, GraphError, and DimsError for a symbol without a size."""
    say: Stage = tell or (lambda stage, progress: None)
    seconds: dict[str, float] = {}
    check_model(model, dims or {})
    clock = time.monotonic()

    def lap(stage: str) -> None:
        nonlocal clock
        now = time.monotonic()
        seconds[stage] = now - clock
        clock = now

    say("simplify", None)
    tidy = simplify(model) if clean else None
    start = model if tidy is None else tidy.graph
    lap("simplify")
    say("price", None)
    cost.cost_ms(start)  # what has to be measured for it is no part of the search
    lap("price")
    say("search", None)
    found = search(start, rules, cost, budget, lambda p: say("search", p))
    lap("search")
    if not found.trace and not (tidy and tidy.steps):
        graph, trace, proof = model, found.trace, Proof()
    elif prove:
        graph, trace, proof = _proven(model, start, found.trace, cost, dims or {}, seed, say)
    else:
        graph, trace, proof = fold_rewrites(found.graph), found.trace, Proof()
    lap("prove")
    verdict = None
    if gated is not None and graph is not model and proof.ok:
        say("gate", None)
        graph, trace, verdict = _measured(model, start, graph, trace, dims or {}, gated, seed)
        lap("gate")
    unchanged = graph is model
    nothing = Status.UNCHANGED if found.stopped in OPEN else Status.OPTIMAL
    status = Status.PROOF_FAILED if not proof.ok else nothing if unchanged else Status.OPTIMIZED
    facts = {"expansions": found.expansions, "evaluations": found.evaluations, "stopped": found.stopped}
    return Outcome(
        status,
        graph,
        model,
        start,
        found.initial_cost_ms,
        cost.cost_ms(graph),
        trace,
        proof,
        coverage(model, rules),
        tidy.steps if tidy else {},
        seconds,
        facts,
        rules,
        tuple(cost.unknown(graph)),
        before_ms=by_operator(model, cost),
        after_ms=by_operator(graph, cost),
        gate=verdict,
    )


def _measured(
    model: Graph, start: Graph, final: Graph, trace: tuple[Step, ...], dims: Mapping[str, int], how: Gated, seed: int
) -> tuple[Graph, tuple[Step, ...], gate.Verdict]:
    """The best measured of original, simplified graph, result and prefixes of the trace; a prefix is proven as a whole first."""
    graphs, here = {gate.ORIGINAL: model, gate.SIMPLIFIED: fold_rewrites(start)}, start
    lengths = {n: "result" if n == len(trace) else f"{n} rewrites" for n in gate.prefixes([s.before_ms - s.after_ms for s in trace])}
    for n, step in enumerate(trace, 1):
        here = here.replace(step.match.edit)
        if n in lengths:
            graphs[lengths[n]] = final if n == len(trace) else fold_rewrites(here)
    sizes = {s: dims.get(s, how.unbound or 1) for s in symbols(model)}
    given = feeds(model, sizes, np.random.default_rng(seed))
    while True:
        runners, failed = gate.runners(graphs, given, how.level)
        if gate.ORIGINAL not in runners:
            return model, (), gate.Verdict(gate.ORIGINAL, (), how.level, f"the original does not run: {failed[gate.ORIGINAL]}")
        verdict = gate.judge(runners, how.seconds, seed, f"onnxruntime, 1 thread, level {how.level}")
        n = next((n for n, name in lengths.items() if name == verdict.kept), 0)
        if verdict.kept in (gate.ORIGINAL, "result") or compare(model, graphs[verdict.kept], dims, taps=True).ok:
            return graphs[verdict.kept], trace[:n], verdict
        del graphs[verdict.kept]  # its rewrites agree one by one, and all together, but not these


def by_operator(graph: Graph, cost: CostModel) -> dict[str, float]:
    """Milliseconds by operator; an activation that its producer takes along counts with that."""
    view, found = Now(graph), dict[str, float]()
    for i in graph.order():
        node = graph.nodes[i]
        if not node.is_source:
            label = node.label
            found[label] = found.get(label, 0.0) + cost.node_ms(view, i)
    return found


def _check_dims(model: Graph, dims: Mapping[str, int]) -> None:
    known = dict.fromkeys(symbols(model))
    known.update((d, None) for n in model.nodes.values() for t in n.types if t and t.shape for d in t.shape if isinstance(d, str))
    for name in dims:
        if name not in known:
            raise DimsError(f"the model has no dim '{name}' to give a size to" + (f"; it has {', '.join(known)}" if known else ""))


def _proven(
    model: Graph, start: Graph, trace: tuple[Step, ...], cost: CostModel, dims: Mapping[str, int], seed: int, say: Stage
) -> tuple[Graph, tuple[Step, ...], Proof]:
    """The graph after those rewrites that are proven; the guilty of a difference in the whole are found by bisection.

    Where some are dropped, those that stay may have come out otherwise, and are proven anew.
    """
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
