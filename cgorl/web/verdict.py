"""How a job ended, in words: a headline, what it means, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cgorl.pipeline import Status
from cgorl.report.screen import decimals
from cgorl.search.searcher import LIMITS
from cgorl.web.labels import label
from cgorl.web.models import State
from cgorl.web.reasons import TIME


class Verdict(NamedTuple):
    """`tone` is good, plain or bad; `badge` a word or two for a list, `title` the headline, `text` a sentence or two."""

    tone: str
    badge: str
    title: str
    text: str


_STOPPED = {
    "seconds": "its time was up",
    "expansions": "it had looked at as many graphs as it was allowed to",
    "evaluations": "it had priced as many rewrites as it was allowed to",
    "interrupted": "it was stopped",
}


def verdict(job: Mapping[str, Any]) -> Verdict | None:
    """Of a job (see shown.shown) that has ended; None before that."""
    if not job["ended"]:
        return None
    if job["state"] == State.REFUSED:
        return Verdict("bad", "refused", "Refused", f"{_sentence(job['reason'])} Nothing was changed.")
    if job["state"] == State.FAILED and job["reason"].startswith(TIME):
        why = job["reason"].removeprefix(TIME).lstrip(": ")
        return Verdict("bad", "time limit", TIME[0].upper() + TIME[1:], f"{_sentence(why)} Its place is free for other jobs again.")
    if job["state"] == State.FAILED:
        return Verdict("bad", "failed", "It did not work out", _sentence(job["reason"]))
    if job["state"] == State.CANCELLED:
        return Verdict("plain", "cancelled", "Cancelled", _sentence(job["reason"] or "cancelled"))
    result = job["result"]
    found = _DONE[Status(result["status"])](result["summary"], job["options"])
    if result["summary"]["search"]["stopped"] == "interrupted" and found.tone != "bad":
        return found._replace(text=f"{found.text} It was stopped early: this is the best it had by then.")
    return found


def change(before: float, after: float) -> str:
    """A change as people read it: "25.2 % less", "3.1 % more", "the same"."""
    if not before or abs(after / before - 1) < 5e-5:
        return "the same"
    share = abs(after / before - 1)
    return (
        f"{100 * share:.1f} % {'less' if after < before else 'more'}"
        if share >= 0.0005
        else f"{100 * share:.2f} % {'less' if after < before else 'more'}"
    )


def _optimized(summary: Mapping[str, Any], options: Mapping[str, Any]) -> Verdict:
    gate, cost = summary["gate"], summary["cost_ms"]
    if gate is not None and gate["faster"]:
        after = gate["after"]
        low, high = after["interval"]
        times = f"{after['times_as_fast']:.2f} times as fast"
        text = f"Measured on this server: {gate['before']['cpu_ms']:.3g} → {after['cpu_ms']:.3g} ms of processor time. "
        text += f"With 99 % confidence it is {low:.3f} to {high:.3f} times as fast."
        return Verdict("good", times, times[0].upper() + times[1:], text)
    prices = (
        f"the prices of {label('device', str(options.get('device'))).title}" if options.get("cost") != "measured" else "measured kernels"
    )
    if summary["rewrites"]:
        less = change(cost["initial"], cost["final"])
        digits = decimals(cost["initial"])
        text = f"Estimated with {prices}: {cost['initial']:.{digits}f} → {cost['final']:.{digits}f} ms. It was not run against the clock."
        return Verdict("good", f"{less} estimated", f"{less[0].upper()}{less[1:]} estimated time", text)
    fewer = summary["nodes"]["before"] - summary["nodes"]["after"]
    text = "The clean-up found operators that nothing needs; beyond that, no rewrite lowers the estimated time."
    return Verdict("good", "cleaned up", f"Cleaned up: {fewer} operator{'' if fewer == 1 else 's'} fewer", text)


def _optimal(summary: Mapping[str, Any], options: Mapping[str, Any]) -> Verdict:
    del options
    if summary["gate"] is not None and summary["gate"]["measured"]:
        text = "Nothing that these rewrites reach runs faster on this server beyond noise."
    else:
        text = "No way of applying these rewrites lowers the estimated time, and the search came to its end."
    return Verdict("plain", "already optimal", "Already optimal", f"{text} {_back(summary)}")


def _unchanged(summary: Mapping[str, Any], options: Mapping[str, Any]) -> Verdict:
    del options
    gate = summary["gate"]
    why = _STOPPED.get(summary["search"]["stopped"], "it came to its end")
    if gate is not None and gate["why"]:
        short = "gate_seconds" in gate["why"]  # what the command line would be told
        text = "One run takes too long here for the time that there is to measure." if short else _sentence(gate["why"])
        text += f" What was not measured is not called faster. {_back(summary)}"
        return Verdict("plain", "not measured", "Not measured, so not changed", text)
    if gate is not None:
        text = f"What the search found until {why} does not run faster here beyond noise."
    else:
        text = f"The search ended because {why}."
        text += " More time may find something." if summary["search"]["stopped"] in LIMITS else " Another method may find something."
    return Verdict("plain", "nothing found", "Nothing better was found", f"{text} {_back(summary)}")


def _back(summary: Mapping[str, Any]) -> str:
    """Which graph one gets where none is better."""
    kept = "original" if summary["gate"] is None else summary["gate"]["kept"]
    return "You get the original back, unchanged." if kept == "original" else "You get the cleaned-up graph, which is no slower."


def _unproven(summary: Mapping[str, Any], options: Mapping[str, Any]) -> Verdict:
    del options
    dropped = summary["proof"]["dropped"]
    text = f"{len(dropped)} rewrite{' was' if len(dropped) == 1 else 's were'} found to change the result and taken out. "
    return Verdict("bad", "proof failed", "A proof failed", text + "What you can download is the last graph that agrees with the original.")


def _refused(summary: Mapping[str, Any], options: Mapping[str, Any]) -> Verdict:
    del summary, options
    return Verdict("bad", "refused", "Refused", "The engine would not optimize this model.")


_DONE = {
    Status.OPTIMIZED: _optimized,
    Status.OPTIMAL: _optimal,
    Status.UNCHANGED: _unchanged,
    Status.PROOF_FAILED: _unproven,
    Status.REFUSED: _refused,
}


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', '…')) else '.'}" if text else ""
