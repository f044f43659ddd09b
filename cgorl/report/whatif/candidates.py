"""Candidates: what can be done at a step of an optimization, by gain or by the chances that a policy gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cgorl.report.rules.places import node_name
from cgorl.report.whatif.branches import Branches
from cgorl.report.whatif.guide import Guide
from cgorl.rules.rule import Match
from cgorl.search.inference import View

SHOWN = 8


def candidates(branches: Branches, number: int, k: int) -> dict[str, Any]:
    """The candidates at step k of a branch (or after its last) as JSON data.

    `rows` are the best (the likeliest of a policy, else those that gain most), and those that were taken somewhere whatever
    their rank: each with its rule, nodes, gain in ms, whether this branch takes it, and which `branches` do. From a policy
    also the chance of each (none where it is not offered: it would undo the step before), the bonus of its curiosity module
    if it has one, and of the whole its value, the value of bonuses to come, and the chance of stopping.
    Raises BranchError, GuideError, AgentError.
    """
    view, guide = branches.view(number, k), branches.guide
    chances: dict[Match, float] = {}
    told: dict[str, Any] = {"by": "gain"}
    if guide is not None:
        thought = guide.thinks(view)
        chances = dict(zip(view.matches, thought.chances, strict=True))
        told = {"by": "policy", "value": thought.value, "curiosity": thought.curiosity, "stop": thought.stop}
    order = list(view.state.best_first())
    if guide is not None:
        order.sort(key=lambda m: -chances.get(m, -1.0))
    taken = {n: (s.match.rule.name, s.match.nodes) for n, s in branches.past(view, k).items()}
    rows = []
    for rank, m in enumerate(order, 1):
        by = [n for n, what in taken.items() if what == (m.rule.name, m.nodes)]
        if rank <= SHOWN or by:
            rows.append((m, {**_row(view, m, rank), "taken": number in by, "branches": by}))
    if guide is not None:
        bonuses = _bonuses(guide, branches, view, [m for m, _ in rows])
        rows = [(m, {**r, "chance": chances.get(m), "bonus": bonuses.get(m)}) for m, r in rows]
    return {**told, "count": len(order), "rows": [r for _, r in rows]}


def _row(view: View, m: Match, rank: int) -> dict[str, Any]:
    where = node_name(view.state.graph, m.nodes[0])
    return {"rank": rank, "rule": m.rule.name, "nodes": list(m.nodes), "at": where, "gain_ms": view.state.gain(m)}


def _bonuses(guide: Guide, branches: Branches, view: View, matches: Sequence[Match]) -> Mapping[Match, float]:
    if not guide.curious:
        return {}
    offered = [m for m in matches if m in set(view.matches)]
    return dict(zip(offered, guide.pays(branches.walk(), view, offered), strict=True))
