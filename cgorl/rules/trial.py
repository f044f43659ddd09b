"""Trial: one match in one instance performed, what it removed against what it added, on several inputs and sizes of symbols."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.extract import Part, name, part
from cgorl.ir.graph import Graph, GraphError
from cgorl.ir.node import Value
from cgorl.ir.oracle import evaluator, run_reference
from cgorl.ir.run import RunError, Session
from cgorl.ir.tensor import Array
from cgorl.rules.exact import LIMIT, bound, only_moves
from cgorl.rules.instances import Instance
from cgorl.rules.rounding import allowed
from cgorl.rules.rule import Match

_FEEDS = 2


class Refuted(Exception):
    """A counterexample, in words."""


class Trial:
    """Runs the removed and the added part side by side; `worst` is the largest error, `exact` whether all runs were."""

    def __init__(self, instance: Instance, match: Match) -> None:
        """Performs the match. Raises Refuted if it cannot be, or if it changes a type or takes a node that others use."""
        graph = instance.graph
        _alone(graph, match)
        try:
            after = graph.replace(match.edit)
        except GraphError as e:
            raise Refuted(f"the edit cannot be performed: {e}") from None
        base = graph.next_id
        pairs = [(old, v if v.node >= 0 else Value(base - 2 - v.node, v.port)) for old, v in match.edit.rewired.items()]
        for old, new in pairs:
            if (was := graph.type(old)) is not None and (now := after.type(new)) is not None and not was.agrees(now):
                raise Refuted(f"the type changes from {was} to {now}")
        self.instance, self.labels = instance, [graph.label(old) for old, _ in pairs]
        self.removed, self.added = _Side(graph, [p[0] for p in pairs]), _Side(after, [p[1] for p in pairs])
        self.moves = only_moves(graph, self.removed.values) and only_moves(after, self.added.values)
        kinds = [graph.type(old) for old, _ in pairs]
        self.tolerance = max(allowed(match.rule.tags, None if k is None else k.dtype) for k in kinds)
        self.worst, self.runs, self.exact = 0.0, 0, True

    def run(self, rng: random.Random) -> Trial:
        """Itself, after a few runs for each way to give sizes to symbols. Raises Refuted."""
        for sizes in self.instance.sizes(rng):
            at = f" at {', '.join(f'{k}={v}' for k, v in sizes.items())}" if sizes else ""
            for _ in range(1 if self.runs else _FEEDS):
                if not self._once(self.instance.feeds(sizes, rng), at):
                    break
        return self

    def _once(self, feeds: dict[int, Array], at: str) -> bool:
        """Compares for one set of inputs; false if the source cannot take them, or not to finite numbers."""
        nothing = any(a.size == 0 for a in feeds.values())
        before = self.removed(feeds)
        if before is None or any(not _finite(a) or (a.size == 0 and not nothing) for a in before):
            return False
        then = self.added(feeds)
        if then is None:
            if nothing and not self._runtime_agrees(feeds):
                return False  # the evaluator itself stumbles over some empty arrays
            raise Refuted(f"the target cannot be evaluated{at}: {self.added.fault}")
        whole = self.moves or (self.instance.span > 0 and self._reach(feeds) < LIMIT)
        self._compare(before, then, whole, at)
        if self.moves:
            self._compare(self.removed.native(feeds), self.added.native(feeds), True, at)
        self.runs, self.exact = self.runs + 1, self.exact and whole
        return True

    def _reach(self, feeds: dict[int, Array]) -> float:
        """A bound on every number on the way."""
        fed = {i: float(np.abs(a.astype(np.float64)).max(initial=0.0)) for i, a in feeds.items()}
        shapes = {i: a.shape for i, a in feeds.items()}
        return max(bound(side.graph, side.values, fed, shapes) for side in (self.removed, self.added))

    def _compare(self, before: list[Array], then: list[Array], whole: bool, at: str) -> None:
        for x, y, label in zip(before, then, self.labels, strict=True):
            self.worst = max(self.worst, compare(x, y, 0.0 if whole else self.tolerance, label + at))

    def _runtime_agrees(self, feeds: dict[int, Array]) -> bool:
        """Whether onnxruntime, too, can run the source and not the target."""
        try:
            source, target = Session(self.removed.part.model), Session(self.added.part.model)
            source.run(self.removed.given(feeds, False))
        except RunError:
            return False
        try:
            target.run(self.added.given(feeds, False))
        except RunError:
            return True
        return False


class _Side:
    """Evaluates some values of a graph, given arrays for its inputs."""

    def __init__(self, graph: Graph, values: Sequence[Value]) -> None:
        self.graph, self.values, self.fault = graph, list(values), ""
        self.part: Part = part(graph, list(dict.fromkeys(values)))
        self._session = evaluator(self.part.model)
        self._kinds = [graph.type(v) for v in self.part.inputs]

    def given(self, feeds: Mapping[int, Array], wide: bool) -> dict[str, Array]:
        """The arrays by name, in the model's own types unless `wide`."""
        kinds = zip(self.part.inputs, self._kinds, strict=True)
        return {name(v): feeds[v.node] if wide or k is None else feeds[v.node].astype(tensor_dtype_to_np_dtype(k.dtype)) for v, k in kinds}

    def native(self, feeds: Mapping[int, Array]) -> list[Array]:
        """The arrays of the values in the model's own types."""
        found = run_reference(self.part.model, self.given(feeds, False))
        return [np.asarray(found[name(v)]) for v in self.values]

    def __call__(self, feeds: Mapping[int, Array]) -> list[Array] | None:
        """The arrays of the values in float64; None, and `fault`, where the model cannot take such inputs."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                results = self._session.run(None, self.given(feeds, True))
        except Exception as e:  # the reference evaluator raises whatever numpy does
            self.fault = " ".join(str(e).split())[:150]
            return None
        found = dict(zip(self._session.output_names, results, strict=True))
        return [np.asarray(found[name(v)]) for v in self.values]


def _alone(graph: Graph, match: Match) -> None:
    """Raises Refuted if a node inside the match, not shared, has a user outside."""
    free = {match.bound[label] for label in match.rule.shared}
    inside = set(match.nodes)
    for i in match.nodes:
        if i not in match.roots and i not in free and any(u.node not in inside for u in graph.users[i]):
            raise Refuted(f"'{graph.label(Value(i))}' is inside the match and has another user")


def compare(x: Array, y: Array, tolerance: float, label: str) -> float:
    """The relative error of `y` against `x`. Raises Refuted if it is above `tolerance`, or shapes or types differ."""
    if x.shape != y.shape:
        raise Refuted(f"{label} has shape {list(x.shape)}, rewritten {list(y.shape)}")
    if x.dtype != y.dtype:
        raise Refuted(f"{label} is {x.dtype}, rewritten {y.dtype}")
    if x.dtype.kind != "f":
        if not np.array_equal(x, y):
            raise Refuted(f"{label} differs")
        return 0.0
    if not _finite(y):
        raise Refuted(f"{label} is finite, rewritten not")
    scale, gap = float(np.abs(x).max(initial=0.0)), float(np.abs(x - y).max(initial=0.0))
    if gap > tolerance * scale:
        raise Refuted(f"{label} differs by {gap:.2g}, its largest entry being {scale:.2g}" + ("" if tolerance else ", in exact arithmetic"))
    return gap / scale if scale else 0.0


def _finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
