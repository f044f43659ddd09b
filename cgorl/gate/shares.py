"""Shares: what the largest rewrites of a result save by themselves, measured by leaving out one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from cgorl.gate.judge import ORIGINAL, Share
from cgorl.gate.runner import Run, even, runner
from cgorl.gate.sessions import Sessions
from cgorl.gate.timing import Rounds, affordable
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
    start: Graph,
    trace: Sequence[Step],
    pair: tuple[Run, Run],
    feeds: Mapping[str, Array],
    level: str,
    seconds: float,
    folder: Path,
    seed: int = 0,
    tell: Callable[[float], None] | None = None,
) -> dict[int, Share]:
    """By their number in the trace, the shares of its largest rewrites; those that there was no time for are left out.

    `pair` are the original and where the trace from `start` leads, ready to run. Each round runs both and every graph that
    lacks one rewrite, written to `folder`; the share is (without - kept) / original, over rounds and sessions. An interrupt
    keeps what is whole.
    """
    if seconds <= 0:
        return {}
    begin = time.monotonic()
    found: dict[int, Share] = {}
    runs: dict[str, Run] = {ORIGINAL: pair[0], _KEPT: pair[1]}
    rank = sorted(range(len(trace)), key=lambda k: trace[k].after_ms - trace[k].before_ms)[:MOST]
    try:
        for k in rank:
            if time.monotonic() - begin > _MAKING * seconds:
                break
            graph, _, lost = without(start, trace, {k})
            if lost:
                found[k] = Share(None, "other rewrites rest on it" if len(lost) > 1 else "another rests on it")
                continue
            try:
                runs[str(k)] = runner(fold_rewrites(graph), feeds, folder / f"without {k}.onnx", level)
            except RunError as e:
                found[k] = Share(None, f"the rest does not run by itself: {e}")
    except KeyboardInterrupt:
        return found
    named = affordable({n: r.took_ms + 0.75 * r.made_ms for n, r in runs.items()}, seconds, 3)
    even(runs.values())
    if not named:
        return found
    sessions = Sessions({n: runs[n].again for n in named}, np.random.default_rng(seed))
    sessions.run(max(0.0, seconds - (time.monotonic() - begin)), tell)
    for n in named[2:] if sessions.enough else ():
        found[int(n)] = Share(sessions.value(lambda rounds, n=n: _lost(rounds, n)))  # type: ignore[misc]
    return dict(sorted(found.items()))


def _lost(rounds: Rounds, name: str) -> Array:
    """What each round says that the rewrite left out of `name` saves, as a share of the original's time."""
    original, kept, without_it = (np.array(rounds.cpu_ms[n]) for n in (ORIGINAL, _KEPT, name))
    return np.asarray((without_it - kept) / np.maximum(original, 1e-9))
