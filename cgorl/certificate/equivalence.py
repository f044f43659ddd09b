"""The global proof: two whole models on the same inputs, in their own dtype, judged against float64 where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from cgorl.certificate.inputs import draws, feeds
from cgorl.certificate.rewrite import relative_error
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.ir.oracle import run_float64, run_reference
from cgorl.ir.run import RunError, Session
from cgorl.ir.tensor import Array
from cgorl.ir.to_proto import complete

TOLERANCES = {8: 1e-10, 4: 1e-5, 2: 4e-3, 1: 0.1}
"""Difference that needs no second look, by bytes of the float type, relative to an output's largest entry."""

SLACK = 8.0
"""Beyond that, the optimized model may be so many times as far from float64 as the original is."""

_SIZES = 3
_TAP_BYTES = 128 << 20
_ORACLE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Whether two models agree; `why` is empty if they do, `skipped` says what could not be looked at."""

    error: float
    runs: int
    values: int
    why: str = ""
    skipped: str = ""
    ties: int = 0
    outputs: Mapping[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether no difference was found."""
        return not self.why

    def __bool__(self) -> bool:
        """Whether no difference was found."""
        return self.ok


def compare(a: Graph, b: Graph, dims: Mapping[str, int] | None = None, seeds: int = 3, taps: bool = False) -> Equivalence:
    """The comparison of `b` with the original `a` on `seeds` random inputs for each of up to three sizes of dynamic dims.

    With `taps`, values in the middle that have the same name in both count like outputs (only for models of which one was
    made from the other by the engine, which never gives an old name to another value).
    """
    why = interface_difference(a.frame.model, b.frame.model)
    if why:
        return Equivalence(float("inf"), 0, 0, why)
    first, second = complete(a), complete(b)
    names = [o.name for o in first.graph.output]
    middle = _taps(a, b) if taps else []
    pair = _Pair(first, second, names, middle)
    worst: dict[str, float] = {}
    runs = ties = 0
    skipped = pair.skipped
    for sizes in draws(a, dims or {}, _SIZES):
        if runs >= _SIZES * seeds:
            break
        for seed in range(seeds):
            try:
                outcome = pair.run(a, sizes, seed)
            except RunError as e:
                skipped = skipped or f"not run with {sizes or 'random inputs'}: {e}"
                break
            runs += 1
            for name, error, why, tied in outcome:
                worst[name] = max(worst.get(name, 0.0), error)
                ties += tied
                if why:
                    return Equivalence(max(worst.values()), runs, len(worst), why, skipped, ties, worst)
    outputs = {n: worst[n] for n in names if n in worst}
    return Equivalence(max(worst.values(), default=0.0), runs, len(worst), "", skipped if not runs else "", ties, outputs)


class _Pair:
    """Two models ready to run on the same inputs: by onnxruntime, or both by the reference evaluator."""

    def __init__(self, first: onnx.ModelProto, second: onnx.ModelProto, outputs: list[str], taps: list[str]) -> None:
        self.models, self.outputs, self.taps = (first, second), outputs, taps
        self.skipped = ""
        self._oracle: Mapping[str, Any] | None = None
        for watched in ([*taps], []):
            try:
                self.watched = [*outputs, *watched]
                sessions = [Session(_watching(m, watched)) for m in self.models]
                self._runners: list[Callable[[Mapping[str, Array]], Mapping[str, Any]]] = [s.run for s in sessions]
                return
            except (RunError, ValueError) as e:
                self.skipped = f"onnxruntime: {e}"
        self.watched = list(outputs)
        self._runners = [lambda f, m=m: run_reference(m, f) for m in self.models]  # type: ignore[misc]

    def run(self, a: Graph, sizes: Mapping[str, int], seed: int) -> Iterable[tuple[str, float, str, int]]:
        """Per watched value: name, error, what is wrong with it, ties. Raises RunError if the original cannot be run."""
        given, before = self._original(a, sizes, seed)
        self._oracle = None
        try:
            after = self._runners[1](given)
        except Exception as e:
            return [("", float("inf"), f"the optimized model does not run: {' '.join(str(e).split())[:200]}", 0)]
        return [(n, *self._judge(n, before[n], after[n], given)) for n in self.watched]

    def _original(self, a: Graph, sizes: Mapping[str, int], seed: int) -> tuple[dict[str, Array], Mapping[str, Any]]:
        for mode in ("random", "ones", "zeros"):
            try:
                given = feeds(a, sizes, np.random.default_rng(seed), mode)
                return given, self._runners[0](given)
            except Exception as e:
                last = e
        raise RunError(" ".join(str(last).split())[:200])

    def _judge(self, name: str, x: Any, y: Any, given: Mapping[str, Array]) -> tuple[float, str, int]:
        if isinstance(x, list) or isinstance(y, list):
            same = isinstance(x, list) and isinstance(y, list) and len(x) == len(y)
            parts = [self._judge(name, p, q, given) for p, q in zip(x, y, strict=True)] if same else []
            bad = next((w for _, w, _ in parts if w), "") if same else f"'{name}' is a sequence of another length"
            return max((e for e, _, _ in parts), default=0.0), bad, 0
        if x is None or y is None:
            return (0.0, "", 0) if x is y else (float("inf"), f"'{name}' is absent in one", 0)
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf"), f"'{name}' is {y.dtype}{list(y.shape)} instead of {x.dtype}{list(x.shape)}", 0
        error = relative_error(x, y)
        real = x.dtype.kind in "fcV"
        if error == 0 or (real and error <= TOLERANCES.get(x.dtype.itemsize if x.dtype.kind != "c" else 4, 1e-5)):
            return error, "", 0
        truth = self._truth(given).get(name)
        if truth is None or np.asarray(truth).shape != x.shape:
            return error, f"'{name}' differs by {error:.1e} of its largest entry, and float64 could not be asked", 0
        if real:
            off, was = relative_error(truth, y), relative_error(truth, x)
            if off <= SLACK * was:
                return error, "", 0
            return error, f"'{name}' differs by {error:.1e} of its largest entry; from float64 by {off:.1e}, the original by {was:.1e}", 0
        truth = np.asarray(truth)
        wrong = (x != y) & (x == truth)
        if not wrong.any():
            return 0.0, "", int((x != y).sum())
        return error, f"'{name}' has {int(wrong.sum())} entries that differ where the original agrees with float64", 0

    def _truth(self, given: Mapping[str, Array]) -> Mapping[str, Any]:
        if self._oracle is None:
            try:
                model = _watching(self.models[0], self.watched[len(self.outputs) :])
                self._oracle = run_float64(model, given) if model.ByteSize() < _ORACLE_BYTES else {}
            except Exception:  # the reference evaluator raises whatever numpy does
                self._oracle = {}
        return self._oracle


def _watching(model: onnx.ModelProto, taps: list[str]) -> onnx.ModelProto:
    if not taps:
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.graph.output.extend(onnx.ValueInfoProto(name=n) for n in taps)
    return made


def _taps(a: Graph, b: Graph) -> list[str]:
    """Names of floating-point values that both graphs compute, spread evenly, 128 MiB of them at most."""
    kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)
    sizes: dict[str, int] = {}
    outputs = {o.name for o in a.frame.model.graph.output}
    for i in a.order():
        node = a.nodes[i]
        for p, n in enumerate(node.names):
            kind = a.type(Value(i, p)) if n else None
            if not (node.is_source or node.constant) and kind is not None and kind.dtype in kinds and n not in outputs:
                known = [d for d in kind.shape or () if isinstance(d, int)]
                sizes[n] = 4 * int(np.prod(known, dtype=np.int64))
    theirs = {n for node in b.nodes.values() if not (node.is_source or node.constant) for n in node.names if n}
    common = [n for n in sizes if n in theirs]
    step = max(1, -(-sum(sizes[n] for n in common) // _TAP_BYTES))
    return common[::step]


def interface_difference(a: onnx.ModelProto, b: onnx.ModelProto) -> str:
    """What differs between the inputs and outputs of two models, in words; empty if nothing does."""
    for what, x, y in (("inputs", a.graph.input, b.graph.input), ("outputs", a.graph.output, b.graph.output)):
        skip_a = {t.name for t in a.graph.initializer}
        mine, theirs = [v for v in x if v.name not in skip_a], [v for v in y if v.name in {w.name for w in x} or v.name not in skip_a]
        names, others = [v.name for v in mine], [v.name for v in theirs]
        if a.ir_version >= 4 and names != others:
            return f"{what} are {others} instead of {names}"
        for v in mine:
            w = next((u for u in theirs if u.name == v.name), None)
            if w is None or w.type != v.type:
                return f"{what[:-1]} '{v.name}' has another type"
    return ""
