"""RewriteEnv: an episode rewrites one graph, match by match, until the agent stops or the horizon is reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from cgorl.cost.model import CostModel
from cgorl.env.observation import Observation, Standing, observe
from cgorl.env.passed import Passed
from cgorl.env.priced import Priced, Recall
from cgorl.env.undo import straight_back
from cgorl.ir.graph import Graph
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet

REWARDS = ("dense", "terminal", "best")
RETURNED = ("best", "final")
LEAST_HORIZON = 16


class EnvError(ValueError):
    """An environment that cannot be; the message names the option."""


class Start(NamedTuple):
    """Where episodes begin: a graph listed and priced once for all of them; `rules` are those that the agent has numbers for."""

    priced: Priced
    rules: RuleSet
    greedy: int
    """How many rewrites greed performs from here."""
    recall: Recall

    @classmethod
    def of(cls, graph: Graph, rules: RuleSet, cost: CostModel, greedy: int | None = None, offered: RuleSet | None = None) -> Start:
        """The start for episodes on `graph`; `greedy` where greed need not be tried, `offered` where not all `rules` are."""
        _ = graph.key  # reads all weights once, for the keys of all graphs to come
        first = at = Priced(graph, offered or rules, cost)
        steps = 0
        while greedy is None and at.prices:
            match = max(at.prices, key=at.gain)
            if at.gain(match) <= 1e-9:
                break
            at, steps = at.after(match), steps + 1
        return cls(first, rules, steps if greedy is None else greedy, Recall())


@dataclass(frozen=True, slots=True)
class Episodes:
    """What episodes are like: see `RewriteEnv`."""

    reward: str = "dense"
    returned: str = "best"
    horizon: int | None = None
    stretch: float = 2.0

    def __post_init__(self) -> None:
        """Raises EnvError for an option that cannot be."""
        for name, value, good in (("reward", self.reward, REWARDS), ("returned", self.returned, RETURNED)):
            if value not in good:
                raise EnvError(f"env.{name} must be one of {', '.join(good)}, not {value!r}")
        if self.horizon is not None and (not isinstance(self.horizon, int) or isinstance(self.horizon, bool) or self.horizon < 1):
            raise EnvError(f"env.horizon must be a whole number of at least 1, or null, not {self.horizon!r}")
        if not isinstance(self.stretch, int | float) or isinstance(self.stretch, bool) or not 0 < self.stretch < float("inf"):
            raise EnvError(f"env.stretch must be a number above 0, not {self.stretch!r}")


class Move(NamedTuple):
    """One rewrite of an episode and the cost after it."""

    match: Match
    cost_ms: float


class RewriteEnv(gymnasium.Env):
    """Episodes of rewriting, each on one of `starts`, drawn evenly.

    ## Actions
    `0 <= a < M` performs match a of the observation, `a == M` stops. The rewrite that undoes the last one is not offered.

    ## Rewards, in percent of the first cost
    `dense`: what the step saved. `best`: by how much the best so far fell. `terminal`: nothing until the episode ends, then
    what the graph saved that is handed back: the `best` on the way or the `final` one, as `returned` says.

    ## Ends
    `terminated` by stopping; `truncated` after `horizon` steps, which the observation counts down (default: `stretch` times
    as many as greed performs on that graph, at least 16). The information holds the `rule` performed, and at an end what came
    of the `episode`.
    """

    def __init__(self, starts: Sequence[Start], episodes: Episodes | None = None, tell: Callable[[RewriteEnv], None] | None = None) -> None:
        """Raises EnvError. `tell` is called after each step and reset."""
        if not starts:
            raise EnvError("there is no graph to rewrite")
        self.starts, self.episodes, self._tell = tuple(starts), episodes or Episodes(), tell
        self.np_random = np.random.default_rng(0)
        self.begin(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode; `options={"start": k}` chooses its graph."""
        if seed is not None:
            self.np_random = np.random.default_rng(seed)
        chosen = (options or {}).get("start")
        self.begin(int(self.np_random.integers(len(self.starts))) if chosen is None else chosen)
        if self._tell is not None:
            self._tell(self)
        return self.observation, {"start": self.start}

    def begin(self, start: int) -> None:
        """Begins an episode on the graph with that number."""
        self.start = start
        self.horizon = self.episodes.horizon or max(LEAST_HORIZON, round(self.episodes.stretch * self.starts[start].greedy))
        self.at = self._first = self.starts[start].priced
        self.best_ms, self.best_length, self.path = self.at.cost_ms, 0, list[Move]()
        self.earned = 0.0
        self.passed = Passed(self.at.graph, self.at.cost_ms, self.at.table.kinds)
        self._look()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Performs an action. Raises EnvError for one that there is not."""
        if not 0 <= action <= len(self.matches):
            raise EnvError(f"there is no action {action}: there are {len(self.matches)} matches and to stop")
        stopped = action == len(self.matches)
        before, best = self.at.cost_ms, self.best_ms
        match = None if stopped else self.matches[action]
        if match is not None:
            self.perform(match)
        elif self._tell is not None:
            self._tell(self)
        truncated = not stopped and len(self.path) >= self.horizon
        percent = 100 / (self._first.cost_ms or 1.0)
        if self.episodes.reward == "dense":
            reward = percent * (before - self.at.cost_ms)
        elif self.episodes.reward == "best":
            reward = percent * (best - self.best_ms)
        else:
            reward = percent * (self._first.cost_ms - self.handed_back_ms) if stopped or truncated else 0.0
        self.earned += reward
        info: dict[str, Any] = {"rule": None if match is None else match.rule.name}
        if stopped or truncated:
            costs = {"first_ms": self._first.cost_ms, "cost_ms": self.at.cost_ms, "best_ms": self.best_ms}
            info["episode"] = {"start": self.start, "length": len(self.path), "return": self.earned, **costs}
        return self.observation, reward, stopped, truncated, info

    def perform(self, match: Match) -> None:
        """Performs a match of the current graph."""
        before = self.at
        self.at = self.starts[self.start].recall.after(before, match)
        self.path.append(Move(match, self.at.cost_ms))
        self.passed = Passed(self.at.graph, self.at.cost_ms, self.at.table.kinds, self.passed)
        if self.at.cost_ms < self.best_ms - 1e-12:
            self.best_ms, self.best_length = self.at.cost_ms, len(self.path)
        self._look(match, before)
        if self._tell is not None:
            self._tell(self)

    def match(self, rule: str, nodes: Sequence[int]) -> Match:
        """The match of that rule at those nodes of the current graph. Raises EnvError."""
        found = next((m for m in self.at.prices if m.rule.name == rule and m.nodes == tuple(nodes)), None)
        if found is None:
            raise EnvError(f"{rule} does not apply at nodes {list(nodes)}")
        return found

    @property
    def handed_back_ms(self) -> float:
        """What the graph costs that the episode hands back if it ends now."""
        return self.best_ms if self.episodes.returned == "best" else self.at.cost_ms

    @property
    def touched(self) -> tuple[Any, Any]:
        """Ids of the nodes that the last rewrite was about: in the graph before (those removed, those changed), and in that after."""
        after = self.at.touched
        if not self.path:
            return frozenset(), after
        return after.union(self.path[-1].match.edit.removed, self.path[-1].match.nodes), after

    def _look(self, last: Match | None = None, before: Priced | None = None) -> None:
        at = self.at
        hidden = () if last is None or before is None else straight_back(at.prices, last, before.prices)
        self.matches: tuple[Match, ...] = tuple([m for m in at.prices if m not in hidden]) if hidden else at.prices.matches
        self.action_space = gymnasium.spaces.Discrete(len(self.matches) + 1)
        again = self.passed.visits > 1
        standing = Standing(self._first.cost_ms, self.best_ms, at.cost_ms, self.horizon - len(self.path), self.horizon, again)
        self.observation = observe(at.table, at.seen, hidden, standing)
