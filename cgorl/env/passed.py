"""Passed: the graphs that an episode has come through, and whether it has been at the last one before."""

from __future__ import annotations

from cgorl.ir.graph import Graph

_LEAST_MS = 1e-9


class Passed:
    """A graph and those before it, the latest first. Immutable; keys are made only where another graph could be the same one."""

    __slots__ = ("_before", "_cost_ms", "_graph", "_kinds", "_visits")

    def __init__(self, graph: Graph, cost_ms: float, kinds: int, before: Passed | None = None) -> None:
        """After `before`, the first one without; `kinds` stands for the operators of its running nodes (`NodeTable.kinds`)."""
        self._graph, self._cost_ms, self._kinds, self._before = graph, cost_ms, kinds, before
        self._visits = 0

    @property
    def visits(self) -> int:
        """How often the episode has been at the last graph, by its key, this time included."""
        if not self._visits:
            self._visits, at = 1, self._before
            while at is not None:
                # equal graphs cost the same and run the same operators
                alike = at._kinds == self._kinds and abs(at._cost_ms - self._cost_ms) <= _LEAST_MS
                if alike and at._graph.key == self._graph.key:
                    self._visits = at.visits + 1
                    break
                at = at._before
        return self._visits
