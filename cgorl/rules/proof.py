"""The proof of a rule: what its matches remove against what they add, on random graphs in which its source occurs.

Matches are found by the rule's own matcher, so its conditions, attributes and shapes are tested as they are. Where source and
target consist of ring operations and movements, inputs and weights are integers, no number on the way can reach 2^53, and
the results must be equal to the bit. That is at least as strong as the same check over a prime field: results that are
equal over the integers are equal modulo every prime, so whatever a field refutes on these numbers the integers refute too;
and an error that is a polynomial of degree d vanishes at one entry of one draw with probability d / (2 span + 1) at most
(Schwartz, Zippel): a proof checks hundreds of entries, at spans of up to 1000. Unlike a field, integers also know Relu,
Max and MaxPool. Other rules are compared in float64, to `TOLERANCE` of the largest entry of the result.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx

from cgorl.ir.extract import part
from cgorl.ir.graph import Graph, GraphError
from cgorl.rules.instances import Instance, draw
from cgorl.rules.match import closes_cycle, explain, matches
from cgorl.rules.pattern import operator
from cgorl.rules.rule import Match, Rule
from cgorl.rules.sampling.attributes import Unfit
from cgorl.rules.trial import Refuted, Trial

_MATCHES = 3


@dataclass(frozen=True, slots=True)
class RuleProof:
    """What a proof showed: graphs drawn, how many of them matched and were proven, how many of those to the bit, the largest error.

    `why` is empty if the rule holds; else it says what failed, and `before` and `after` are a small model and its rewrite
    that differ (no `after` if the matcher failed, neither if too few draws matched). `unmatched` counts the reasons of the
    draws that did not match.
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
        """Whether there is a counterexample: an instance and a rewrite of it that differs."""
        return self.after is not None

    def __str__(self) -> str:
        """One line on the proof."""
        text = f"{self.rule}: {self.proven} of {self.matched} proven ({self.exact} to the bit), {self.drawn} draws, {self.seconds:.2f} s"
        return text + (f", largest error {self.error:.1e}" if self.error else "") + (f"; {self.why}" if self.why else "")


def verify(rule: Rule, rng: np.random.Generator, instances: int = 15, draws: int = 40, least: int = 10) -> RuleProof:
    """The proof of `rule` on `instances` random graphs in which it matches.

    At most `draws` graphs are drawn for each that is asked for; if fewer than `least` (or than asked for) match, the rule
    counts as not reached, which is a failure.
    """
    begin = time.perf_counter()
    seeds = random.Random(int(rng.integers(1 << 62)))
    drawn = matched = proven = exact = 0
    worst = 0.0
    reasons: Counter[str] = Counter()

    def done(why: str = "", before: onnx.ModelProto | None = None, after: onnx.ModelProto | None = None) -> RuleProof:
        seconds, common = time.perf_counter() - begin, tuple(reasons.most_common(5))
        return RuleProof(rule.name, drawn, matched, proven, exact, worst, seconds, why, common, before, after)

    while proven < instances and drawn < draws * instances:
        drawn += 1
        source = random.Random(seeds.getrandbits(62))
        try:
            instance = draw(rule, source)
        except Unfit as e:
            reasons[_plain(f"no draw: {e}")] += 1
            continue
        graph = instance.graph
        try:
            found = _matches(rule, graph)
        except Exception as e:  # whatever a condition or function stumbles over
            return done(f"the matcher fails: {type(e).__name__}: {e}", _whole(graph))
        if not found:
            reasons[_plain(explain(rule, graph, instance.root))] += 1
            continue
        matched += 1
        trials = []
        for match in found[:_MATCHES]:
            try:
                trials.append(Trial(instance, match).run(source))
            except Refuted as e:
                return done(f"{e} ({_words(instance, match)})", *_models(graph, match))
        worst = max(worst, *(t.worst for t in trials))
        if not any(t.runs for t in trials):
            reasons["the source has no finite results"] += 1
            continue
        proven += 1
        exact += all(t.exact for t in trials)
    if proven < min(least, instances):
        common = f": {reasons.most_common(1)[0][0]}" if reasons else ""
        return done(f"not reached, {proven} of {drawn} draws matched and were proven{common}")
    return done()


def verify_all(rules: Iterable[Rule], seed: int = 0, instances: int = 15) -> list[RuleProof]:
    """The proofs of several rules, each from a stream of its own, so that they do not depend on one another."""
    return [verify(r, np.random.default_rng([seed, *r.name.encode()]), instances) for r in rules]


def _matches(rule: Rule, graph: Graph) -> list[Match]:
    """The matches that can be performed, at every node that may be the first root."""
    wanted = operator(rule.source[0]).op
    found = (m for i in sorted(graph.nodes) if graph.nodes[i].op == wanted for m in matches(rule, graph, i))
    return [m for m in found if not closes_cycle(graph, m)]


def _words(instance: Instance, match: Match) -> str:
    """What was matched, operator by operator."""
    graph = instance.graph
    told = []
    for i in sorted(match.nodes):
        node = graph.nodes[i]
        kinds = ", ".join("-" if v is None else ("const " if graph.is_constant(v) else "") + str(graph.type(v)) for v in node.inputs)
        said = "".join(f" {k}={v}" for k, v in node.attrs.items())
        told.append(f"{node.op}({kinds}){said}")
    return f"opset {graph.opset}: {'; '.join(told)}"


def _models(graph: Graph, match: Match) -> tuple[onnx.ModelProto, onnx.ModelProto | None]:
    """An instance and its rewrite as models."""
    try:
        return _whole(graph), _whole(graph.replace(match.edit))
    except GraphError:
        return _whole(graph), None


def _whole(graph: Graph) -> onnx.ModelProto:
    return part(graph, list(dict.fromkeys(graph.outputs))).model


def _plain(reason: str) -> str:
    """A reason without what differs from draw to draw."""
    return re.sub(r"'[^']*'", "'..'", re.sub(r"\([^()]*\)|\[[^\]]*\]|-?\d+(\.\d+)?", "..", reason))[:120]
