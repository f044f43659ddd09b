"""What a proof feeds: sizes for the symbols of a graph, and random arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import onnx

from cgorl.ir.graph import OUTPUT, Graph
from cgorl.ir.node import Node
from cgorl.ir.ops import RANDOM, bodies
from cgorl.ir.run import random_array
from cgorl.ir.sizes import Sizes, symbols
from cgorl.ir.tensor import Array, Tensor, element_bits

LARGE = 16
"""The smallest of the sizes that are tried for models for which small ones are too small."""

_MOST_BYTES = 128 << 20


def draws(graph: Graph, dims: Mapping[str, int], count: int) -> list[dict[str, int]]:
    """Ways to give sizes to the symbols: `count` small ones (first `dims` where they speak; 1 for all among them), then larger.

    The larger are for models that small ones are too small for: try on until one has run. Symbols at the front of an input,
    which stand for a batch, stay small there, and sizes at which a single value would pass 128 MiB are left out.
    """
    names = list(symbols(graph))
    if not names:
        return [{}]
    small = [{s: dims.get(s, 2 + k % 3) for k, s in enumerate(names)}, dict.fromkeys(names, 1), {s: 5 - k % 2 for k, s in enumerate(names)}]
    batch = {shape[0] for i in graph.inputs if (t := graph.nodes[i].types[0]) is not None and (shape := t.shape)}
    batch |= {f"{graph.nodes[i].names[0]}:0" for i in graph.inputs}
    large = [{s: dims.get(s, 2 if s in batch and len(names) > 1 else size) for s in names} for size in (LARGE, 64, 256, 640)]
    return [*small[:count], *(draw for draw in large if _bytes(graph, draw) <= _MOST_BYTES)]


def _bytes(graph: Graph, draw: Mapping[str, int]) -> float:
    """Bytes of the largest value of the graph at these sizes, as far as they are known."""
    sizes = Sizes(draw)
    most = 0.0
    for i in graph.order():
        for t in sizes.types(graph.nodes.__getitem__, i, graph.opset):
            if t is not None and t.static and not graph.nodes[i].constant:
                most = max(most, math.prod(d for d in t.shape or () if isinstance(d, int)) * element_bits(t.dtype) / 8)
    return most


def feeds(
    graph: Graph, sizes: Mapping[str, int], rng: np.random.Generator, mode: str = "random", override: bool = False
) -> dict[str, Array]:
    """Arrays for the graph's required inputs by name: normal numbers, small integers; all 0 or 1 in mode `zeros`, `ones`.

    With `override`, inputs that have a default get other numbers of its magnitude (integers, which may be sizes, keep it).
    Raises ValueError naming an input of unknown rank or of no tensor type.
    """
    given: dict[str, Array] = {}
    for i in graph.inputs:
        node = graph.nodes[i]
        name, kind = node.names[0], Sizes(sizes).types(graph.nodes.__getitem__, i, graph.opset)[0]
        default = node.attrs.get("default")
        if isinstance(default, Tensor):
            if override:
                given[name] = _near(rng, default)
            continue
        if kind is None or not kind.static:
            raise ValueError(f"input '{name}' is no tensor of known rank")
        shape: tuple[int, ...] = kind.shape  # type: ignore[assignment]
        if mode == "random" or kind.dtype == onnx.TensorProto.STRING:
            given[name] = random_array(rng, kind.dtype, shape)
        else:
            fill = np.zeros if mode == "zeros" else np.ones
            given[name] = fill(shape, onnx.helper.tensor_dtype_to_np_dtype(kind.dtype))
    return given


def has_defaults(graph: Graph) -> bool:
    """Whether some input may be left out."""
    return any("default" in graph.nodes[i].attrs for i in graph.inputs)


def _near(rng: np.random.Generator, default: Tensor) -> Array:
    array = default.array()
    if array.dtype.kind != "f" and default.dtype != onnx.TensorProto.BFLOAT16:
        return array
    wide = array.astype(np.float64)
    return np.asarray(wide * rng.uniform(0.5, 1.5, wide.shape) + (wide == 0) * rng.uniform(0, 0.5, wide.shape)).astype(array.dtype)


def chance(graph: Graph) -> set[int]:
    """Nodes whose results rest on a random operator, so that two runs of one model differ by themselves."""
    local = {(f.domain, f.name): f for f in graph.frame.model.functions}

    def rolls(protos: Iterable[onnx.NodeProto], seen: frozenset[tuple[str, str]]) -> bool:
        for p in protos:
            inner = local.get((p.domain, p.op_type))
            if inner is not None and (p.domain, p.op_type) not in seen and rolls(inner.node, seen | {(p.domain, p.op_type)}):
                return True
            if p.op_type in RANDOM and (p.op_type != "Dropout" or len(p.input) > 2) and inner is None:
                return True
            if any(rolls(body.node, seen) for body in bodies(p)):
                return True
        return False

    stack = [i for i, n in graph.nodes.items() if n.proto is not None and not _settled(graph, n) and rolls([n.proto], frozenset())]
    found = set(stack)
    while stack:
        for u in graph.users[stack.pop()]:
            if u.node not in found and u.node != OUTPUT:
                found.add(u.node)
                stack.append(u.node)
    return found


def _settled(graph: Graph, node: Node) -> bool:
    """Whether the node is a Dropout whose training_mode is a constant false."""
    if node.op != "Dropout" or len(node.inputs) < 3 or node.inputs[2] is None:
        return False
    mode = graph.node(node.inputs[2])
    return mode.is_constant and not mode.tensor.array().any()
