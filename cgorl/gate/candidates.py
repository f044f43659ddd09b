"""Candidates: the graphs worth a run beside a search's result: prefixes of its trace, the next best graphs, the trace without a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgorl.ir.fold import fold_rewrites
from cgorl.ir.graph import Graph
from cgorl.search.trace import Step, without
from cgorl.search.way import Way

RESULT = "result"
RULES = 3
"""Of so many rules, those with the largest gains by the prices, it is asked what the trace would be without them."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A graph to measure, ready to be saved, and the steps that lead to it; `anew`: its rewrites have not been proven as they are."""

    name: str
    graph: Graph
    trace: tuple[Step, ...]
    anew: bool = False


def candidates(start: Graph, trace: Sequence[Step], runners_up: Sequence[Way] = ()) -> Iterator[Candidate]:
    """Graphs other than the trace's end, made one by one, the likelier ones first, none twice; `runners_up` lead to the next best.

    Prices err by a little everywhere: the next best graphs are those in which what gained least is done otherwise. And they err
    by rule: where one foretells a gain that is none, the trace without it is the better one.
    """
    lengths = {n: None for n in prefixes([s.before_ms - s.after_ms for s in trace]) if n < len(trace)}
    here, made = start, dict[int, Graph]()
    for n, step in enumerate(trace, 1):
        here = here.replace(step.match.edit)
        if n in lengths:
            made[n] = here
    seen = {here.key, start.key}
    gains: dict[str, float] = {}
    for s in trace:
        gains[s.match.rule.name] = gains.get(s.match.rule.name, 0.0) + s.before_ms - s.after_ms
    left_out = sorted(gains, key=lambda rule: -gains[rule])[: RULES if len(gains) > 1 else 0]
    for n in lengths:
        if made[n].key not in seen:
            seen.add(made[n].key)
            yield Candidate(f"first {n} rewrites", fold_rewrites(made[n]), tuple(trace[:n]))
    for n, way in enumerate(runners_up, 1):
        steps, graph = way.trace(start), start
        for step in steps:
            graph = graph.replace(step.match.edit)
        if graph.key not in seen:
            seen.add(graph.key)
            yield Candidate(f"runner-up {n}", fold_rewrites(graph), steps, True)
    for rule in left_out:
        graph, done, _ = without(start, trace, [k for k, s in enumerate(trace) if s.match.rule.name == rule])
        if graph.key not in seen:
            seen.add(graph.key)
            yield Candidate(f"without {rule}", fold_rewrites(graph), tuple(done.values()), True)


def prefixes(gains: Sequence[float], most: int = 3) -> list[int]:
    """Lengths of those prefixes of a trace that are worth a run: the whole, and where a half and four fifths of the gain are reached."""
    whole = len(gains)
    if whole <= most:
        return list(range(whole, 0, -1))
    total, found, so_far = sum(gains), [whole], 0.0
    for n, gain in enumerate(gains, 1):
        so_far += gain
        for share in (0.5, 0.8):
            if so_far - gain < share * total <= so_far:
                found.append(n)
    return list(dict.fromkeys(found))[:most]
