"""Trace: the rewrites of a search, in order; replayable, as JSON, and re-run without some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.match import closes_cycle, matches
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet


class TraceError(ValueError):
    """A trace that does not fit graph or rules; the message names the step."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One rewrite performed: the match, the ids its new nodes got, and the cost before and after."""

    match: Match
    added: tuple[int, ...]
    before_ms: float
    after_ms: float

    def to_json(self, graph: Graph) -> dict[str, Any]:
        """The step as JSON data; `graph` is the one it was applied to, for the names of its nodes."""
        return {
            "rule": self.match.rule.name,
            "nodes": list(self.match.nodes),
            "names": [graph.nodes[i].name or graph.nodes[i].op for i in self.match.nodes],
            "added": list(self.added),
            "before_ms": self.before_ms,
            "after_ms": self.after_ms,
        }


def to_json(initial: Graph, final: Graph, trace: Sequence[Step], rules: RuleSet) -> dict[str, Any]:
    """The trace with the keys of both ends and the rule set's hash: all that `replay` needs."""
    steps, graph = [], initial
    for step in trace:
        steps.append(step.to_json(graph))
        graph = graph.replace(step.match.edit)
    return {"initial_key": initial.key, "final_key": final.key, "rules_hash": rules.digest, "steps": steps}


def replay(data: Mapping[str, Any], graph: Graph, rules: RuleSet) -> Graph:
    """The graph that a trace leads to from `graph`. Raises TraceError where it does not fit, naming the step."""
    for step in steps(data, graph, rules):
        graph = graph.replace(step.match.edit)
    return graph


def steps(data: Mapping[str, Any], graph: Graph, rules: RuleSet) -> tuple[Step, ...]:
    """The steps of a trace as JSON data, found again from `graph` on. Raises TraceError where it does not fit, naming the step."""
    for key, what in (("initial_key", "the key of a graph"), ("final_key", "the key of a graph"), ("rules_hash", "the hash of its rules")):
        if not isinstance(data.get(key), str):
            raise TraceError(f"this is no trace: '{key}' should be {what}")
    if data["initial_key"] != graph.key:
        raise TraceError("the trace starts from another graph")
    if data["rules_hash"] != rules.digest:
        raise TraceError("the trace was made with another rule set")
    by_name = {r.name: r for r in rules}
    done: list[Step] = []
    for k, step in enumerate(data.get("steps") or ()):
        try:
            rule, nodes = by_name[step["rule"]], tuple(step["nodes"])
            found = [m for m in matches(rule, graph, nodes[0]) if m.nodes == nodes and not closes_cycle(graph, m)]
        except (LookupError, TypeError):
            found = []
        if not found:
            raise TraceError(f"step {k} does not apply: {_words(step)}")
        after = graph.replace(found[0].edit)
        added = tuple(range(graph.next_id, after.next_id))
        done.append(Step(found[0], added, float(step.get("before_ms", 0.0)), float(step.get("after_ms", 0.0))))
        graph = after
    if data["final_key"] != graph.key:
        raise TraceError("the trace ends at another graph than it says")
    return tuple(done)


def _words(step: Any) -> str:
    if not isinstance(step, Mapping):
        return f"{step!r} is no step"
    return f"{step.get('rule')} at nodes {step.get('nodes')} ({step.get('names')})"


def without(graph: Graph, trace: Sequence[Step], dropped: Collection[int]) -> tuple[Graph, dict[int, Step], list[int]]:
    """The trace run again from `graph` leaving out the steps numbered in `dropped`.

    Returns the graph, the steps performed by their old number (matches and ids as they now are, costs as they were), and
    the numbers of those that could not be performed since they rest on a dropped one.
    """
    ids: dict[int, int] = {}
    done: dict[int, Step] = {}
    lost: list[int] = []
    for k, step in enumerate(trace):
        if k in dropped:
            ids.update(dict.fromkeys(step.added, -1))  # its ids will name other nodes: what rests on them must not find those
            continue
        nodes = tuple(ids.get(i, i) for i in step.match.nodes)
        here = matches(step.match.rule, graph, nodes[0]) if all(i in graph.nodes for i in nodes) else []
        found = next((m for m in here if m.nodes == nodes and len(m.edit.added) == len(step.added)), None)
        if found is None or closes_cycle(graph, found):
            lost.append(k)
            ids.update(dict.fromkeys(step.added, -1))
            continue
        after = graph.replace(found.edit)
        made = tuple(range(graph.next_id, after.next_id))
        ids.update(zip(step.added, made, strict=True))
        done[k] = Step(found, made, step.before_ms, step.after_ms)
        graph = after
    return graph, done, lost


def repriced(graph: Graph, trace: Sequence[Step], cost: CostModel) -> tuple[Step, ...]:
    """The same steps with the costs that they have one after another from `graph`."""
    steps: list[Step] = []
    now = cost.cost_ms(graph)
    for step in trace:
        after_ms = now - cost.gain(graph, step.match.edit)
        steps.append(Step(step.match, step.added, now, after_ms))
        graph, now = graph.replace(step.match.edit), after_ms
    return tuple(steps)
