"""Branches: an optimization and what else it could have been, as films that part at a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cgorl.cost.model import CostModel
from cgorl.report.film import Film
from cgorl.report.whatif.guide import Guide
from cgorl.rules.rule import Match
from cgorl.search.course import Course
from cgorl.search.greedy import greediest
from cgorl.search.inference import View, Walk, reach
from cgorl.search.searcher import Budget, Meter
from cgorl.search.state import State
from cgorl.search.trace import Step

TRACE = 0
"""The number of what was really done."""
MOST = 24
GAIN, POLICY, ALONE = "gain", "policy", ""
"""What a branch goes on by: the largest gain each time, the likeliest action of the policy, or not at all."""


class BranchError(ValueError):
    """A branch that cannot be; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A film that is its parent's up to step `at` and goes its own way from there; `ended` says why it cannot go on, if so.

    The trace itself has itself for a parent.
    """

    film: Film
    parent: int
    at: int
    by: str
    ended: str = ""


class Branches:
    """The trace under number 0, and its branches under the numbers that they got, in `all`.

    All states are priced by `cost`, which must be what the film's costs are of. `guide` is only made when it is asked.
    """

    def __init__(self, film: Film, cost: CostModel, guide: Callable[[], Guide] | None = None) -> None:
        self.all: dict[int, Branch] = {TRACE: Branch(film, TRACE, 0, ALONE)}
        self._cost, self._make = cost, guide
        self._guide: Guide | None = None
        self._views: dict[int, list[View]] = {}
        self._last = TRACE

    @property
    def guide(self) -> Guide | None:
        """The policy. Raises GuideError and AgentError where there should be one and it cannot be asked."""
        if self._guide is None and self._make is not None:
            self._guide = self._make()
        return self._guide

    def walk(self) -> Walk:
        """What leads from state to state; the horizon is that of search=agent, and longer by that where the trace is longer."""
        if not self._views:
            film = self.all[TRACE].film
            free = Budget()
            start = State.start(film.graphs[0], film.rules, self._cost, Meter(free, None))
            course, room, long = Course(start, Meter(free, None), None, None), reach(start), len(film.steps)
            self._walk = Walk(course, room if room >= long else room + long)
            self._views[TRACE] = [self._walk.begin()]
        return self._walk

    def view(self, number: int, k: int) -> View:
        """The state before step k of a branch, or after its last one. Raises BranchError where there is none, or no way to it."""
        branch = self._branch(number)
        if not 0 <= k <= len(branch.film.steps):
            raise BranchError(f"there is no step {k + 1} in {self.title(number)}: it has {len(branch.film.steps)}")
        walk, views = self.walk(), self._views.setdefault(number, [])
        if not views:
            views += [self.view(branch.parent, j) for j in range(branch.at + 1)]
        while len(views) <= k:
            step = branch.film.steps[len(views) - 1]
            views.append(walk.after(views[-1], _found(views[-1], step.match.rule.name, step.match.nodes)))
        return views[k]

    def owner(self, number: int, k: int) -> int:
        """The branch that step k of a branch is of: itself, or one that it came from."""
        branch = self._branch(number)
        return number if number == TRACE or k >= branch.at else self.owner(branch.parent, k)

    def off(self, number: int, k: int, rule: str, nodes: Sequence[int], by: str) -> int:
        """The branch that does this rewrite as its step k, in the place of what the other does there; a known one is not made again.

        Raises BranchError.
        """
        if by not in (GAIN, POLICY, ALONE) or (by == POLICY and self._make is None):
            raise BranchError(f"a branch goes on by 'gain'{', by ' + repr(POLICY) if self._make else ''} or not at all (''), not by '{by}'")
        view = self.view(number, k)
        match = _found(view, rule, tuple(nodes))
        parent = number
        while parent != TRACE and k <= self.all[parent].at:
            parent = self.all[parent].parent
        for known, b in self.all.items():
            if known != TRACE and (b.parent, b.at, b.by) == (parent, k, by) and _same(b.film.steps[k], match):
                return known
        if len(self.all) > MOST:
            raise BranchError(f"there are {MOST} branches: drop one first")
        self._last += 1
        film = self.all[parent].film.until(k)
        self.all[self._last] = Branch(film, parent, k, by, "" if by else "not gone on with")
        self._views[self._last] = [self.view(parent, j) for j in range(k + 1)]
        self._add(self._last, match)
        return self._last

    def go_on(self, number: int, steps: int, seconds: float) -> int:
        """Goes on with a branch for so many rewrites at most, for about so many seconds; how many it made, one unless it ends."""
        begun, made = time.monotonic(), 0
        while made < steps and not self._branch(number).ended:
            branch = self.all[number]
            match, ended = self._next(self.view(number, len(branch.film.steps)), branch.by)
            if match is None:
                self.all[number] = replace(branch, ended=ended)
                break
            self._add(number, match)
            made += 1
            if time.monotonic() - begun >= seconds:
                break
        return made

    def past(self, view: View, k: int) -> dict[int, Step]:
        """What branches do next that come to this state after k steps, by their numbers."""
        there = [n for n, views in self._views.items() if k < len(views) and views[k] is view]
        return {n: self.all[n].film.steps[k] for n in sorted(there) if k < len(self.all[n].film.steps)}

    def drop(self, number: int) -> None:
        """Takes a branch away, and those that came from it. Raises BranchError."""
        self._branch(number)
        if number == TRACE:
            raise BranchError("the trace itself stays")
        for child in [n for n, b in self.all.items() if b.parent == number]:
            self.drop(child)
        del self.all[number]
        self._views.pop(number, None)

    def costs_ms(self, number: int) -> Sequence[float]:
        """The cost before the first step of a branch and after each; one at least."""
        film = self._branch(number).film
        return film.costs_ms or [self._cost.cost_ms(film.graphs[0])]

    def title(self, number: int) -> str:
        """What a branch is called."""
        return "the trace" if number == TRACE else f"branch {number}"

    def _branch(self, number: int) -> Branch:
        if number not in self.all:
            raise BranchError(f"there is no branch {number}")
        return self.all[number]

    def _next(self, view: View, by: str) -> tuple[Match | None, str]:
        if by == GAIN:
            return greediest(view.state), "no rewrite gains"
        if view.steps >= self._walk.horizon:
            return None, f"{view.steps} steps, as many as the policy has"
        guide = self.guide
        assert guide is not None
        return guide.chooses(view), "the policy stops"

    def _add(self, number: int, match: Match) -> None:
        branch, view = self.all[number], self.view(number, len(self.all[number].film.steps))
        then = self._walk.after(view, match)
        self._views[number].append(then)
        film = branch.film.then(match, then.state.graph, view.state.cost_ms, then.state.cost_ms)
        self.all[number] = replace(branch, film=film)


def _found(view: View, rule: str, nodes: tuple[int, ...]) -> Match:
    found = next((m for m in view.state.prices if m.rule.name == rule and m.nodes == nodes), None)
    if found is None:
        raise BranchError(f"{rule} does not apply at nodes {list(nodes)} there")
    return found


def _same(step: Step, match: Match) -> bool:
    return step.match.rule.name == match.rule.name and step.match.nodes == match.nodes
