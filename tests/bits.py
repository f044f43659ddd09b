"""Running a model as it stands, and comparing what comes out bit for bit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort


def outputs(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Outputs by onnxruntime without any rewrite of its own, weights not repacked.

    Repacked weights (of an LSTM, say) are multiplied by another kernel, and only those in the main graph are repacked: an If
    inlined moves silero_vad by 1e-6 of its range for that reason alone.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_prepacking", "1")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Any] = session.run(None, dict(feeds))
    return found


def same(a: Any, b: Any) -> bool:
    """Whether two results (arrays, lists of them, None) agree in type, shape and every bit."""
    if a is None or b is None:
        return a is b
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(a.tolist() == b.tolist()) if a.dtype.kind in "OSU" else bool(a.tobytes() == b.tobytes())
