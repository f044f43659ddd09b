"""Speed as measured, in words."""

from __future__ import annotations

from cgorl.gate import ORIGINAL, Ratio, Verdict
from cgorl.gate.judge import Share
from cgorl.pipeline import Outcome, Status


def speed(outcome: Outcome, verdict: Verdict) -> list[str]:
    """What the gate measured and what it made of that, in plain lines."""
    base, kept = verdict.timing(ORIGINAL), verdict.timing(verdict.kept)
    others = [t for t in verdict.timings if t.name != ORIGINAL]
    if base is None or kept is None or not others:
        return [f"{verdict.why}; the {verdict.kept} graph is kept"]
    best = max(others, key=lambda t: t.ratio.middle)
    if verdict.faster:
        text = f"{kept.name}: {base.cpu_ms:.3f} -> {kept.cpu_ms:.3f} ms of CPU ({base.wall_ms:.3f} -> {kept.wall_ms:.3f} by the clock)"
        found = [f"{text}, {_times(kept.ratio)} as fast"]
    else:
        text = f"nothing is faster beyond noise (at best {best.name}, {_times(best.ratio)} as fast)"
        cut = f", as far as the search came ({outcome.search.get('stopped')})" if outcome.status is Status.UNCHANGED else ""
        told = " in what was measured" if verdict.why else f": already optimal for these rules on this target{cut}"
        found = [f"{text}{told}; the {verdict.kept} graph is kept"]
    many = outcome.search.get("found_rewrites", len(outcome.trace))
    if many > len(outcome.trace):
        by_prices = f"{outcome.search['found_ms']:.3f} ms by the prices"
        some = f"{len(outcome.trace)} of the {many} rewrites that the search found are kept"
        found.append(f"{some if many > 1 else 'the one rewrite that the search found is not kept'} ({by_prices})")
    if verdict.why:
        found.append(verdict.why)
    shown = kept if verdict.faster else best
    sessions = f" in {shown.sessions} sessions each" if shown.sessions > 1 else ""
    found.append(f"{shown.runs} runs in turn{sessions}, of {len(verdict.timings)} graphs, 99 % intervals; {verdict.options}")
    return found


def _times(r: Ratio) -> str:
    return f"{r.middle:.3f} times ({r.low:.3f} to {r.high:.3f})"


def measured_share(found: Share | None) -> str:
    """The share of a rewrite in the time of the original, as measured, or why there is none."""
    if found is None:
        return "not measured"
    if found.share is None:
        return found.why
    return f"{100 * found.share.middle:.2f} % ({100 * found.share.low:.2f} to {100 * found.share.high:.2f})"
