"""The ledger and the summary of a job, as plain data."""

from __future__ import annotations

from typing import Any

import onnxruntime

from cgorl.gate import Verdict
from cgorl.pipeline import Outcome
from cgorl.report.provenance import provenance
from cgorl.rules.matches import constant_bytes


def ledger(outcome: Outcome) -> list[dict[str, Any]]:
    """One entry a rewrite: rule, the names of its nodes, cost in ms before and after."""
    rows = []
    graph = outcome.start
    for step in outcome.trace:
        rows.append(step.to_json(graph))
        graph = graph.replace(step.match.edit)
    return rows


def summary(outcome: Outcome) -> dict[str, Any]:
    """The job in numbers: status, nodes, cost in ms, bytes of weights, coverage, proof, seconds of each stage."""
    whole = outcome.proof.whole
    return {
        "status": outcome.status.value,
        "nodes": {"before": count(outcome.original), "simplified": count(outcome.start), "after": count(outcome.graph)},
        "cost_ms": {"initial": outcome.initial_cost_ms, "final": outcome.cost_ms, "unknown_sizes": len(outcome.unknown)},
        "weight_bytes": {"before": constant_bytes(outcome.original), "after": constant_bytes(outcome.graph)},
        "coverage": {"total": outcome.coverage.total, "touchable": outcome.coverage.touchable, "opaque": dict(outcome.coverage.opaque)},
        "simplified": dict(outcome.simplified),
        "rewrites": len(outcome.trace),
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
    """What was measured, with what runtime, options and machine."""
    rows = [
        {"name": t.name, "cpu_ms": t.cpu_ms, "wall_ms": t.wall_ms, "times_as_fast": t.ratio.middle, "interval": t.ratio[1:], "runs": t.runs}
        for t in verdict.timings
    ]
    about = {"options": verdict.options, "onnxruntime": onnxruntime.__version__, **provenance()}
    return {"kept": verdict.kept, "faster": verdict.faster, "why": verdict.why, "measured": rows, **about}


def count(graph: Any) -> int:
    """Nodes that compute something when the saved model runs."""
    return sum(1 for n in graph.nodes.values() if not n.is_source and n.op != "SparseConstant")
