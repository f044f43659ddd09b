"""Running a model on arrays: onnxruntime in the model's dtype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from cgorl.ir.tensor import Array


class RunError(ValueError):
    """onnxruntime cannot load or run a model; the message is its own, shortened."""


class Session:
    """A model loaded by onnxruntime's CPU provider at one thread."""

    def __init__(self, model: onnx.ModelProto | str | Path, optimized: bool = False) -> None:
        """Loads a model or file, without the runtime's own rewrites unless `optimized`. Raises RunError."""
        options = ort.SessionOptions()
        level = ort.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Repacked weights go through another kernel, whose last bits differ, and only those of the main graph are repacked.
        options.add_session_config_entry("session.disable_prepacking", "0" if optimized else "1")
        options.log_severity_level = 4
        try:
            source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
            self._session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as e:  # onnxruntime's exceptions share no base class
            raise RunError(short(e)) from None
        self.outputs = tuple(o.name for o in self._session.get_outputs())
        self.inputs = tuple(i.name for i in self._session.get_inputs())

    def run(self, feeds: Mapping[str, Array], outputs: Iterable[str] | None = None) -> dict[str, Array]:
        """Output arrays by name (lists for sequences). Raises RunError."""
        names = list(self.outputs if outputs is None else outputs)
        try:
            return dict(zip(names, self._session.run(names, dict(feeds)), strict=True))
        except Exception as e:
            raise RunError(short(e)) from None


def short(e: BaseException) -> str:
    """The first sentence of what a runtime had to say."""
    text = " ".join(str(e).split())
    return text if len(text) <= 300 else text[:300] + " ..."


def random_array(rng: np.random.Generator, dtype: int, shape: Iterable[int]) -> Array:
    """An array of the onnx element type `dtype`: normal numbers, small non-negative integers, fair bits, short strings."""
    shape = tuple(shape)
    if dtype == onnx.TensorProto.STRING:
        return np.array([f"s{k}" for k in rng.integers(0, 9, int(np.prod(shape)))], dtype=object).reshape(shape)
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    if dtype == onnx.TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if np.issubdtype(kind, np.integer):
        return rng.integers(0, 2, shape).astype(kind)
    if np.issubdtype(kind, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)
    return np.asarray(rng.standard_normal(shape)).astype(kind)
