"""Types of all values of a model, by onnx's shape inference over a copy without the weights."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import onnx
from onnx import shape_inference

from cgorl.ir import infer
from cgorl.ir.node import TensorType
from cgorl.ir.tensor import Tensor

log = logging.getLogger(__name__)

_SMALL = 1024


def types_of(model: onnx.ModelProto, base: Path | None = None) -> dict[str, TensorType]:
    """Types by value name: what the model declares, completed by onnx's inference with propagation of small contents.

    Weights above 1,024 numbers take part by their type alone, and so do defaults of inputs: a caller may override them.
    Where inference gives up on the whole model, what it declares remains, and a warning says so. `base` is the folder of
    external data.
    """
    lean = onnx.ModelProto(ir_version=max(model.ir_version, 8), opset_import=model.opset_import, functions=model.functions)
    g = lean.graph
    g.name = "types"
    weights = {t.name: t for t in model.graph.initializer}
    known: dict[str, TensorType] = {}
    listed = {i.name for i in model.graph.input} if model.ir_version >= 4 else set()
    for tensor in model.graph.initializer:
        if tensor.name in listed:
            continue
        if math.prod(tensor.dims) <= _SMALL:
            g.initializer.append(Tensor(tensor, base=base).to_proto(tensor.name))
        else:
            _declare(g, known, tensor.name, TensorType(tensor.data_type, tuple(tensor.dims)))
    for sparse in model.graph.sparse_initializer:
        _declare(g, known, sparse.values.name, TensorType(sparse.values.data_type, tuple(sparse.dims)))
    for info in model.graph.input:
        if info.name not in known and (model.ir_version >= 4 or info.name not in weights):
            g.input.add().CopyFrom(info)
    for node in _ordered(model):
        value = next((a.t for a in node.attribute if a.name == "value"), None) if node.op_type == "Constant" else None
        if value is not None and math.prod(value.dims) > _SMALL:
            _declare(g, known, node.output[0], TensorType(value.data_type, tuple(value.dims)))
        else:
            g.node.append(node)
    g.output.extend(model.graph.output)
    g.value_info.extend(model.graph.value_info)
    try:
        done = shape_inference.infer_shapes(lean, data_prop=True).graph
    except Exception as e:  # whatever onnx raises on a model that its inference cannot follow
        log.warning("types are those that the file declares; inference failed: %s", str(e).strip().splitlines()[0])
        done = g
    for part in (done.value_info, done.input, done.output):
        for info in part:
            kind = infer.from_proto(info.type)
            if kind is not None:
                known[info.name] = kind
    for tensor in model.graph.initializer:
        if tensor.name not in listed:
            known[tensor.name] = TensorType(tensor.data_type, tuple(tensor.dims))
    return known


def _declare(g: onnx.GraphProto, known: dict[str, TensorType], name: str, kind: TensorType) -> None:
    known[name] = kind
    g.input.add(name=name, type=infer.to_proto(kind))


def _ordered(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The model's nodes, producers first where the file has them otherwise."""
    from cgorl.ir.graph import topological
    from cgorl.ir.ops import captured

    nodes = list(model.graph.node)
    maker = {n: k for k, p in enumerate(nodes) for n in p.output if n}
    reads = {k: [*p.input, *captured(p)] for k, p in enumerate(nodes)}
    return [nodes[k] for k in topological({k: [maker[n] for n in names if n in maker] for k, names in reads.items()})]
