"""What a proof feeds: sizes for the symbols of a graph, and random arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from cgorl.ir.graph import Graph
from cgorl.ir.run import random_array
from cgorl.ir.sizes import Sizes, symbols
from cgorl.ir.tensor import Array


def draws(graph: Graph, dims: Mapping[str, int], count: int) -> list[dict[str, int]]:
    """Ways to give sizes to the symbols: `count` small ones (first `dims` where they speak; 1 for all among them), then larger.

    The larger are for models that small ones are too small for: try on until enough have run.
    """
    names = list(symbols(graph))
    if not names:
        return [{}]
    small = [{s: dims.get(s, 2 + k % 3) for k, s in enumerate(names)}, dict.fromkeys(names, 1), {s: 5 - k % 2 for k, s in enumerate(names)}]
    large = [{s: dims.get(s, size) for s in names} for size in (16, 64, 256, 640)]
    return small[:count] + large


def feeds(graph: Graph, sizes: Mapping[str, int], rng: np.random.Generator, mode: str = "random") -> dict[str, Array]:
    """Arrays for the graph's required inputs by name: normal numbers, small integers; all 0 or 1 in mode `zeros`, `ones`.

    Raises ValueError naming an input of unknown rank or of no tensor type.
    """
    given: dict[str, Array] = {}
    optional = {t.name for t in graph.frame.model.graph.initializer}
    for i in graph.inputs:
        node = graph.nodes[i]
        name, kind = node.names[0], Sizes(sizes).types(graph.nodes.__getitem__, i, graph.opset)[0]
        if name in optional:
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
