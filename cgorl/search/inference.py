"""Inference: how a policy, whatever it is, is made use of under a budget: greedy, the best of samples, or as a beam."""

from __future__ import annotations

import heapq
import math
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cgorl.env.match_table import MatchTable
from cgorl.env.nodes import NodeTable
from cgorl.env.observation import Observation, Standing, observe
from cgorl.env.passed import Passed
from cgorl.env.undo import straight_back
from cgorl.rules.matches import touched_by
from cgorl.rules.rule import Match
from cgorl.search.course import Course
from cgorl.search.searcher import SearchError, check
from cgorl.search.state import State

LEAST_HORIZON, STRETCH = 16, 4
PATIENCE = 16
"""Steps without anything better after which a walk is given up: twice the deepest barrier that experiment=landscape has found."""
MODES = ("greedy", "sample", "beam")
_SIDE_BY_SIDE = 8
"""Walks that are scored in one batch."""
_REMEMBERED = 500
"""Views, each of some hundred kilobytes."""
_LEAST_MS = 1e-9


class View(NamedTuple):
    """A state as a policy sees it, under a number of its own: the matches that are offered, and the observation.

    `steps` have led here, the last `idle` of them to nothing better than what was there before.
    """

    number: int
    state: State
    nodes: NodeTable
    listed: MatchTable
    matches: tuple[Match, ...]
    seen: Observation
    best_ms: float
    passed: Passed
    steps: int
    idle: int
    before: View | None


Scorer = Callable[[Sequence[View]], list[Sequence[float]]]
"""The logarithms of the chances of each view's actions: its matches, and to stop."""


@dataclass(frozen=True, slots=True)
class Inference:
    """`greedy`: the likeliest action each time. `sample`: besides, `samples` episodes drawn by chance. `beam`: the `width` likeliest ways.

    Each way has at most `horizon` steps; null: `STRETCH` times as many as matches gain at the start without being in each other's
    way, at least 16, and ends where it has found nothing better for `PATIENCE` steps. What has been walked once is not paid for again.
    """

    mode: str = "sample"
    samples: int = 8
    width: int = 8
    horizon: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        if self.mode not in MODES:
            raise SearchError(f"search.mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        least = {"samples": 1, "width": 1, "seed": 0, **({} if self.horizon is None else {"horizon": 1})}
        check(self, least, whole=least)

    @classmethod
    def of(cls, searcher: Any) -> Inference:
        """As the parameters of a searcher say, which have the same names. Raises SearchError."""
        return cls(searcher.mode, searcher.samples, searcher.width, searcher.horizon, searcher.seed)

    def search(self, course: Course, score: Scorer, hedge: float = 0.0) -> str:
        """Walks from the first graph as `score` leads, and says what stopped it; `hedge` is the share of samples that gains lead."""
        walk = Walk(course, self.horizon or reach(course.start))
        first = walk.begin()
        if not first.matches:
            return course.meter.spent() or "no rule matches"
        return self._beam(walk, first, score) if self.mode == "beam" else self._walks(walk, first, score, hedge)

    def _walks(self, walk: Walk, first: View, score: Scorer, hedge: float) -> str:
        rng, gains = random.Random(self.seed), by_gain()
        # the likeliest walk comes first, so that more samples are never worse than greedy, wherever the budget ends; then greed's
        likeliest = [1, 1] if hedge else [1]
        rounds = [*likeliest, *(min(_SIDE_BY_SIDE, self.samples - k) for k in range(0, self.samples, _SIDE_BY_SIDE))]
        for n, count in enumerate(rounds if self.mode == "sample" else rounds[:1]):
            chance = n >= len(likeliest)
            # every second one goes on from somewhere on the way to the best so far, which costs nothing to come to again
            ways = [walk.way() if chance and k % 2 else [first] for k in range(count)]
            led = [_share(k // 2, hedge) if chance else n == 1 for k in range(count)]
            at = {k: way[rng.randrange(len(way))] for k, way in enumerate(ways)}
            began = {k: view.steps for k, view in at.items()}
            while at:
                mine = iter(walk.scores([v for k, v in at.items() if not led[k]], score))
                for k, view in list(at.items()):
                    [logp] = gains([view]) if led[k] else [next(mine)]
                    drawn = _drawn(logp, rng) if chance else max(range(len(logp)), key=logp.__getitem__)
                    idle = min(view.idle, view.steps - began[k])
                    if drawn == len(view.matches) or view.steps >= walk.horizon or idle >= PATIENCE:
                        del at[k]
                        continue
                    if spent := walk.meter.spent():
                        return spent
                    at[k] = walk.after(view, view.matches[drawn])
        return "all walks walked"

    def _beam(self, walk: Walk, first: View, score: Scorer) -> str:
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


def reach(start: State) -> int:
    """`STRETCH` times as many rewrites as gain at the start without being in each other's way, at least 16; nothing is priced for it."""
    taken: set[int] = set()
    count = 0
    for m in start.best_first():
        if start.gain(m) > _LEAST_MS and taken.isdisjoint(m.nodes):
            taken.update(m.nodes)
            count += 1
    return max(LEAST_HORIZON, STRETCH * count)


def by_gain(temperature: float = 0.1) -> Scorer:
    """A softmax over gains in percent of the first cost by `temperature`; to stop counts as gaining nothing."""

    def score(views: Sequence[View]) -> list[Sequence[float]]:
        percents = [v.nodes.scale / temperature for v in views]
        return [log_softmax([*(v.state.gain(m) * p for m in v.matches), 0.0]) for v, p in zip(views, percents, strict=True)]

    return score


def log_softmax(scores: Sequence[float]) -> list[float]:
    """The logarithms of the softmax."""
    top = max(scores)
    total = top + math.log(sum([math.exp(s - top) for s in scores]))
    return [s - total for s in scores]


class Walk:
    """Views of the states of one search, those walked of late remembered with what the policy thinks of them."""

    def __init__(self, course: Course, horizon: int) -> None:
        """On the course of a search, ways of at most `horizon` steps."""
        self.course, self.meter, self.horizon = course, course.meter, horizon
        self.initial_ms = course.start.cost_ms
        self._known: OrderedDict[tuple[int, Match], View] = OrderedDict()
        self._scores: dict[int, Sequence[float]] = {}
        self._count = 0

    def begin(self) -> View:
        """The first graph of the search."""
        start = self.course.start
        nodes = NodeTable(start.graph, self.course.cost, 100 / self.initial_ms if self.initial_ms else 0.0)
        assert start.expanded is not None
        listed = MatchTable(start.expanded, self.initial_ms)
        self._top = self._view(start, nodes, listed, (), Passed(start.graph, start.cost_ms, nodes.kinds), None)
        return self._top

    def way(self) -> list[View]:
        """The views on the way to the best one, the first and the last among them."""
        found: list[View] = []
        at: View | None = self._top
        while at is not None:
            found.append(at)
            at = at.before
        return found[::-1]

    def scores(self, views: Sequence[View], score: Scorer) -> list[Sequence[float]]:
        """What the policy thinks of views, each asked about once."""
        new = [v for k, v in enumerate(views) if v.number not in self._scores and all(v is not u for u in views[:k])]
        if new:
            self._scores.update(zip([v.number for v in new], score(new), strict=True))
        return [self._scores[v.number] for v in views]

    def after(self, view: View, match: Match, child: State | None = None) -> View:
        """What `match`, one of the view's state, leads to; `child` is that state where it is there already."""
        key = view.number, match
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        state = (child or view.state.step(match)).expand(self.meter)
        self.course.offer(state)
        nodes = view.nodes.after(state.graph, touched_by(view.state.graph, state.graph, match.edit))
        passed = Passed(state.graph, state.cost_ms, nodes.kinds, view.passed)
        now, listed = state.expanded, view.listed
        if now is None:  # there was nothing left to pay with: nothing is offered
            hidden = listed.prices.matches
        else:
            hidden, listed = straight_back(now, match, listed.prices), listed.after(now)
        made = self._known[key] = self._view(state, nodes, listed, hidden, passed, view)
        if made.state.cost_ms < self._top.best_ms - _LEAST_MS:
            self._top = made
        if len(self._known) > _REMEMBERED:
            self._scores.pop(self._known.popitem(last=False)[1].number, None)
        return made

    def _view(
        self, state: State, nodes: NodeTable, listed: MatchTable, hidden: tuple[Match, ...], passed: Passed, before: View | None
    ) -> View:
        steps, best_ms, idle = 0, state.cost_ms, 0
        if before is not None:
            better = state.cost_ms < before.best_ms - _LEAST_MS
            steps, best_ms, idle = before.steps + 1, min(before.best_ms, state.cost_ms), 0 if better else before.idle + 1
        standing = Standing(self.initial_ms, best_ms, state.cost_ms, self.horizon - steps, self.horizon, passed.visits > 1)
        matches = tuple([m for m in listed.prices if m not in hidden]) if hidden else listed.prices.matches
        self._count += 1
        seen = observe(nodes, listed, hidden, standing)
        return View(self._count, state, nodes, listed, matches, seen, best_ms, passed, steps, idle, before)


def _share(k: int, share: float) -> bool:
    """Whether the k-th of many is one of the `share` of them that are spread evenly."""
    return int((k + 1) * share) > int(k * share)


def _drawn(logp: Sequence[float], rng: random.Random) -> int:
    left = rng.random()
    for k, c in enumerate(logp):
        left -= math.exp(c)
        if left < 0:
            return k
    return len(logp) - 1
