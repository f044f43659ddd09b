"""Shares: what the largest rewrites of a result save by themselves, measured by leaving out one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cgorl.gate.judge import ORIGINAL, Share
from cgorl.gate.runner import Run, even, runner
from cgorl.gate.timing import LEAST, Rounds, affordable, interval
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.graph import Graph
from cgorl.ir.run import RunError
from cgorl.ir.tensor import Array
from cgorl.search.trace import Step, without

MOST = 6
"""So many rewrites are looked at, those with the largest gains by the prices."""

_KEPT = "kept"
_MAKING = 0.3


def shares(
    model: Graph,
    start: Graph,
    kept: Graph,
    trace: Sequence[Step],
    feeds: Mapping[str, Array],
    level: str,
    seconds: float,
    seed: int = 0,
    tell: Callable[[float], None] | None = None,
) -> dict[int, Share]:
    """By their number in the trace, the shares of its largest rewrites; those that there was no time for are left out.

    `kept` is where the trace from `start` leads. Each round runs original, kept and every graph that lacks one rewrite; the
    share is the median of (without - kept) / original. An interrupt keeps what the rounds before it say.
    """
    if seconds <= 0:
        return {}
    begin = time.monotonic()
    found: dict[int, Share] = {}
    runs: dict[str, Run] = {}
    rank = sorted(range(len(trace)), key=lambda k: trace[k].after_ms - trace[k].before_ms)[:MOST]
    try:
        runs |= {ORIGINAL: runner(model, feeds, level), _KEPT: runner(kept, feeds, level)}
        for k in rank:
            if time.monotonic() - begin > _MAKING * seconds:
                break
            graph, _, lost = without(start, trace, {k})
            if lost:
                rests = "the next rewrite rests" if len(lost) == 1 else f"{len(lost)} rewrites rest"
                found[k] = Share(None, f"{rests} on it")
                continue
            try:
                runs[str(k)] = runner(fold_rewrites(graph), feeds, level)
            except RunError as e:
                found[k] = Share(None, f"the rest does not run by itself: {e}")
    except KeyboardInterrupt:
        return found
    named = affordable({n: r.took_ms for n, r in runs.items()}, seconds, 3)
    runs = {n: runs[n] for n in named}
    if not runs:
        return found
    even(runs.values())
    rng = np.random.default_rng(seed)
    rounds = Rounds(runs, rng)
    rounds.run(max(0.0, seconds - (time.monotonic() - begin)), tell)
    if rounds.count < LEAST:
        return found
    base, best = np.array(rounds.cpu_ms[ORIGINAL]), np.array(rounds.cpu_ms[_KEPT])
    for n in named[2:]:
        found[int(n)] = Share(interval((np.array(rounds.cpu_ms[n]) - best) / np.maximum(base, 1e-9), rng))
    return dict(sorted(found.items()))
