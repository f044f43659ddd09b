"""Best: the cheapest graph that any episode has come to, for each start, and the rewrites that led there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cgorl.env.rewrite import Episodes, Move, RewriteEnv, Start
from cgorl.ir.graph import Graph


class Found(NamedTuple):
    """A graph, what it costs and the rewrites that led there."""

    graph: Graph
    cost_ms: float
    path: tuple[Move, ...]


class Best:
    """Told of each step of each environment. `steps` counts them, `evaluations` the matches that were seen."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self.found: dict[int, Found] = {}
        self.steps = self.evaluations = 0

    def __call__(self, env: RewriteEnv) -> None:
        """Takes what an environment is at, if it is the best."""
        self.steps += 1
        self.evaluations += len(env.at.prices)
        known = self.found.get(env.start)
        if known is None or env.at.cost_ms < known.cost_ms - 1e-12:
            self.found[env.start] = Found(env.at.graph, env.at.cost_ms, tuple(env.path))

    def state(self) -> dict[str, Any]:
        """All that it knows, graphs by the rewrites that lead to them."""
        paths = {k: [(m.match.rule.name, m.match.nodes) for m in f.path] for k, f in self.found.items()}
        return {"steps": self.steps, "evaluations": self.evaluations, "paths": paths}

    def restore(self, told: Mapping[str, Any], starts: Sequence[Start]) -> None:
        """Knows what `state` said. Raises EnvError where a rewrite does not apply."""
        for k, path in told["paths"].items():
            env = RewriteEnv([starts[k]], Episodes(horizon=len(path) + 1))  # however far it went
            for rule, nodes in path:
                env.perform(env.match(rule, nodes))
            self.found[k] = Found(env.at.graph, env.at.cost_ms, tuple(env.path))
        self.steps, self.evaluations = told["steps"], told["evaluations"]
