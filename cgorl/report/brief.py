"""Brief: a job that has ended, in short: what a panel and a page show of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cgorl.report.screen import decimals


def brief(end: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The end of a job (see cgorl.background) as data to show: a headline, rows before and after, lines, files with their bytes."""
    summary = end["summary"]
    cost, nodes, weights, gate = summary["cost_ms"], summary["nodes"], summary["weight_bytes"], summary["gate"]
    digits = decimals(cost["initial"])
    rows = [_row("estimated cost, ms", cost["initial"], cost["final"], digits)]
    if gate is not None and gate["before"] and gate["after"]:
        rows.append(_row("measured CPU time, ms", gate["before"]["cpu_ms"], gate["after"]["cpu_ms"], 3))
    rows.append(_row("nodes", nodes["before"], nodes["after"], 0))
    rows.append(_row("weights, MB", weights["before"] / 1e6, weights["after"] / 1e6, 2))
    operators = [_row(op, before, after, digits) for op, before, after in end["operators"]]
    change = f" ({_percent(cost['initial'], cost['final'])})" if cost["initial"] else ""
    return {
        "headline": f"{summary['status']}: {cost['initial']:.{digits}f} → {cost['final']:.{digits}f} ms estimated{change}",
        "status": summary["status"],
        "proven": _proven(summary["proof"]),
        "rows": rows,
        "operators": [r for r in operators if r[3]][:12],
        "lines": end["lines"],
        "rewrites": end["rewrites"],
        "folder": str(folder),
        "files": [[Path(name).name, size] for name, size in end["files"]],
    }


def _proven(proof: Mapping[str, Any]) -> str:
    whole = proof["whole"]
    if whole is None:
        return "nothing was changed: there is nothing to prove"
    if not whole["ok"]:
        return f"NOT EQUAL: {whole['why']}"
    if not whole["runs"]:
        return f"not run as a whole: {whole['skipped']}"
    return f"equal on {whole['runs']} inputs (largest error {whole['error']:.0e}); each rewrite proven by itself"


def _row(name: str, before: float, after: float, digits: int) -> list[str]:
    return [name, f"{before:,.{digits}f}", f"{after:,.{digits}f}", _percent(before, after) if before != after else ""]


def _percent(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.1f} %" if before else "new"
