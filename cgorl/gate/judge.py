"""Judge: which of several candidates to keep, from their timings; a slower one can't win, and neither can noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cgorl.gate.timing import LEAST, Ratio, Rounds, Runner, Timing

ORIGINAL, SIMPLIFIED = "original", "simplified"

SLACK = 0.01
"""What a graph that is no faster may lose at most, by the lower end of its interval, to be kept nevertheless."""

_LEGS = 4
_CONFIRMED = (0.3, 0.2)


@dataclass(frozen=True, slots=True)
class Share:
    """What one rewrite saves by itself, as measured: the time that leaving it out costs, as a share of the original's.

    `why` says why it was not measured.
    """

    share: Ratio | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate lets through: the name of the graph to keep, all that was measured, and under which session options.

    `why` says what kept it from measuring all; `shares` are those of the kept trace's rewrites that were looked at, by number.
    """

    kept: str
    timings: tuple[Timing, ...]
    options: str
    why: str = ""
    shares: Mapping[int, Share] = field(default_factory=dict)

    @property
    def faster(self) -> bool:
        """Whether the kept graph was measured to be faster than the original, beyond noise."""
        return self.kept != ORIGINAL and (t := self.timing(self.kept)) is not None and t.ratio.low > 1.0

    def timing(self, name: str) -> Timing | None:
        """The measurement of one candidate; None if it was not measured."""
        return next((t for t in self.timings if t.name == name), None)


def judge(
    candidates: Mapping[str, Runner], seconds: float, seed: int = 0, options: str = "", tell: Callable[[float], None] | None = None
) -> Verdict:
    """Which of `candidates`, the original among them, to keep; `tell` hears the share done.

    All are run in turn, those that have fallen behind no longer; the best of those that are faster beyond noise is run against
    the original once more, and has to be faster again: of several equal ones the luckiest looks fast. If none is, the
    simplified graph is kept if it is not slower. An interrupt ends the measuring: then the best of the first half of the
    rounds has to be faster in the second.
    """
    rng = np.random.default_rng(seed)
    say = tell or (lambda share: None)
    rounds = Rounds(candidates, rng)
    first = 1 - sum(_CONFIRMED)
    for leg in range(_LEGS):
        rounds.run(seconds * first / _LEGS, lambda share, leg=leg: say(first * (leg + share) / _LEGS))  # type: ignore[misc]
        if rounds.interrupted:
            break
        rounds.drop(_behind(rounds.timings(ORIGINAL)))
    timings = rounds.timings(ORIGINAL)
    if rounds.interrupted:
        return _interrupted(rounds, timings, options)
    kept, why = ORIGINAL, ""
    others = sorted((t for t in timings.values() if t.name != ORIGINAL and t.ratio.low > 1.0), key=lambda t: -t.ratio.middle)
    for best, part in zip(others, _CONFIRMED, strict=False):
        again = Rounds({ORIGINAL: candidates[ORIGINAL], best.name: candidates[best.name]}, rng)
        again.run(seconds * part, lambda share, part=part: say(1 - part * (1 - share)))  # type: ignore[misc]
        found = again.timings(ORIGINAL)
        if again.interrupted and best.name not in found:
            return _interrupted(rounds, timings, options)
        timings |= found
        why = f"interrupted after {again.count} rounds of the best against the original" if again.interrupted else ""
        if found[best.name].ratio.low > 1.0:
            kept = best.name
        if kept != ORIGINAL or again.interrupted or best.name == SIMPLIFIED or found[best.name].ratio.middle < 1.0:
            break
    return Verdict(kept if kept != ORIGINAL else _safe(timings), tuple(timings.values()), options, why)


def _behind(timings: Mapping[str, Timing]) -> list[str]:
    """Those that are slower than the best beyond noise, if that one is faster than the original."""
    lead = max((t.ratio.low for t in timings.values()), default=0.0)
    return [t.name for t in timings.values() if t.name != ORIGINAL and lead > 1.0 and t.ratio.high < lead]


def _safe(timings: Mapping[str, Timing]) -> str:
    simple = timings.get(SIMPLIFIED)
    return SIMPLIFIED if simple is not None and simple.ratio.low >= 1 - SLACK else ORIGINAL


def _interrupted(rounds: Rounds, timings: dict[str, Timing], options: str) -> Verdict:
    said = f"interrupted after {rounds.count} rounds"
    half = rounds.count // 2
    if half < LEAST:
        return Verdict(_safe(timings), tuple(timings.values()), options, f"{said}, too few to call anything faster")
    chosen, again = rounds.timings(ORIGINAL, slice(half)), rounds.timings(ORIGINAL, slice(half, None))
    best = max((t for t in chosen.values() if t.name != ORIGINAL and t.name in again), key=lambda t: t.ratio.middle, default=None)
    if best is None or best.ratio.low <= 1.0 or again[best.name].ratio.low <= 1.0:
        return Verdict(_safe(timings), tuple(timings.values()), options, said)
    timings |= {best.name: again[best.name]}
    return Verdict(best.name, tuple(timings.values()), options, said)
