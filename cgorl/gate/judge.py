"""Judge: which of several candidates to keep, from their timings; a slower one can't win, and neither can noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cgorl.gate.sessions import LUCK, Sessions
from cgorl.gate.timing import Ratio, Rounds, Runner, Timing

ORIGINAL, SIMPLIFIED = "original", "simplified"

SLACK = 0.01
"""What a graph that is no faster may lose at most, by the lower end of its interval, to be kept nevertheless."""

_LEGS = 4
_CONFIRMED = (0.35, 0.25)

Again = Callable[[str], Runner]
"""Loads the model of this name anew."""


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
    candidates: Mapping[str, Runner],
    seconds: float,
    seed: int = 0,
    options: str = "",
    again: Again | None = None,
    tell: Callable[[float], None] | None = None,
) -> Verdict:
    """Which of `candidates`, the original among them, to keep; `again` loads some anew, `tell` hears the share done.

    All are run in turn, those that have fallen behind no longer. The best of those that look faster beyond noise is then run
    against the original in new sessions, and has to be faster there: of several equal ones the luckiest looks fast, and a
    session's place in memory may favour it. If none is, the simplified graph is kept if it is not slower. An interrupt ends
    the measuring; what it leaves without new sessions has to be faster by more than the luck of a place.
    """
    rng = np.random.default_rng(seed)
    say = tell or (lambda share: None)
    anew: Again = again or candidates.__getitem__
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
    done = first
    for name, part in zip(_worth_a_try(timings), _CONFIRMED, strict=False):
        sessions = Sessions({n: partial(anew, n) for n in (ORIGINAL, name)}, rng)
        sessions.run(seconds * part, lambda share, done=done, part=part: say(done + part * share))  # type: ignore[misc]
        if sessions.interrupted and not sessions.enough:
            return _interrupted(rounds, timings, options)
        found = sessions.timings(ORIGINAL)
        timings |= found
        done += part
        why = f"interrupted after {len(sessions.blocks)} sessions" if sessions.interrupted else ""
        if found[name].ratio.low > 1.0 or (name == SIMPLIFIED and found[name].ratio.low >= 1 - SLACK):
            return Verdict(name, tuple(timings.values()), options, why)
        if why:
            return Verdict(ORIGINAL, tuple(timings.values()), options, why)
    return Verdict(ORIGINAL, tuple(timings.values()), options)


def _behind(timings: Mapping[str, Timing]) -> list[str]:
    """Those that are slower than the best beyond noise, if that one is faster than the original."""
    lead = max((t.ratio.low for t in timings.values()), default=0.0)
    return [t.name for t in timings.values() if t.name != ORIGINAL and lead > 1.0 and t.ratio.high < lead]


def _worth_a_try(timings: Mapping[str, Timing]) -> list[str]:
    """The best of those that look faster; then the simplified graph unless it looks slower, else the second."""
    fast = sorted((t for t in timings.values() if t.name != ORIGINAL and t.ratio.low > 1.0), key=lambda t: -t.ratio.middle)
    simple = timings.get(SIMPLIFIED)
    fits = [SIMPLIFIED] if simple is not None and simple.ratio.high >= 1 - SLACK else []
    return list(dict.fromkeys([*(t.name for t in fast[:1]), *fits, *(t.name for t in fast[1:])]))


def _interrupted(rounds: Rounds, timings: dict[str, Timing], options: str) -> Verdict:
    said = f"interrupted after {rounds.count} rounds"
    if not timings:
        said += ", too few to call anything faster"
    best = max((t for t in timings.values() if t.name != ORIGINAL), key=lambda t: t.ratio.low, default=None)
    kept = best.name if best is not None and best.ratio.low > 1 + LUCK else ORIGINAL
    return Verdict(kept, tuple(timings.values()), options, said)
