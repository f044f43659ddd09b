"""The local proof: one rewrite, what it removed against what it added, in float64, on random inputs of the real shapes.

Sharp where a whole model is blind: an error early in a deep network may move its output by 1e-7, but it moves the
rewritten part's own result by its full size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cgorl.certificate.inputs import LARGE
from cgorl.ir.extract import Part, name, part
from cgorl.ir.graph import Graph, GraphError
from cgorl.ir.node import Value
from cgorl.ir.oracle import run_float64
from cgorl.ir.run import RunError, random_array
from cgorl.ir.sizes import Sizes
from cgorl.ir.tensor import Array
from cgorl.rules.rounding import allowed
from cgorl.rules.rule import Match

_RUNS = 2
_MOST = 1 << 26
_WIDE = 9
_ANY_SIZE = 3
"""Size of a dim that no symbol explains: a sound rewrite holds for any."""


@dataclass(frozen=True, slots=True)
class RewriteProof:
    """What re-running one rewrite showed; `why` is empty if it holds. Without `refuted` it could not be re-run at all."""

    rule: str
    error: float
    why: str = ""
    refuted: bool = True

    @property
    def ok(self) -> bool:
        """Whether the rewrite is proven."""
        return not self.why


def prove_rewrite(graph: Graph, match: Match, sizes: list[dict[str, int]], rng: np.random.Generator) -> RewriteProof:
    """The proof of `match` in `graph`, for two of the ways in `sizes` to give sizes to the graph's symbols."""
    try:
        return _prove(graph, match, sizes, rng)
    except GraphError as e:
        return RewriteProof(match.rule.name, float("inf"), str(e))


def _prove(graph: Graph, match: Match, sizes: list[dict[str, int]], rng: np.random.Generator) -> RewriteProof:
    after = graph.replace(match.edit)
    old = list(match.edit.rewired)
    base = graph.next_id
    new = [v if v.node >= 0 else Value(base - 2 - v.node, v.port) for v in match.edit.rewired.values()]
    for u, v in zip(old, new, strict=True):
        was, now = graph.type(u), after.type(v)
        if was is not None and now is not None and not was.agrees(now):
            return RewriteProof(match.rule.name, float("inf"), f"the result is {now} instead of {was}")
    inside = {i for i in (*match.nodes, *match.edit.removed)}
    added = part(after, new, range(base, after.next_id))
    probes = [v for v in added.inputs if v.node in inside and v not in old]
    removed = part(graph, [*old, *probes], inside)
    worst, runs, last = 0.0, 0, ""
    for draw in sizes:
        for span in (_WIDE, None):  # integers that are indices or the like allow small ones alone
            try:
                error, why = _compare(graph, removed, added, old, new, Sizes(draw), rng, span, match.rule.tags)
            except RunError as e:
                last = str(e)
                continue
            worst, runs = max(worst, error), runs + 1
            if why:
                return RewriteProof(match.rule.name, worst, why)
            break
        if runs == _RUNS or (runs and any(n >= LARGE for n in draw.values())):
            break
    return RewriteProof(match.rule.name, worst, "" if runs else last, runs > 0)


def _compare(
    graph: Graph,
    removed: Part,
    added: Part,
    old: list[Value],
    new: list[Value],
    sizes: Sizes,
    rng: np.random.Generator,
    span: int | None,
    tags: tuple[str, ...],
) -> tuple[float, str]:
    given: dict[str, Array] = {}
    border = [v for v in dict.fromkeys((*removed.inputs, *added.inputs)) if v not in removed.outputs]
    learned = _learned(graph, border, sizes)
    for v in border:
        kind = sizes.types(graph.nodes.__getitem__, v.node, graph.opset)[v.port]
        if kind is None or kind.shape is None:
            raise RunError(f"the shape of '{graph.label(v)}' is not known, so the rewrite cannot be re-run")
        shape = [d if isinstance(d, int) else learned.get(d or "", _ANY_SIZE) for d in kind.shape]
        if math.prod(shape) > _MOST:
            raise RunError(f"'{graph.label(v)}' would have {math.prod(shape):,} entries")
        drawn = random_array(rng, kind.dtype, shape)
        if span is not None and drawn.dtype.kind in "iu":
            drawn = rng.integers(-span, span + 1, drawn.shape).astype(drawn.dtype)
        given[name(v)] = drawn
    try:
        before = run_float64(removed.model, {n: given[n] for n in map(name, removed.inputs)})
        given.update({n: a for n, a in before.items() if n not in given})
        then = run_float64(added.model, {n: given[n] for n in map(name, added.inputs)})
    except Exception as e:  # the reference evaluator raises whatever numpy does
        raise RunError(f"could not be re-run: {' '.join(str(e).split())[:200]}") from None
    worst = 0.0
    for a, b in zip(old, new, strict=True):
        x, y = before[name(a)], given[name(b)] if name(b) in given else then[name(b)]
        error = relative_error(x, y)
        worst = max(worst, error)
        kind = graph.type(a)
        if not error <= allowed(tags, kind.dtype if kind is not None else None):
            return worst, f"the result differs by {error:.1e} of its largest entry"
    return worst, ""


def _learned(graph: Graph, values: list[Value], sizes: Sizes) -> dict[str, int]:
    """Sizes of symbols that no input has, read off values whose type the file declares with them and inference finds with a number."""
    found: dict[str, int] = {}
    for v in values:
        said, known = graph.type(v), sizes.types(graph.nodes.__getitem__, v.node, graph.opset)[v.port]
        if said is not None and known is not None and said.shape is not None and known.shape is not None:
            for a, b in zip(said.shape, known.shape, strict=True):
                if isinstance(a, str) and isinstance(b, int):
                    found.setdefault(a, b)
    return found


def relative_error(x: Array, y: Array) -> float:
    """Largest difference of `y` from `x` relative to the largest finite entry of `x`; inf where shapes or non-finite entries differ.

    For what is not floating-point: 0 or inf.
    """
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        return float("inf")
    if x.dtype.kind not in "fcV" and y.dtype.kind not in "fcV":
        return 0.0 if np.array_equal(x, y) else float("inf")
    a, b = _wide(x), _wide(y)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = float(np.abs(a[finite]).max())
    gap = float(np.abs(a[finite] - b[finite]).max())
    return 0.0 if gap == 0 else gap / scale if scale > 0 else float("inf")


def _wide(x: Array) -> Array:
    return x if x.dtype.kind == "c" else x.astype(np.float64)
