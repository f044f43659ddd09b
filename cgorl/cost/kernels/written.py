"""What the runtime itself makes of a model: the kernels of the graph that it writes, and the machine's block of channels."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from cgorl.cost.kernels.kernel import BLOCKED, Kernel, Slot, plain_attrs, slot
from cgorl.ir.node import TensorType
from cgorl.ir.ops import parse_attribute
from cgorl.ir.run import RunError, short
from cgorl.ir.tensor import Array, Tensor


def write(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph that onnxruntime makes of `model` at ORT_ENABLE_ALL for this machine. Raises RunError."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "written.onnx"
        options.optimized_model_filepath = str(path)
        try:
            ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as e:  # onnxruntime's exceptions share no base class
            raise RunError(short(e)) from None
        return onnx.load(path)


@lru_cache(maxsize=1)
def block() -> int:
    """How many channels this machine's runtime keeps together in its blocked layout (8 with AVX2, 16 with AVX-512); 1: none."""
    into, out = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size, 4, 4]) for name, size in (("x", 32), ("y", 4)))
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 32, 1, 1], np.zeros(128, np.float32).tobytes(), raw=True)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "probe", [into], [out], [weight])
    made = write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    convs = {n.input[1] for n in made.graph.node if n.domain == BLOCKED and n.op_type == "Conv"}
    return next((int(t.dims[0]) for t in made.graph.initializer if t.name in convs), 1)


def kernels_of(written: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Kernel]:
    """The kernels of a written model; it is run once on `feeds`, since its file knows no sizes. Raises RunError."""
    graph = written.graph
    held = {t.name: Tensor(t) for t in graph.initializer}
    shapes = {name: TensorType(t.dtype, t.shape) for name, t in held.items()}
    names = [o for n in graph.node for o in n.output if o]
    watched = onnx.ModelProto()
    watched.CopyFrom(written)
    del watched.graph.output[:]
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(watched.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(names, {i.name: feeds[i.name] for i in session.get_inputs() if i.name in feeds})
    except Exception as e:
        raise RunError(short(e)) from None
    for name, array in (*feeds.items(), *zip(names, results, strict=True)):
        if isinstance(array, np.ndarray) and array.dtype != object:
            shapes[name] = TensorType(helper.np_dtype_to_tensor_dtype(array.dtype), tuple(array.shape))
    del results
    opsets = {o.domain: o.version for o in written.opset_import}
    return [_kernel(n, shapes, held, opsets) for n in graph.node]


def _kernel(node: onnx.NodeProto, shapes: Mapping[str, TensorType], held: Mapping[str, Tensor], opsets: Mapping[str, int]) -> Kernel:
    opset = opsets.get(node.domain, 1)
    attrs = {a.name: parse_attribute(a) for a in node.attribute}
    if node.op_type == "FusedMatMul":
        attrs = {k: float(f"{v:.4g}") if k == "alpha" else v for k, v in attrs.items() if v != 0}
    if node.op_type in ("FusedGemm", "Gemm"):
        attrs = {k: v for k, v in attrs.items() if v != {"alpha": 1.0, "beta": 1.0}.get(k, 0)}
    inputs: list[Slot | None] = [slot(shapes.get(i), i in held, held.get(i), node.op_type) if i else None for i in node.input]
    outputs: list[Slot | None] = [slot(shapes.get(o)) if o else None for o in node.output]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return Kernel(node.op_type, node.domain, plain_attrs(node.op_type, node.domain, opset, attrs), tuple(inputs), tuple(outputs), opset)
