"""Candidates: what else could have been done at a step of an optimization, by gain or by the chances that a policy gives it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from cgorl.cost.model import CostModel
from cgorl.report.film import Film
from cgorl.report.rules.places import node_name
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule import Match

SHOWN = 8


class Candidates(Protocol):
    """Asked about a step by number: JSON data with `rows` (best first, the one taken among them), `count` and `by`."""

    def at(self, k: int) -> Mapping[str, Any]:
        """The candidates at step k."""
        ...


class ByGain:
    """All matches of the graph, the largest gain by the prices first."""

    def __init__(self, film: Film, cost: CostModel) -> None:
        self._film, self._cost = film, cost

    def at(self, k: int) -> Mapping[str, Any]:
        """The candidates at step k."""
        graph = self._film.graphs[k]
        found = [(self._cost.gain(graph, m.edit), m) for m in MatchSet(graph, self._film.rules)]
        found.sort(key=lambda pair: -pair[0])
        rows = [self._row(k, m, gain) for gain, m in found]
        return {"by": "gain", "count": len(rows), "rows": shown(rows)}

    def _row(self, k: int, m: Match, gain: float) -> dict[str, Any]:
        return row(self._film, k, m, gain)


class ByPolicy:
    """What a trained policy thinks of each match, the likeliest first, with what it expects and how curious it is.

    The episode is replayed from its start, as the policy would have seen it.
    """

    def __init__(self, film: Film, cost: CostModel, policy: str | Path) -> None:
        """Raises AgentError for a file that holds no policy."""
        from cgorl.agent import checkpoint  # the agent's packages, which only this needs
        from cgorl.env.rewrite import Episodes, RewriteEnv, Start

        self._film = film
        self._policy, _ = checkpoint.policy(policy, film.rules)
        start = Start.of(film.graphs[0], film.rules, cost, greedy=len(film.steps))
        self._env = RewriteEnv([start], Episodes(horizon=max(16, len(film.steps))))
        self._known: list[Mapping[str, Any]] = []

    def at(self, k: int) -> Mapping[str, Any]:
        """The candidates at step k. Raises EnvError where the step before it is none that the policy could have chosen."""
        while len(self._known) <= k:
            if self._known:
                last = self._film.steps[len(self._known) - 1].match
                self._env.perform(self._env.match(last.rule.name, last.nodes))
            self._known.append(self._look(len(self._known)))
        return self._known[k]

    def _look(self, k: int) -> Mapping[str, Any]:
        from cgorl.agent.batch import batch

        logp, value, curious = (t.detach() for t in self._policy(batch([self._env.observation])))
        chances = [math.exp(v) for v in logp.tolist()]
        found = sorted(zip(chances, self._env.matches, strict=False), key=lambda pair: -pair[0])
        rows = [{**row(self._film, k, m, self._env.at.gain(m)), "chance": chance} for chance, m in found]
        about = {"value": float(value[0]), "curiosity": float(curious[0]), "stop": chances[-1]}
        return {"by": "policy", "count": len(rows), "rows": shown(rows), **about}


def row(film: Film, k: int, m: Match, gain: float) -> dict[str, Any]:
    """One candidate as JSON data."""
    step, graph = film.steps[k], film.graphs[k]
    taken = m.rule.name == step.match.rule.name and m.nodes == step.match.nodes
    return {"rule": m.rule.name, "at": node_name(graph, m.nodes[0]), "gain_ms": gain, "taken": taken}


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first few, and the one that was taken with its rank."""
    ranked = [{**r, "rank": k + 1} for k, r in enumerate(rows)]
    return ranked[:SHOWN] + [r for r in ranked[SHOWN:] if r["taken"]]
