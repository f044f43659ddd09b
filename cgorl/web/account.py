"""The account of a result: what a page shows of it beside the headline, as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgorl.report.screen import decimals
from cgorl.web.labels import chosen
from cgorl.web.shown import STAGES

_SHOWN = 300
"""So many rewrites are listed one by one."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
FILES = {
    ".onnx": "the optimized model",
    ".data": "its weights: keep it beside the model",
    "trace.json": "every rewrite, to be replayed",
    "ledger.json": "cost before and after each rewrite",
    "summary.json": "all figures of this page",
    "report.html": "this page to keep: it needs no network",
}


def account(job: Mapping[str, Any]) -> dict[str, Any]:
    """Of a job (see shown.shown) that has a result.

    `measures` before and after, `proof` as sentences with whether each is good, `operators`, `rules` of the ledger summed up, `rewrites`
    one by one, `files` with what each is, `stages` with seconds, `options` chosen, `film` (whether there is one) and
    `same` (whether it is the original).
    """
    result = job["result"]
    summary = result["summary"]
    return {
        "measures": _measures(job, summary),
        "proof": _proof(summary, job["options"]),
        "operators": _operators(result.get("counts", [])),
        "rules": _rules(result["ledger"]),
        "rewrites": _rewrites(result["ledger"]),
        "more": max(0, summary["rewrites"] - _SHOWN),
        "files": [{**f, "about": FILES.get(f["name"]) or FILES.get("." + f["name"].rpartition(".")[2], "")} for f in job["files"]],
        "stages": [(STAGES.get(k, k), v) for k, v in summary["seconds"].items() if v >= 0.005],
        "options": chosen(job["options"]),
        "film": result["steps"] > 0,
        "same": not result["steps"] and summary["proof"]["whole"] is None,
    }


def _measures(job: Mapping[str, Any], summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    cost, gate, nodes, weights = summary["cost_ms"], summary["gate"], summary["nodes"], summary["weight_bytes"]
    rows = []
    if gate is not None and gate["before"] and gate["after"]:
        a, b = gate["before"], gate["after"]
        rows.append(_row("processor time, measured", a["cpu_ms"], b["cpu_ms"], "ms", 3))
        if gate["faster"]:
            rows[-1]["note"] = f"{b['times_as_fast']:.3f} times as fast ({b['interval'][0]:.3f} to {b['interval'][1]:.3f})"
        rows.append(_row("time by the clock, measured", a["wall_ms"], b["wall_ms"], "ms", 3))
    digits = decimals(cost["initial"])
    rows.append(_row("time, estimated", cost["initial"], cost["final"], "ms", digits))
    came = [c[3] for c in job["result"].get("counts", [])]
    if None not in came and abs(sum(came) - cost["initial"]) > 1e-3 * cost["initial"]:
        rows[-1]["note"] = f"before: as cleaned up; the model as it came takes {sum(came):,.{digits}f} ms"
    rows.append(_row("operators", nodes["before"], nodes["after"], "", 0))
    rows.append(_size("weights", weights["before"], weights["after"]))
    written = sum(f["bytes"] for f in job["files"] if not f["name"].endswith((".json", ".png", ".html")))
    if job["source"]["bytes"] and written:
        rows.append(_size("file", job["source"]["bytes"], written))
    return rows


def _size(name: str, before: float, after: float) -> dict[str, Any]:
    small = max(before, after) < 1e6
    return _row(name, before / 1e3, after / 1e3, "kB", 1) if small else _row(name, before / 1e6, after / 1e6, "MB", 2)


def _row(name: str, before: float, after: float, unit: str, digits: int) -> dict[str, Any]:
    most = max(before, after) or 1
    share = after / before - 1 if before else 0.0
    told = "" if not before or abs(share) < 5e-5 else f"{100 * share:+.1f} %".replace("-", "−")
    unit = f" {unit}" if unit else ""
    return {
        "name": name,
        "before": f"{before:,.{digits}f}{unit}",
        "after": f"{after:,.{digits}f}{unit}",
        "shares": (before / most, after / most),
        "change": told,
        "tone": "good" if share < -5e-5 else "more" if share > 5e-5 else "",
        "note": "",
    }


def _proof(summary: Mapping[str, Any], options: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """What is proven and what is not, a sentence each."""
    proof, whole = summary["proof"], summary["proof"]["whole"]
    if whole is None and not proof["rewrites"] and not proof["dropped"]:
        return [(True, "The model is the original, to the bit: there is nothing to prove.")]
    found: list[tuple[bool, str]] = []
    if n := proof["rewrites"]:
        each = "The one rewrite was" if n == 1 else f"Each of the {n:,} rewrites was"
        error = proof["largest_rewrite_error"]
        found.append((True, f"{each} run again by itself, in float64 on the real weights: {_within(error)}."))
    if whole is not None and not whole["ok"]:
        found.append((False, f"The whole model differs from the original: {whole['why']}."))
    elif whole is not None and whole["runs"]:
        text = f"The whole model was run against the original on {whole['runs']} random inputs"
        text += f", with {whole['values']} values in it watched: {_within(whole['error'])}."
        found.append((True, text))
        if whole["ties"]:
            found.append((True, f"{whole['ties']} choices between equal values fell otherwise, as they may in the original itself."))
    elif whole is not None:
        found.append((False, f"The whole model could not be run: {whole['skipped']}."))
    found.extend((False, f"Taken out: {d['rule']}, {d['why']}.") for d in proof["dropped"])
    found.extend((False, f"Taken out: {rule}, which rested on one that was.") for rule in proof["lost"])
    found.extend((True, f"Left out, as it could not be proven: {d['rule']}, {d['why']}.") for d in proof["unproven"])
    found.append((True, "Names, order and types of inputs and outputs are those of the original."))
    if options.get("dims"):
        found.append((True, "Dynamic axes stay dynamic: the file takes every size that the original takes."))
    return found


def _within(error: float) -> str:
    if not error:
        return "equal to the bit"
    digit, _, power = f"{error:.0e}".partition("e")
    return f"the largest difference is {digit}\u202f×\u202f10{str(int(power)).translate(_RAISED)} of a value's scale"


def _operators(counts: list[list[Any]]) -> list[dict[str, Any]]:
    """Operators before and after: those that changed first; `counts` has name, nodes and ms of both."""
    most = max((max(c[1], c[2]) for c in counts), default=1) or 1
    rows = [
        {"name": c[0], "before": c[1], "after": c[2], "shares": (c[1] / most, c[2] / most), "ms": (c[3], c[4]), "changed": c[1] != c[2]}
        for c in counts
    ]
    return sorted(rows, key=lambda r: (not r["changed"], -max(r["before"], r["after"])))


def _rules(ledger: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each rule with how often it was applied and what that saved by the prices, the most first."""
    found: dict[str, dict[str, Any]] = {}
    for entry in ledger:
        row = found.setdefault(entry["rule"], {"rule": entry["rule"], "times": 0, "saved": 0.0})
        row["times"] += 1
        row["saved"] += entry["before_ms"] - entry["after_ms"]
    most = max((abs(r["saved"]) for r in found.values()), default=0.0) or 1.0
    digits = decimals(ledger[0]["before_ms"]) if ledger else 3
    rows = sorted(found.values(), key=lambda r: -r["saved"])
    return [{**r, "share": max(0.0, r["saved"]) / most, "told": _signed(r["saved"], digits)} for r in rows]


def _rewrites(ledger: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    digits = decimals(ledger[0]["before_ms"]) if ledger else 3
    rows = []
    for k, entry in enumerate(ledger[:_SHOWN]):
        measured = entry["measured"]
        share = f"{100 * measured['share']:.1f} %" if measured.get("share") is not None else ""
        saved = _signed(entry["before_ms"] - entry["after_ms"], digits)
        rows.append(
            {
                "number": k + 1,
                "rule": entry["rule"],
                "where": entry["names"][0],
                "saved": saved,
                "left": f"{entry['after_ms']:.{digits}f}",
                "measured": share,
            }
        )
    return rows


def _signed(saved: float, digits: int) -> str:
    """What a rewrite changes, in ms: less is a minus."""
    text = f"{abs(saved):.{digits}f}"
    return text if not float(text) else f"−{text}" if saved > 0 else f"+{text}"
