"""The proof of a rule: what its matches remove against what they add, on random graphs in which its source occurs.

Matches are found by the rule's own matcher, so its conditions, attributes and shapes are tested as they are. Where source and
target consist of ring operations and movements, inputs and weights are small integers, no number on the way can reach 2^53,
and the results must be equal to the bit. That is at least as strong as the same check over a prime field: results that are
equal over the integers are equal modulo every prime, so whatever a field refutes on these numbers the integers refute too;
and a wrong rule whose error is a polynomial of degree d survives one entry of one draw with probability d / (2 span + 1) at
most (Schwartz, Zippel), of which a proof checks hundreds, at spans up to 1000. Unlike a field, integers also know Relu, Max and MaxPool.
Other rules are compared in float64, to `TOLERANCE` of the largest entry of the result.
"""

from __future__ import annotations

import math
import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from cgorl.ir.extract import Part, name, part
from cgorl.ir.graph import Graph, GraphError
from cgorl.ir.node import Value
from cgorl.ir.oracle import evaluator
from cgorl.ir.tensor import Array
from cgorl.rules.exact import LIMIT, bound
from cgorl.rules.instances import Instance, draw
from cgorl.rules.match import closes_cycle, explain, matches
from cgorl.rules.pattern import operator
from cgorl.rules.rule import Match, Rule
from cgorl.rules.sketch import Unfit

TOLERANCE = 1e-9
"""Largest difference that passes, relative to the largest entry of the result, where arithmetic is not exact."""

_BINDINGS = 3
_FEEDS = 2


@dataclass(frozen=True, slots=True)
class RuleProof:
    """What a proof showed: draws made, how many of them matched and were proven, how many of those exactly, the largest error.

    `why` is empty if the rule holds; else it says what failed, and `before` and `after` are a small model and its rewrite
    that differ (None for a rule that too few draws reached). `unmatched` counts the reasons why draws did not match.
    """

    rule: str
    drawn: int
    matched: int
    proven: int
    exact: int
    error: float
    seconds: float
    why: str = ""
    unmatched: tuple[tuple[str, int], ...] = ()
    before: onnx.ModelProto | None = None
    after: onnx.ModelProto | None = None

    @property
    def ok(self) -> bool:
        """Whether the rule is proven."""
        return not self.why

    @property
    def refuted(self) -> bool:
        """Whether there is a counterexample."""
        return self.before is not None

    def __str__(self) -> str:
        """One line on the proof."""
        text = (
            f"{self.rule}: {self.proven} of {self.matched} matches proven ({self.exact} exactly), {self.drawn} draws, {self.seconds:.2f} s"
        )
        return text + (f"; largest error {self.error:.1e}" if self.error else "") + (f"; {self.why}" if self.why else "")


class _Wrong(Exception):
    """A counterexample, in words."""


def verify(rule: Rule, rng: np.random.Generator, instances: int = 15, draws: int = 40, least: int = 10) -> RuleProof:
    """The proof of `rule` on `instances` random graphs in which it matches.

    At most `draws` graphs are drawn for each that is asked for; fewer matching ones than `least` (or than asked for) fail.
    """
    begin = time.perf_counter()
    seeds = random.Random(int(rng.integers(1 << 62)))
    drawn = matched = proven = exact = 0
    worst = 0.0
    reasons: Counter[str] = Counter()

    def done(why: str = "", models: tuple[onnx.ModelProto, onnx.ModelProto | None] | tuple[()] = ()) -> RuleProof:
        seconds = time.perf_counter() - begin
        return RuleProof(rule.name, drawn, matched, proven, exact, worst, seconds, why, tuple(reasons.most_common(5)), *models)

    while proven < instances and drawn < draws * instances:
        drawn += 1
        source = random.Random(seeds.getrandbits(62))
        try:
            instance = draw(rule, source)
        except Unfit as e:
            reasons[f"no draw: {_plain(str(e))}"] += 1
            continue
        graph = instance.graph
        try:
            found = _matches(rule, graph)
        except Exception as e:  # whatever a condition or function stumbles over
            return done(f"the matcher fails: {type(e).__name__}: {e}", (part(graph, list(dict.fromkeys(graph.outputs))).model, None))
        if not found:
            reasons[_plain(explain(rule, graph, instance.root))] += 1
            continue
        matched += 1
        compared = 0
        for match in found[:3]:
            try:
                error, runs, whole = _proven(instance, match, source)
            except _Wrong as e:
                return done(f"{e} ({_words(instance, match)})", _models(graph, match))
            worst, compared = max(worst, error), compared + runs
            exact += whole
        proven += compared > 0
        if not compared:
            reasons["the source could not be evaluated to finite numbers"] += 1
    if proven < min(least, instances):
        common = f": {reasons.most_common(1)[0][0]}" if reasons else ""
        return done(f"not reached: {proven} of {drawn} draws matched and were proven{common}")
    return done()


def _matches(rule: Rule, graph: Graph) -> list[Match]:
    """The matches that can be performed, for every node that may be the first root."""
    wanted = operator(rule.source[0]).op
    found = (m for i in sorted(graph.nodes) if graph.nodes[i].op == wanted for m in matches(rule, graph, i))
    return [m for m in found if not closes_cycle(graph, m)]


def _proven(instance: Instance, match: Match, rng: random.Random) -> tuple[float, int, bool]:
    """Largest error, comparisons made, and whether all were exact. Raises _Wrong."""
    graph = instance.graph
    _alone(graph, match)
    try:
        after = graph.replace(match.edit)
    except GraphError as e:
        raise _Wrong(f"the edit cannot be performed: {e}") from None
    base = graph.next_id
    pairs = [(old, v if v.node >= 0 else Value(base - 2 - v.node, v.port)) for old, v in match.edit.rewired.items()]
    for old, new in pairs:
        if (was := graph.type(old)) is not None and (now := after.type(new)) is not None and not was.agrees(now):
            raise _Wrong(f"the type changes from {was} to {now}")
    removed, added = _Run(graph, [p[0] for p in pairs]), _Run(after, [p[1] for p in pairs])
    worst, runs, exact = 0.0, 0, True
    for sizes in instance.sizes(rng)[: _BINDINGS + 2]:
        for _ in range(_FEEDS if not runs else 1):
            feeds = instance.feeds(sizes, rng)
            before = removed(feeds)
            if before is None or any(not _finite(a) for a in before):
                break
            try:
                then = added.strict(feeds)
            except Exception as e:  # the reference evaluator raises whatever numpy does
                raise _Wrong(f"the target cannot be evaluated{_at(sizes)}: {' '.join(str(e).split())[:150]}") from None
            fed = {i: float(np.abs(a.astype(np.float64)).max(initial=0.0)) for i, a in feeds.items()}
            shapes = {i: a.shape for i, a in feeds.items()}
            reach = max(bound(graph, removed.values, fed, shapes), bound(after, added.values, fed, shapes)) if instance.span else math.inf
            whole = reach < LIMIT
            for x, y, (old, _) in zip(before, then, pairs, strict=True):
                worst = max(worst, _compare(x, y, whole, graph.label(old) + _at(sizes)))
            runs, exact = runs + 1, exact and whole
    return worst, runs, exact and runs > 0


class _Run:
    """Evaluates some values of a graph in float64, given arrays for its inputs."""

    def __init__(self, graph: Graph, values: Sequence[Value]) -> None:
        self.values = list(values)
        self.part: Part = part(graph, list(dict.fromkeys(values)))
        self._session = evaluator(self.part.model)
        self._names = [name(v) for v in self.part.inputs]

    def strict(self, feeds: Mapping[int, Array]) -> list[Array]:
        """The arrays of the values; raises what the evaluator raises."""
        given = {n: feeds[v.node] for n, v in zip(self._names, self.part.inputs, strict=True)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = dict(zip(self._session.output_names, self._session.run(None, given), strict=True))
        return [np.asarray(found[name(v)]) for v in self.values]

    def __call__(self, feeds: Mapping[int, Array]) -> list[Array] | None:
        """The arrays, or None where the model cannot take such inputs."""
        try:
            return self.strict(feeds)
        except Exception:  # the reference evaluator raises whatever numpy does
            return None


def _alone(graph: Graph, match: Match) -> None:
    """Raises _Wrong if a node inside the match, not shared, has a user outside."""
    free = {match.bound[label] for label in match.rule.shared}
    inside = set(match.nodes)
    for i in match.nodes:
        if i not in match.roots and i not in free and any(u.node not in inside for u in graph.users[i]):
            raise _Wrong(f"'{graph.label(Value(i))}' is inside the match and has another user")


def _finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _compare(x: Array, y: Array, whole: bool, label: str) -> float:
    """The relative error of `y` against `x`. Raises _Wrong if it is too large, or not 0 where arithmetic is exact (`whole`)."""
    if x.shape != y.shape:
        raise _Wrong(f"{label} has shape {list(x.shape)}, rewritten {list(y.shape)}")
    if x.dtype != y.dtype:
        raise _Wrong(f"{label} is {x.dtype}, rewritten {y.dtype}")
    if x.dtype.kind != "f":
        if not np.array_equal(x, y):
            raise _Wrong(f"{label} differs")
        return 0.0
    if not _finite(y):
        raise _Wrong(f"{label} is finite, rewritten not")
    scale, gap = float(np.abs(x).max(initial=0.0)), float(np.abs(x - y).max(initial=0.0))
    if gap > 0 and (whole or gap > TOLERANCE * scale):
        raise _Wrong(f"{label} differs by {gap:.2g}, its largest entry being {scale:.2g}" + (", in exact arithmetic" if whole else ""))
    return gap / scale if scale else 0.0


def _at(sizes: Mapping[str, int]) -> str:
    return f" at {', '.join(f'{k}={v}' for k, v in sizes.items())}" if sizes else ""


def _words(instance: Instance, match: Match) -> str:
    graph = instance.graph
    told = []
    for i in sorted(match.nodes):
        node = graph.nodes[i]
        kinds = ", ".join("-" if v is None else ("const " if graph.is_constant(v) else "") + str(graph.type(v)) for v in node.inputs)
        said = "".join(f" {k}={v}" for k, v in node.attrs.items())
        told.append(f"{node.op}({kinds}){said}")
    return f"opset {graph.opset}: {'; '.join(told)}"


def _models(graph: Graph, match: Match) -> tuple[onnx.ModelProto, onnx.ModelProto | None]:
    """The instance and its rewrite as models."""
    before = part(graph, list(dict.fromkeys(graph.outputs))).model
    try:
        after = graph.replace(match.edit)
        return before, part(after, list(dict.fromkeys(after.outputs))).model
    except GraphError:
        return before, None


def _plain(reason: str) -> str:
    """A reason without what differs from draw to draw."""
    return re.sub(r"'[^']*'", "'..'", re.sub(r"\([^()]*\)|\[[^\]]*\]|-?\d+(\.\d+)?", "..", reason))[:120]


def verify_all(rules: Iterable[Rule], seed: int = 0, instances: int = 15) -> list[RuleProof]:
    """The proofs of several rules, each drawn from a stream of its own, so that they do not depend on one another."""
    return [verify(r, np.random.default_rng([seed, *r.name.encode()]), instances) for r in rules]
