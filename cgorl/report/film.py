"""Film: an optimization step by step, each with the graph before and after it and where in the network it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.pipeline import Outcome
from cgorl.report.graphs.colours import ADDED, MATCHED, REMOVED
from cgorl.report.graphs.scene import near
from cgorl.report.ledger import ledger
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.trace import Step, repriced, steps

_HOPS, _CROWDED = 2, 40


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """The steps of an optimization, and the graphs between them: `graphs[k]` is what step k is applied to, the last what comes of all.

    `rows` are the entries of the ledger, one a step.
    """

    graphs: tuple[Graph, ...]
    steps: tuple[Step, ...]
    rows: tuple[Mapping[str, Any], ...]
    rules: RuleSet

    @classmethod
    def of(cls, outcome: Outcome) -> Film:
        """The film of a finished job."""
        return cls._made(outcome.start, outcome.trace, ledger(outcome), outcome.rules)

    @classmethod
    def read(cls, trace: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None, start: Graph, rules: RuleSet) -> Film:
        """The film of a trace as JSON data, applied to `start`; `rows` of its ledger if it was kept. Raises TraceError."""
        found = steps(trace, start, rules)
        return cls._made(start, found, rows if rows is not None and len(rows) == len(found) else trace.get("steps", ()), rules)

    @classmethod
    def _made(cls, start: Graph, steps_: tuple[Step, ...], rows: Sequence[Mapping[str, Any]], rules: RuleSet) -> Film:
        graphs = [start]
        for step in steps_:
            graphs.append(graphs[-1].replace(step.match.edit))
        return cls(tuple(graphs), steps_, tuple(rows), rules)

    @property
    def costs_ms(self) -> list[float]:
        """The cost before the first step and after each."""
        return [self.steps[0].before_ms, *(s.after_ms for s in self.steps)] if self.steps else []

    def until(self, k: int) -> Film:
        """Its first k steps."""
        return Film(self.graphs[: k + 1], self.steps[:k], self.rows[:k], self.rules)

    def then(self, match: Match, graph: Graph, before_ms: float, after_ms: float) -> Film:
        """The same with one step more, which leads to `graph`."""
        last = self.graphs[-1]
        step = Step(match, tuple(range(last.next_id, graph.next_id)), before_ms, after_ms)
        row = {**step.to_json(last), "measured": {"share": None, "why": "not measured"}}
        return Film((*self.graphs, graph), (*self.steps, step), (*self.rows, row), self.rules)

    def priced(self, cost: CostModel) -> Film:
        """The same by other prices."""
        found = repriced(self.graphs[0], self.steps, cost)
        rows = [{**r, "before_ms": s.before_ms, "after_ms": s.after_ms} for r, s in zip(self.rows, found, strict=True)]
        return Film(self.graphs, found, tuple(rows), self.rules)

    def around(self, k: int) -> tuple[Cut, Cut]:
        """The neighbourhood of step k before it, and the same after it."""
        step, before, after = self.steps[k], self.graphs[k], self.graphs[k + 1]
        matched = {i for i in step.match.nodes if not before.nodes[i].constant}
        removed = {i for i in before.nodes if i not in after.nodes and not before.nodes[i].constant}
        added = {i for i in step.added if i in after.nodes and not after.nodes[i].constant}
        core = matched | removed
        context = near(before, core, _HOPS)
        if len(context) > _CROWDED:
            context = near(before, core, 1)
        kept = matched - removed
        marks = {**dict.fromkeys(kept, MATCHED), **dict.fromkeys(removed, REMOVED)}
        then = {**{i: MATCHED for i in kept if i in after.nodes}, **dict.fromkeys(added, ADDED)}
        return Cut(before, context, marks), Cut(after, (context - removed) | added, then)

    def origins(self) -> list[frozenset[int]]:
        """For each step, the nodes of the first graph that what it matched came from."""
        came: dict[int, frozenset[int]] = {}
        found = []
        for step in self.steps:
            at = frozenset().union(*(came.get(i, frozenset((i,))) for i in step.match.nodes))
            came.update(dict.fromkeys(step.added, at))
            found.append(at)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A part of a graph to draw, and the marks of its nodes (see `graphs.colours`)."""

    graph: Graph
    nodes: set[int]
    marks: Mapping[int, int]
