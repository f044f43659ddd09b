"""How far the results of a sound rewrite may lie apart in float64."""

from __future__ import annotations

import onnx

TOLERANCE = 1e-9
"""Largest difference that passes, relative to the largest entry of the result; float64 leaves about 1e-15 per step."""

_ROUNDED: dict[int, float] = {onnx.TensorProto.FLOAT: 1e-6, onnx.TensorProto.FLOAT16: 4e-3, onnx.TensorProto.BFLOAT16: 3e-2}


def allowed(tags: tuple[str, ...], dtype: int | None) -> float:
    """The largest difference that passes for a rule with these tags and a result of the onnx type `dtype`.

    Rules tagged `rounded` read a number such as 1/6 as what it was before the file rounded it to its type.
    """
    return _ROUNDED.get(dtype, TOLERANCE) if "rounded" in tags and dtype is not None else TOLERANCE
