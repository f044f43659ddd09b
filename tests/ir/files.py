"""What the tests of files share: a comparison of models, and models with external data."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh

X, Y = (oh.make_tensor_value_info(n, T.FLOAT, [3]) for n in "xy")


def copy(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


def tidy(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which the order of initializers and of declarations, which says nothing, is by name."""
    made = copy(model)
    for part in (made.graph.initializer, made.graph.value_info):
        items = sorted((type(i).FromString(i.SerializeToString()) for i in part), key=lambda i: i.name)
        del part[:]
        part.extend(items)
    return made


def one_node(*nodes: onnx.NodeProto, **parts: Any) -> onnx.ModelProto:
    opsets = parts.pop("opsets", [oh.make_opsetid("", 17)])
    graph = oh.make_graph(nodes or [oh.make_node("Neg", ["x"], ["y"])], "g", parts.pop("inputs", [X]), parts.pop("outputs", [Y]), **parts)
    return oh.make_model(graph, opset_imports=opsets, ir_version=10)


def with_external(path: Path, **options: Any) -> onnx.ModelProto:
    """Writes a model with external weights, in nodes and bodies too, to `path`; returns it whole."""
    rng = np.random.default_rng(0)
    sizes = {"w": (2, 300), "v": 300, "d": 300, "small": 1, "c": 300, "bw": 300, "b1": ()}
    t = {n: nh.from_array(rng.standard_normal(size).astype(np.float32), n) for n, size in sizes.items()}
    shape = nh.from_array(np.array([-1, 300], np.int64), "shape")
    body = oh.make_graph([oh.make_node("Sum", ["m", "bw", "b1"], ["bo"])], "b", [], [oh.make_tensor_value_info("bo", T.FLOAT, ["K", 300])])
    body.initializer.extend([t["bw"], t["b1"]])
    other = oh.make_graph([oh.make_node("Identity", ["m"], ["bi"])], "b2", [], [oh.make_tensor_value_info("bi", T.FLOAT, ["K", 300])])
    nodes = [
        oh.make_node("Constant", [], ["c"], value=t["c"]),
        oh.make_node("Sum", ["w", "v", "small"], ["a"]),
        oh.make_node("Mul", ["a", "c"], ["b"]),
        oh.make_node("Sub", ["b", "x"], ["m0"]),
        oh.make_node("Add", ["m0", "d"], ["m1"]),
        oh.make_node("Reshape", ["m1", "shape"], ["m"]),
        oh.make_node("If", ["t"], ["y"], then_branch=body, else_branch=other),
    ]
    inputs = [oh.make_tensor_value_info(n, d, s) for n, d, s in (("x", T.FLOAT, [300]), ("t", T.BOOL, []), ("d", T.FLOAT, [300]))]
    weights = [t["w"], t["v"], t["d"], t["small"], shape]
    graph = oh.make_graph(nodes, "g", inputs, [oh.make_tensor_value_info("y", T.FLOAT, ["K", 300])], weights)
    model = oh.make_model(graph, ir_version=8, opset_imports=[oh.make_opsetid("", 17)])
    settings_ = {"all_tensors_to_one_file": True, "location": path.name + ".data", "size_threshold": 0, "convert_attribute": True}
    onnx.save(copy(model), path, save_as_external_data=True, **{**settings_, **options})
    return model
