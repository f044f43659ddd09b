"""Small models to upload."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def small(width: int = 8) -> bytes:
    """A Conv with batch normalization, which a rule folds."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(np.abs(rng.standard_normal(shape)).astype(np.float32) + 0.1, name)

    weights = [weight("w", width, 3, 3, 3), *(weight(n, width) for n in ("scale", "shift", "mean", "var"))]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["y"], name="relu"),
    ]
    return model(nodes, weights, [("x", [1, 3, 16, 16])], [("y", [1, width, 16, 16])])


def model(nodes: list, weights: list, inputs: list, outputs: list, opset: int = 17, **more: object) -> bytes:
    """A model as bytes."""
    kinds = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in group] for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *kinds, weights)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9, **more).SerializeToString())
