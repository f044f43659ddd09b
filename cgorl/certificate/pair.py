"""Two models made ready to run on the same inputs, by onnxruntime or by the reference evaluator, and their outputs judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from cgorl.certificate.inputs import feeds, has_defaults
from cgorl.certificate.rewrite import relative_error
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import save
from cgorl.ir.oracle import run_float64, run_reference
from cgorl.ir.run import RunError, Session, short
from cgorl.ir.tensor import Array
from cgorl.ir.to_proto import complete

TOLERANCES = {8: 1e-10, 4: 1e-5, 2: 4e-3, 1: 0.1}
"""Difference that needs no second look, by bytes of the float type, relative to an output's largest entry."""

SLACK = 8.0
"""Beyond that, the optimized model may be so many times as far from float64 as the original is."""

LARGE_BYTES = 1 << 30
"""A model with more weights is run from a file, and float64 is not asked."""

Verdict = tuple[str, float, str, int]
"""Of one value: name, error, what is wrong with it (empty: nothing), ties."""


class Broken(ValueError):
    """The original can be run, the other model cannot; the message says why."""


class Pair:
    """`b` beside the original `a`, run by onnxruntime where that can run the original, else both by the reference evaluator.

    `watched` are the values compared: `outputs`, and `taps` in the middle if the runtime lets them out. Large models go
    through files in `folder`.
    """

    def __init__(self, a: Graph, b: Graph, outputs: list[str], taps: list[str], folder: Path) -> None:
        """Prepares both. Raises Broken, and ModelError where there is no room for a file."""
        self.a, self.why_reference = a, ""
        self._truth: Mapping[str, Any] | None = None
        self._first = self._second = None
        for more in (taps, []) if taps else ([],):
            self.watched = [*outputs, *more]
            self._models = (_ready(a, more, folder / "a.onnx"), _ready(b, more, folder / "b.onnx"))
            self._first, why = _session(self._models[0])
            self._second, why_not = _session(self._models[1]) if self._first is not None else (None, "")
            if self._first is not None and self._second is not None:
                return
        if self._first is not None:
            raise Broken(f"the optimized model does not load: {why_not}")
        self.why_reference = why

    def by_reference(self, why: str) -> bool:
        """Turns to the reference evaluator, since onnxruntime cannot run the original; whether that is something new."""
        if self._first is None or not all(isinstance(m, onnx.ModelProto) for m in self._models):
            return False
        self._first = self._second = None
        self.why_reference = why
        return True

    def run(self, sizes: Mapping[str, int], seed: int) -> list[Verdict]:
        """The verdict on each watched value. Raises RunError if the original cannot be run, and Broken if only the other cannot."""
        given, before = self._original(sizes, seed)
        self._truth = None
        try:
            after = self._run(1, given)
        except Exception as e:  # the reference evaluator raises whatever numpy does
            raise Broken(f"the optimized model does not run: {short(e)}") from None
        return [(n, *judge(n, before[n], after[n], lambda n=n: self._asked(given).get(n))) for n in self.watched]  # type: ignore[misc]

    def _run(self, which: int, given: Mapping[str, Array]) -> Mapping[str, Any]:
        session, model = (self._first, self._second)[which], self._models[which]
        if session is not None:
            return session.run(given, self.watched)
        if not isinstance(model, onnx.ModelProto):
            raise RunError(f"{self.why_reference}; the model is too large for the reference evaluator")
        return run_reference(model, given)

    def _original(self, sizes: Mapping[str, int], seed: int) -> tuple[dict[str, Array], Mapping[str, Any]]:
        why = ""
        for override in (True, False) if seed % 2 and has_defaults(self.a) else (False,):
            for mode in ("random", "ones", "zeros"):
                try:
                    given = feeds(self.a, sizes, np.random.default_rng(seed), mode, override)
                    return given, self._run(0, given)
                except Exception as e:  # see above
                    why = short(e)
        raise RunError(why)

    def _asked(self, given: Mapping[str, Array]) -> Mapping[str, Any]:
        """What the original says in float64; nothing where that cannot be had."""
        if self._truth is None:
            try:
                model = self._models[0]
                self._truth = run_float64(model, given) if isinstance(model, onnx.ModelProto) else {}
            except Exception:  # see above
                self._truth = {}
        return self._truth


def _ready(graph: Graph, taps: list[str], path: Path) -> onnx.ModelProto | Path:
    """The model with `taps` as further outputs; in a file if it is large."""
    large = sum(n.tensor.nbytes for n in graph.nodes.values() if n.holds_tensor) > LARGE_BYTES
    if large:
        save(graph, path)
    model = onnx.load_model(path, load_external_data=False) if large else complete(graph)
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in taps)
    if not large:
        return model
    path.write_bytes(model.SerializeToString())
    return path


def _session(model: onnx.ModelProto | Path) -> tuple[Session | None, str]:
    try:
        return Session(model), ""
    except (RunError, ValueError) as e:
        return None, f"onnxruntime: {short(e)}"


def judge(name: str, x: Any, y: Any, truth: Callable[[], Any]) -> tuple[float, str, int]:
    """Of a value that is `x` in the original and `y` in the other: error, what is wrong, ties. `truth` asks the original in float64."""
    if isinstance(x, list) or isinstance(y, list):
        if not (isinstance(x, list) and isinstance(y, list) and len(x) == len(y)):
            return float("inf"), f"'{name}' is a sequence of another length", 0
        parts = [judge(name, p, q, lambda k=k: _item(truth(), k)) for k, (p, q) in enumerate(zip(x, y, strict=True))]  # type: ignore[misc]
        return max((e for e, _, _ in parts), default=0.0), next((w for _, w, _ in parts if w), ""), sum(t for _, _, t in parts)
    if x is None or y is None:
        return (0.0, "", 0) if x is y else (float("inf"), f"'{name}' is absent in one", 0)
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.ndim != y.ndim:
        return float("inf"), f"'{name}' is {y.dtype}{list(y.shape)} instead of {x.dtype}{list(x.shape)}", 0
    error = relative_error(x, y)
    real = x.dtype.kind in "fcV"
    tolerance = TOLERANCES.get(x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1), 1e-5) if real else 0.0
    if error <= tolerance:
        return error, "", 0
    found = truth()
    if found is None or isinstance(found, list):
        return error, f"'{name}' differs by {error:.1e} of its largest entry, and float64 could not be asked", 0
    t = np.asarray(found)
    if t.shape != x.shape:  # how many entries there are (NonZero, NonMaxSuppression) is itself a tie
        return 0.0, "", 1
    if x.shape != y.shape:
        return float("inf"), f"'{name}' is {y.dtype}{list(y.shape)} instead of {x.dtype}{list(x.shape)}", 0
    return _real(name, x, y, t, error, tolerance) if real else _exact(name, x, y, t, error)


def _item(values: Any, k: int) -> Any:
    return values[k] if isinstance(values, list) and k < len(values) else None


def _exact(name: str, x: Array, y: Array, t: Array, error: float) -> tuple[float, str, int]:
    wrong = (x != y) & (x == t)
    if wrong.any():
        return error, f"'{name}' has {int(wrong.sum())} entries that differ where the original agrees with float64", 0
    return 0.0, "", int((x != y).sum())


def _real(name: str, x: Array, y: Array, t: Array, error: float, tolerance: float) -> tuple[float, str, int]:
    """Where the original overflows by itself nothing is asked; elsewhere `y` must be finite, and not much farther from float64 than `x`."""
    x, y, t = (v if v.dtype.kind == "c" else v.astype(np.float64) for v in (x, y, t))
    fine_x, fine_y, fine_t = np.isfinite(x), np.isfinite(y), np.isfinite(t)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    agrees = np.where(fine_t, fine_x, (x == t) | (np.isnan(x) & np.isnan(t)))
    spoilt = agrees & ~same & ~(fine_t & fine_y)
    if spoilt.any():
        return error, f"'{name}' has {int(spoilt.sum())} infinite or missing numbers in other places", 0
    scale = max(float(np.abs(t[fine_t]).max(initial=0.0)), 1e-300)
    off, was = (float(np.abs(np.where(fine_t & f, v - t, 0)).max(initial=0.0)) / scale for v, f in ((y, fine_y), (x, fine_x)))
    if off <= max(SLACK * was, tolerance):
        return (error if np.isfinite(error) else off), "", 0
    return error, f"'{name}' differs by {error:.1e} of its largest entry; from float64 by {off:.1e}, the original by {was:.1e}", 0
