"""Computing constants ahead of time."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import onnx

from cgorl.ir.extract import cone, name, part
from cgorl.ir.graph import Graph
from cgorl.ir.node import TensorType, Value, constant
from cgorl.ir.ops import foldable
from cgorl.ir.oracle import run_float64, run_reference
from cgorl.ir.run import RunError, Session
from cgorl.ir.tensor import Array, Tensor, element_bits

log = logging.getLogger(__name__)

SMALL_BYTES = 1 << 16
"""A result of up to so many bytes is always worth computing ahead."""

_BATCH_BYTES = 256 << 20
"""Weights that one session gets; also the largest value worth making on the way to a small one."""

_UNBOUNDED = frozenset({"Expand", "Tile", "ConstantOfShape", "Range", "Resize", "Pad", "OneHot", "EyeLike", "Upsample", "GatherND"})


def fold_native(graph: Graph) -> dict[Value, Tensor]:
    """Contents of the constants that running nodes read, computed in the model's own dtypes by onnxruntime.

    Left out is what would make the file larger: a result above 64 KiB that is not outweighed by weights which nothing
    else reads. Its operands are then tried in its place. What no runtime can compute is left as it is.
    """
    done: dict[Value, Tensor] = {}
    for batch in _batches(graph, _frontier(graph)):
        for v, array in _evaluate(graph, batch).items():
            kind = graph.type(v)
            if kind is None or not kind.agrees(TensorType(kind.dtype, array.shape)):
                continue  # the file declares something else: whom to believe is not decided here
            held = onnx.helper.tensor_dtype_to_np_dtype(kind.dtype)
            if array.dtype.kind in "ui" and array.dtype != held:
                array = array.view(held)  # onnxruntime gives float8 as bytes
            made = Tensor.of(array, kind.dtype)
            if made.nbytes <= SMALL_BYTES or kind.static or made.nbytes <= _released(graph, v.node):
                done[v] = made
    return done


def _batches(graph: Graph, values: Sequence[Value]) -> Iterator[list[Value]]:
    """`values` in portions that rest on so many bytes of weights that one session takes them."""
    batch: list[Value] = []
    seen: set[int] = set()
    size = 0
    for v in values:
        need = sum(graph.nodes[i].tensor.nbytes for i in _reach(graph, v.node, seen) if graph.nodes[i].is_constant)
        if batch and size + need > _BATCH_BYTES:
            yield batch
            batch, seen, size = [], set(), 0
            need = sum(graph.nodes[i].tensor.nbytes for i in _reach(graph, v.node, seen) if graph.nodes[i].is_constant)
        batch.append(v)
        size += need
    if batch:
        yield batch


def _reach(graph: Graph, node: int, seen: set[int]) -> list[int]:
    """The nodes that `node` rests on, itself included, which were not `seen` before; adds them."""
    found, stack = [], [node]
    while stack:
        i = stack.pop()
        if i not in seen:
            seen.add(i)
            found.append(i)
            stack.extend(v.node for v in graph.nodes[i].reads())
    return found


def _frontier(graph: Graph) -> list[Value]:
    bounded = _bounded(graph)
    found: dict[Value, None] = {}
    stack = [v for n in graph.nodes.values() if not n.constant for v in n.reads()] + list(graph.outputs)
    seen: set[Value] = set()
    while stack:
        v = stack.pop()
        node = graph.node(v)
        if v in seen or not node.constant or node.is_source:
            continue
        seen.add(v)
        if v.node in bounded and _worth(graph, v):
            found[v] = None
        else:
            stack.extend(node.reads())
    return sorted(found)


def _bounded(graph: Graph) -> set[int]:
    """Constants that can be computed without making something far larger than the weights they rest on."""
    found: set[int] = set()
    for i in graph.order():
        node = graph.nodes[i]
        if node.is_constant:
            found.add(i)
        elif node.constant and all(v.node in found for v in node.reads()):
            sizes = [_bytes(kind) for kind in node.types]
            if None in sizes:
                read = [_bytes(graph.type(v)) for v in node.reads()]
                fits = node.op not in _UNBOUNDED and all(n is not None and n <= SMALL_BYTES for n in read)
            else:
                most = max(n for n in sizes if n is not None)
                fits = most <= _BATCH_BYTES or most <= sum(
                    graph.nodes[j].tensor.nbytes for j in _reach(graph, i, set()) if graph.nodes[j].is_constant
                )
            if fits:
                found.add(i)
    return found


def _worth(graph: Graph, v: Value) -> bool:
    """Whether the result of a node, with what else is read of it, is small or outweighed by the weights it makes superfluous."""
    node = graph.node(v)
    kind = node.types[v.port]
    if kind is None or not foldable(node.op, node.domain):
        return False
    if (_bytes(kind) or 0) <= SMALL_BYTES:
        return True
    return sum(_bytes(node.types[p]) or 0 for p in {u.port for u in graph.users[v.node]}) <= _released(graph, v.node)


def _bytes(kind: TensorType | None) -> int | None:
    if kind is None or not kind.static:
        return None
    return math.ceil(math.prod(d for d in kind.shape or () if isinstance(d, int)) * element_bits(kind.dtype) / 8)


def _released(graph: Graph, node: int) -> int:
    """Bytes of the weights that go once all results of constant `node` are computed: nothing else rests on them."""
    gone = {node}
    for i in reversed(cone(graph, [Value(node)])):
        if all(u.node in gone for u in graph.users[i]):
            gone.add(i)
    return sum(graph.nodes[i].tensor.nbytes for i in gone if graph.nodes[i].is_constant)


def _evaluate(graph: Graph, values: Sequence[Value]) -> dict[Value, Array]:
    model = part(graph, values).model
    try:
        found = Session(model).run({})
    except RunError as e:
        if len(values) > 1:
            half = len(values) // 2
            return _evaluate(graph, values[:half]) | _evaluate(graph, values[half:])
        log.debug("onnxruntime cannot compute constant %s: %s", graph.label(values[0]), e)
        try:
            found = run_reference(model, {})
        except Exception as e:  # the reference evaluator raises whatever numpy does
            log.info("constant '%s' stays as it is: %s", graph.label(values[0]), e)
            return {}
    return {v: np.asarray(found[name(v)]) for v in values}


def fold_rewrites(graph: Graph) -> Graph:
    """The graph with every expression on weights that rewrites made computed, in float64, into one tensor of its type.

    Expressions that the file itself holds and simplify left (they would make it larger) stay. Tensors that come out equal, to
    each other or to one that is there, are one: that is less to save, and less to read when the model runs.
    """
    held = {n.tensor.digest: Value(i) for i, n in graph.nodes.items() if n.is_constant}
    wanted: dict[Value, None] = {}
    for node in graph.nodes.values():
        if not (node.constant and node.proto is None):
            wanted.update(dict.fromkeys(v for v in node.reads() if _made(graph, v)))
    wanted.update(dict.fromkeys(v for v in graph.outputs if _made(graph, v)))
    for v in sorted(wanted):
        kind = graph.type(v)
        assert kind is not None
        array = np.asarray(run_float64(part(graph, [v]).model, {})[name(v)])
        with np.errstate(over="ignore"):  # what does not fit the type becomes infinite, and the proof sees it
            made = array.astype(onnx.helper.tensor_dtype_to_np_dtype(kind.dtype))
        tensor = Tensor.of(made, kind.dtype)
        if (known := held.get(tensor.digest)) is not None and known.node in graph.nodes:
            graph = graph.replace(graph.edit([], {v: known}))
            continue
        held[tensor.digest] = Value(graph.next_id)
        label = graph.nodes[v.node].names[0] if graph.nodes[v.node].names else ""
        graph = graph.replace(graph.edit([constant(tensor, label)], {v: Value(-2)}))
    return graph


def _made(graph: Graph, v: Value) -> bool:
    node = graph.node(v)
    return node.constant and node.proto is None and not node.is_source


def unfolded(graph: Graph) -> Iterable[int]:
    """Nodes that compute with weights alone and are still there."""
    return (i for i, n in graph.nodes.items() if n.constant and not n.is_source)
