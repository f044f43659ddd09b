"""The global proof: two whole models on the same inputs, in their own dtype, judged against float64 where they differ."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from cgorl.certificate.inputs import LARGE, chance, draws
from cgorl.certificate.pair import Broken, Pair
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.ir.onnx_io import ModelError
from cgorl.ir.run import RunError

_SIZES = 3
_TAP_BYTES = 128 << 20


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

    def __str__(self) -> str:
        """The verdict in a line."""
        if self.why:
            return f"not equal: {self.why}"
        if not self.runs:
            return f"not compared: {self.skipped}"
        ties = f", {self.ties} ties" if self.ties else ""
        return f"equal on {self.runs} random inputs (largest error {self.error:.0e}{ties})" + (f"; {self.skipped}" if self.skipped else "")

    def __repr__(self) -> str:
        """The verdict in a line."""
        return f"Equivalence({self})"


def compare(a: Graph, b: Graph, dims: Mapping[str, int] | None = None, seeds: int = 3, taps: bool = False) -> Equivalence:
    """The comparison of `b` with the original `a` on `seeds` random inputs for each of up to three sizes of dynamic dims.

    With `taps`, values in the middle that have the same name in both count like outputs (only for models of which one was
    made from the other by the engine, which never gives an old name to another value). What rests on a random operator is
    left out, and `skipped` says so.
    """
    if why := interface_difference(a, b):
        return Equivalence(float("inf"), 0, 0, why)
    random = chance(a)
    names = [o.name for o, v in zip(a.frame.model.graph.output, a.outputs, strict=True) if v.node not in random]
    left_out = [o.name for o, v in zip(a.frame.model.graph.output, a.outputs, strict=True) if v.node in random]
    note = f"not compared, since it rests on random operators: {', '.join(left_out)}" if left_out else ""
    middle = _taps(a, b, random) if taps else []
    if not names and not middle:
        return Equivalence(0.0, 0, 0, "", note)
    try:
        with tempfile.TemporaryDirectory(prefix="cgorl-") as folder:
            return _compare(Pair(a, b, names, middle, Path(folder)), draws(a, dims or {}, _SIZES), seeds, names, note)
    except Broken as e:
        return Equivalence(float("inf"), 0, 0, str(e), note)
    except ModelError as e:
        return Equivalence(0.0, 0, 0, "", f"the models are too large to be compared here: {e}")


def _compare(pair: Pair, sizes: list[dict[str, int]], seeds: int, names: list[str], note: str) -> Equivalence:
    worst: dict[str, float] = {}
    runs = ties = 0
    failed = ""
    for draw in sizes:
        enough = runs >= _SIZES * seeds or (runs > 0 and any(n >= LARGE for n in draw.values()))
        for seed in range(0 if enough else seeds):
            try:
                verdicts = pair.run(draw, seed)
            except RunError as e:
                failed = failed or f"not run with {draw or 'random inputs'}: {e}"
                break
            runs += 1
            for name, error, why, tied in verdicts:
                worst[name] = max(worst.get(name, 0.0), error)
                ties += tied
                if why:
                    return Equivalence(max(worst.values()), runs, len(worst), why, note, ties, worst)
    if not runs and pair.by_reference(failed):
        return _compare(pair, sizes, seeds, names, note)
    outputs = {n: worst[n] for n in names if n in worst}
    skipped = note if runs else failed
    return Equivalence(max(worst.values(), default=0.0), runs, len(worst), "", skipped, ties, outputs)


def _taps(a: Graph, b: Graph, random: Collection[int]) -> list[str]:
    """Names of floating-point values that both graphs compute, spread evenly, 128 MiB of them at most."""
    kinds = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)
    sizes: dict[str, int] = {}
    outputs = {o.name for o in a.frame.model.graph.output}
    for i in a.order():
        node = a.nodes[i]
        for p, n in enumerate(node.names):
            kind = a.type(Value(i, p)) if n else None
            if not (node.is_source or node.constant or i in random) and kind is not None and kind.dtype in kinds and n not in outputs:
                known = [d for d in kind.shape or () if isinstance(d, int)]
                sizes[n] = 4 * int(np.prod(known, dtype=np.int64))
    theirs = {n for node in b.nodes.values() if not (node.is_source or node.constant) for n in node.names if n}
    common = [n for n in sizes if n in theirs]
    step = max(1, -(-sum(sizes[n] for n in common) // _TAP_BYTES))
    return common[::step]


def interface_difference(a: Graph, b: Graph) -> str:
    """What differs between the inputs and outputs of two models, in words; empty if nothing does."""
    for what, x, y in (("input", _inputs(a), _inputs(b)), ("output", _outputs(a), _outputs(b))):
        if list(x) != list(y):
            return f"{what}s are {list(y)} instead of {list(x)}"
        for name, kind in x.items():
            if y[name] != kind:
                return f"{what} '{name}' has another type"
    return ""


def _inputs(graph: Graph) -> dict[str, tuple[onnx.TypeProto, bool]]:
    """Type of each input by name, and whether it has a default (before IR 4 a listed weight is no input)."""
    types = {i.name: i.type for i in graph.frame.model.graph.input}
    nodes = [graph.nodes[i] for i in graph.inputs]
    return {n.names[0]: (types[n.names[0]], "default" in n.attrs) for n in nodes}


def _outputs(graph: Graph) -> dict[str, onnx.TypeProto]:
    return {o.name: o.type for o in graph.frame.model.graph.output}
