"""Computing constants ahead of time."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from cgorl.ir.extract import cone, name, part
from cgorl.ir.graph import Graph
from cgorl.ir.node import Node, TensorType, Value, constant
from cgorl.ir.ops import foldable
from cgorl.ir.oracle import run_float64, run_reference
from cgorl.ir.run import RunError, Session
from cgorl.ir.tensor import Array, Tensor, element_bits

log = logging.getLogger(__name__)

SMALL_BYTES = 1 << 16
"""A result of up to so many bytes is always worth computing ahead."""

_BATCH_BYTES = 256 << 20
_UNBOUNDED = frozenset({"Expand", "Tile", "ConstantOfShape", "Range", "Resize", "Pad", "OneHot", "EyeLike", "Upsample", "GatherND"})


def fold_native(graph: Graph) -> dict[Value, Tensor]:
    """Contents of the constants that running nodes read, computed in the model's own dtypes by onnxruntime.

    Left out is what would make the file larger: a result above 64 KiB that is not outweighed by weights that nothing
    else reads. Its operands are then tried in its place. What no runtime can compute is left as it is.
    """
    wanted = _frontier(graph)
    batches: list[list[Value]] = [[]]
    size = 0
    for v in wanted:
        need = sum(graph.nodes[i].tensor.nbytes for i in cone(graph, [v]) if graph.nodes[i].is_constant)
        if size + need > _BATCH_BYTES and batches[-1]:
            batches.append([])
            size = 0
        batches[-1].append(v)
        size += need
    done: dict[Value, Tensor] = {}
    for batch in batches:
        for v, array in _evaluate(graph, batch).items():
            kind = graph.type(v)
            dtype = kind.dtype if kind is not None else onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            if array.size * element_bits(dtype) // 8 <= max(SMALL_BYTES, _released(graph, v)):
                done[v] = Tensor.of(array, dtype)
    return done


def _frontier(graph: Graph) -> list[Value]:
    found: dict[Value, None] = {}
    stack = [v for i, n in graph.nodes.items() if not n.constant for v in n.reads()] + list(graph.outputs)
    seen: set[Value] = set()
    while stack:
        v = stack.pop()
        node = graph.node(v)
        if v in seen or not node.constant or node.is_source:
            continue
        seen.add(v)
        if _worth(graph, v, node):
            found[v] = None
        else:
            stack.extend(node.reads())
    return sorted(found)


def _worth(graph: Graph, v: Value, node: Node) -> bool:
    kind = node.types[v.port]
    if not foldable(node.op, node.domain):
        return False
    if kind is None or not kind.static:
        return node.op not in _UNBOUNDED and all(
            _bytes(graph.type(u)) is not None and (_bytes(graph.type(u)) or 0) <= SMALL_BYTES for u in node.reads()
        )
    size = _bytes(kind) or 0
    return size <= SMALL_BYTES or size <= _released(graph, v)


def _bytes(kind: TensorType | None) -> int | None:
    if kind is None or not kind.static:
        return None
    return math.prod(d for d in kind.shape or () if isinstance(d, int)) * element_bits(kind.dtype) // 8


def _released(graph: Graph, v: Value) -> int:
    """Bytes of the initializers under `v` that only constants read: they go when `v` is computed."""
    inner = cone(graph, [v])
    return sum(
        graph.nodes[i].tensor.nbytes
        for i in inner
        if graph.nodes[i].is_constant and all(u.node >= 0 and graph.nodes[u.node].constant for u in graph.users[i])
    )


def _evaluate(graph: Graph, values: Sequence[Value]) -> dict[Value, Array]:
    if not values:
        return {}
    model = part(graph, values).model
    try:
        found = Session(model).run({})
        return {v: found[name(v)] for v in values}
    except (RunError, ValueError) as e:
        if len(values) > 1:
            return {v: a for one in values for v, a in _evaluate(graph, [one]).items()}
        log.debug("onnxruntime cannot compute constant %s: %s", graph.label(values[0]), e)
    try:
        return {values[0]: np.asarray(run_reference(model, {})[name(values[0])])}
    except Exception as e:  # the reference evaluator raises whatever numpy does
        log.info("constant '%s' stays as it is: %s", graph.label(values[0]), e)
        return {}


def fold_rewrites(graph: Graph) -> Graph:
    """The graph with every expression on weights that rewrites made computed, in float64, into one tensor of its type.

    Expressions that the file itself holds and simplify left (they would make it larger) stay.
    """
    wanted: dict[Value, None] = {}
    for node in graph.nodes.values():
        if not (node.constant and node.proto is None):
            wanted.update(dict.fromkeys(v for v in node.reads() if _made(graph, v)))
    wanted.update(dict.fromkeys(v for v in graph.outputs if _made(graph, v)))
    for v in sorted(wanted):
        kind = graph.type(v)
        assert kind is not None
        array = np.asarray(run_float64(part(graph, [v]).model, {})[name(v)])
        made = array.astype(onnx.helper.tensor_dtype_to_np_dtype(kind.dtype))
        graph = graph.replace(
            graph.edit(
                [constant(Tensor.of(made, kind.dtype), graph.nodes[v.node].names[0] if graph.nodes[v.node].names else "")], {v: Value(-2)}
            )
        )
    return graph


def _made(graph: Graph, v: Value) -> bool:
    node = graph.node(v)
    return node.constant and node.proto is None and not node.is_source


def unfolded(graph: Graph) -> Iterable[int]:
    """Nodes that compute with weights alone and are still there."""
    return (i for i, n in graph.nodes.items() if n.constant and not n.is_source)
