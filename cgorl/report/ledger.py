"""The ledger and the summary of a job, as plain data."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime

from cgorl.gate import ORIGINAL, Timing, Verdict
from cgorl.pipeline import Outcome
from cgorl.report.provenance import provenance
from cgorl.rules.matches import constant_bytes

LARGEST = 12
"""So many rewrites stand in the summary."""


def ledger(outcome: Outcome) -> list[dict[str, Any]]:
    """One entry a rewrite: rule, the names of its nodes, cost in ms before and after, and its share of the time as measured."""
    rows = []
    graph = outcome.start
    for k, step in enumerate(outcome.trace):
        rows.append({**step.to_json(graph), "measured": _measured(outcome, k)})
        graph = graph.replace(step.match.edit)
    return rows


def _measured(outcome: Outcome, k: int) -> dict[str, Any]:
    found = outcome.gate.shares.get(k) if outcome.gate is not None else None
    if found is not None and found.share is not None:
        return {"share": found.share.middle, "interval": found.share[1:]}
    return {"share": None, "why": found.why if found is not None else "not measured"}


def largest(outcome: Outcome, most: int) -> list[int]:
    """The numbers of the rewrites with the largest gains by the prices, the largest first; those that were measured among them."""
    trace = outcome.trace
    rank = sorted(range(len(trace)), key=lambda k: trace[k].after_ms - trace[k].before_ms)
    looked_at = outcome.gate.shares if outcome.gate is not None else {}
    return sorted(rank, key=lambda k: k not in looked_at)[:most]


def summary(outcome: Outcome) -> dict[str, Any]:
    """The job in numbers: status, nodes, cost in ms, bytes of weights, coverage, proof, seconds of each stage."""
    whole = outcome.proof.whole
    ledger_ = ledger(outcome)
    return {
        "status": outcome.status.value,
        "nodes": {"before": count(outcome.original), "simplified": count(outcome.start), "after": count(outcome.graph)},
        "cost_ms": {"initial": outcome.initial_cost_ms, "final": outcome.cost_ms, "unknown_sizes": len(outcome.unknown)},
        "weight_bytes": {"before": constant_bytes(outcome.original), "after": constant_bytes(outcome.graph)},
        "coverage": {"total": outcome.coverage.total, "touchable": outcome.coverage.touchable, "opaque": dict(outcome.coverage.opaque)},
        "simplified": dict(outcome.simplified),
        "rewrites": len(outcome.trace),
        "largest_rewrites": [ledger_[k] for k in largest(outcome, LARGEST)],
        "search": dict(outcome.search),
        "proof": {
            "rewrites": len(outcome.proof.rewrites),
            "largest_rewrite_error": max((p.error for p in outcome.proof.rewrites), default=0.0),
            "whole": None
            if whole is None
            else {
                "ok": whole.ok,
                "error": whole.error,
                "runs": whole.runs,
                "values": whole.values,
                "why": whole.why,
                "skipped": whole.skipped,
                "ties": whole.ties,
            },
            "dropped": [{"rule": rule, "why": why} for rule, why in outcome.proof.dropped],
            "unproven": [{"rule": rule, "why": why} for rule, why in outcome.proof.unproven],
            "lost": list(outcome.proof.lost),
        },
        "gate": None if outcome.gate is None else gate(outcome.gate),
        "prices": list(outcome.notes),
        "seconds": {k: round(v, 3) for k, v in outcome.seconds.items()},
    }


def gate(verdict: Verdict) -> dict[str, Any]:
    """What was measured: before and after with intervals, every candidate, and with what runtime, options and machine."""
    rows = {t.name: _timing(t) for t in verdict.timings}
    about = {"options": verdict.options, "onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__, **provenance()}
    found = {
        "kept": verdict.kept,
        "faster": verdict.faster,
        "why": verdict.why,
        "before": rows.get(ORIGINAL),
        "after": rows.get(verdict.kept),
    }
    return {**found, "measured": list(rows.values()), **about}


def _timing(t: Timing) -> dict[str, Any]:
    found = {"name": t.name, "cpu_ms": t.cpu_ms, "cpu_quartiles_ms": t.quartiles_ms, "wall_ms": t.wall_ms}
    return {**found, "times_as_fast": t.ratio.middle, "interval": t.ratio[1:], "runs": t.runs, "sessions": t.sessions}


def count(graph: Any) -> int:
    """Nodes that compute something when the saved model runs."""
    return sum(1 for n in graph.nodes.values() if not n.is_source and n.op != "SparseConstant")
