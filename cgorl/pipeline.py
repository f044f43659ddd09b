"""One job: load, simplify, search, prove, save; the same path for script, notebook and service."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from cgorl import zoo
from cgorl.certificate.trace import Proof, prove_trace
from cgorl.cost.model import CostModel, Now
from cgorl.gate import Verdict
from cgorl.gate.stage import Found, Gated, gate
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import ModelError, load, save
from cgorl.ir.ops import BODIES
from cgorl.ir.simplify import simplify
from cgorl.ir.sizes import DimsError, symbols
from cgorl.rules.coverage import Coverage, coverage
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import OPEN, Budget, Progress, Searcher
from cgorl.search.trace import Step, to_json

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


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a job gives: the optimized graph, the original, costs in ms, the trace and the proof.

    `unknown` are the values whose size the cost could not know, `files` what a job wrote, `gate` what was measured of it
    (None: nothing), `notes` what the prices rest on, `cost` the prices themselves.
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
    gate: Verdict | None = None
    notes: tuple[str, ...] = ()
    cost: CostModel | None = None

    def __repr__(self) -> str:
        """One line, however large the model is."""
        ms = f"{self.initial_cost_ms:.4g} -> {self.cost_ms:.4g} ms estimated"
        return f"Outcome({self.status.value}: {ms}, {len(self.trace)} rewrites; {self.proof.whole or 'not proven'})"

    def save(self, path: str | Path) -> list[Path]:
        """Writes the optimized model; returns the files. Raises ModelError."""
        return save(self.graph, path)

    def trace_json(self) -> dict[str, Any]:
        """The trace as JSON data, replayable from the simplified graph."""
        graph = self.start
        for step in self.trace:
            graph = graph.replace(step.match.edit)
        return to_json(self.start, graph, self.trace, self.rules)


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
        graph, trace, proof = prove_trace(model, start, found.trace, cost, dims or {}, seed, say)
    else:
        graph, trace, proof = fold_rewrites(found.graph), found.trace, Proof()
    lap("prove")
    verdict = None
    if gated is not None and graph is not model:
        say("gate", None)
        result = Found(graph, trace, proof, found.runners_up)
        best, verdict = gate(model, start, result, cost, dims or {}, gated, seed, lambda share: say("gate", share))
        graph, trace = best.graph, best.trace
        proof = best.proof if proof.ok else proof  # what was found wrong stays told
        lap("gate")
    cost_ms, before, after = _prices(model, graph, cost)
    facts: dict[str, Any] = {"expansions": found.expansions, "evaluations": found.evaluations, "stopped": found.stopped}
    facts |= {"found_ms": found.cost_ms, "found_rewrites": len(found.trace)}
    return Outcome(
        _status(graph is model, proof, verdict, found.stopped),
        graph,
        model,
        start,
        cost_ms if graph is model else found.initial_cost_ms,  # what the clean-up alone would have saved is not told as a loss
        cost_ms,
        trace,
        proof,
        coverage(model, rules),
        tidy.steps if tidy else {},
        seconds,
        facts,
        rules,
        tuple(cost.unknown(graph)),
        before_ms=before,
        after_ms=after,
        gate=verdict,
        cost=cost,
    )


def _prices(model: Graph, graph: Graph, cost: CostModel) -> tuple[float, Mapping[str, float], Mapping[str, float]]:
    """What the result costs, and both graphs by operator; an interrupt ends the measuring of what is missing, not the job."""
    try:
        return cost.cost_ms(graph), by_operator(model, cost), by_operator(graph, cost)
    except KeyboardInterrupt:
        return cost.cost_ms(graph), by_operator(model, cost), by_operator(graph, cost)


def _status(unchanged: bool, proof: Proof, verdict: Verdict | None, stopped: str) -> Status:
    if not proof.ok:
        return Status.PROOF_FAILED
    if not unchanged and (verdict is None or verdict.faster):
        return Status.OPTIMIZED
    measured = verdict is None or (verdict.timings and not verdict.why)
    return Status.OPTIMAL if measured and stopped not in OPEN else Status.UNCHANGED


def by_operator(graph: Graph, cost: CostModel) -> dict[str, float]:
    """Milliseconds by operator; an activation that its producer takes along counts with that.

    Operators with bodies (If, Loop, ...) are left out: what runs in those is not priced.
    """
    view, found = Now(graph), dict[str, float]()
    for i in graph.order():
        node = graph.nodes[i]
        if not node.is_source and node.op not in BODIES:
            label = node.label
            found[label] = found.get(label, 0.0) + cost.node_ms(view, i)
    return found


def _check_dims(model: Graph, dims: Mapping[str, int]) -> None:
    known = dict.fromkeys(symbols(model))
    known.update((d, None) for n in model.nodes.values() for t in n.types if t and t.shape for d in t.shape if isinstance(d, str))
    for name in dims:
        if name not in known:
            raise DimsError(f"the model has no dim '{name}' to give a size to" + (f"; it has {_some(list(known))}" if known else ""))


def _some(names: Sequence[str], most: int = 12) -> str:
    """The first of them, which are those of the inputs, and how many more there are: an export may have hundreds."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
