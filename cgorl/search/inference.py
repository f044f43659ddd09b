"""Inference: how a policy, whatever it is, is made use of under a budget: greedy, the best of samples, or as a beam."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cgorl.cost.model import CostModel
from cgorl.env.nodes import NodeTable
from cgorl.env.observation import Observation, Standing, observe
from cgorl.env.passed import Passed
from cgorl.env.undo import undoes
from cgorl.rules.matches import touched_by
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.course import Course
from cgorl.search.searcher import Meter, SearchError
from cgorl.search.state import State

LEAST_HORIZON = 16
MODES = ("greedy", "sample", "beam")


class View(NamedTuple):
    """A state as a policy sees it: the matches that are offered, and the observation."""

    state: State
    table: NodeTable
    matches: tuple[Match, ...]
    seen: Observation
    best_ms: float
    passed: Passed
    steps: int


Scorer = Callable[[Sequence[View]], list[Sequence[float]]]
"""The logarithms of the chances of each view's actions: its matches, and to stop."""


@dataclass(frozen=True, slots=True)
class Inference:
    """`greedy`: the likeliest action each time. `sample`: besides, `samples` episodes drawn by chance. `beam`: the `width` likeliest ways.

    Each way has at most `horizon` steps; null: twice as many as matches gain at the start, at least 16.
    """

    mode: str = "sample"
    samples: int = 8
    width: int = 8
    horizon: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        if self.mode not in MODES:
            raise SearchError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        for name in ("samples", "width", "horizon"):
            value = getattr(self, name)
            if value is None and name == "horizon":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SearchError(f"{name} must be a whole number of at least 1, not {value!r}")

    def __call__(self, course: Course, meter: Meter, rules: RuleSet, cost: CostModel, score: Scorer) -> str:
        """Walks from the course's start and offers it what it comes to; returns what ended it."""
        gaining = sum(1 for m in course.start.prices if course.start.gain(m) > 0)
        walk = _Walk(course, meter, rules, cost, self.horizon or max(LEAST_HORIZON, 2 * gaining))
        first = walk.begin()
        if not first.matches:
            return meter.spent() or "no rule matches"
        return self._beam(walk, first, score) if self.mode == "beam" else self._walks(walk, first, score)

    def _walks(self, walk: _Walk, first: View, score: Scorer) -> str:
        rng = random.Random(self.seed)
        # the likeliest walk comes first, so that more samples are never worse than greedy, wherever the budget ends
        for sampled in (False, True) if self.mode == "sample" else (False,):
            at: dict[int, View] = dict.fromkeys(range(self.samples if sampled else 1), first)
            while at:
                for (k, view), logp in zip(list(at.items()), score(list(at.values())), strict=True):
                    drawn = _drawn(logp, rng) if sampled else max(range(len(logp)), key=logp.__getitem__)
                    if drawn == len(view.matches) or view.steps >= walk.horizon:
                        del at[k]
                        continue
                    if spent := walk.meter.spent():
                        return spent
                    at[k] = walk.after(view, view.matches[drawn])
        return "all walks walked"

    def _beam(self, walk: _Walk, first: View, score: Scorer) -> str:
        level: list[tuple[float, View]] = [(0.0, first)]
        seen = {first.state.graph.key}
        for _ in range(walk.horizon):
            moves: list[tuple[float, int, View, Match]] = []
            for (logp, view), chances in zip(level, score([v for _, v in level]), strict=True):
                moves += [(-logp - c, len(moves) + k, view, m) for k, (m, c) in enumerate(zip(view.matches, chances, strict=False))]
            heapq.heapify(moves)
            level = []
            while moves and len(level) < self.width:
                if spent := walk.meter.spent():
                    return spent
                unlikely, _, view, match = heapq.heappop(moves)
                child = view.state.step(match)
                if child.graph.key not in seen:
                    seen.add(child.graph.key)
                    level.append((-unlikely, walk.after(view, match, child)))
            if not level:
                return "no graph left"
        return "horizon reached"


class _Walk:
    """Views of the states of one search."""

    def __init__(self, course: Course, meter: Meter, rules: RuleSet, cost: CostModel, horizon: int) -> None:
        self.course, self.meter, self.rules, self.cost, self.horizon = course, meter, rules, cost, horizon
        self.initial_ms = course.start.cost_ms

    def begin(self) -> View:
        start = self.course.start
        table = NodeTable(start.graph, self.cost, 100 / self.initial_ms if self.initial_ms else 0.0)
        return self._view(start, table, tuple(start.prices), start.cost_ms, Passed(start.graph, start.cost_ms, table.kinds), 0)

    def after(self, view: View, match: Match, child: State | None = None) -> View:
        state = (child or view.state.step(match)).expand(self.meter)
        self.course.offer(state)
        table = view.table.after(state.graph, touched_by(view.state.graph, state.graph, match.edit))
        offered = tuple(m for m in state.prices if not undoes(m, match, view.state, state))
        passed = Passed(state.graph, state.cost_ms, table.kinds, view.passed)
        return self._view(state, table, offered, min(view.best_ms, state.cost_ms), passed, view.steps + 1)

    def _view(self, state: State, table: NodeTable, matches: tuple[Match, ...], best_ms: float, passed: Passed, steps: int) -> View:
        standing = Standing(self.initial_ms, best_ms, state.cost_ms, self.horizon - steps, self.horizon, passed.visits > 1)
        seen = observe(state.graph, table, matches, state.prices, self.rules, standing)
        return View(state, table, matches, seen, best_ms, passed, steps)


def _drawn(logp: Sequence[float], rng: random.Random) -> int:
    left = rng.random()
    for k, c in enumerate(logp):
        left -= math.exp(c)
        if left < 0:
            return k
    return len(logp) - 1
