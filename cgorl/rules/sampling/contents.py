"""Contents: what numbers a value may hold, and random arrays of them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from cgorl.ir.tensor import Array

_FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16})


@dataclass(frozen=True, slots=True)
class Contents:
    """What numbers a value may hold: those of `sign` (`any`, `positive`, `nonzero`), or indices below `below`."""

    sign: str = "any"
    below: int = 0


def fill(rng: random.Random, dtype: int, shape: tuple[int, ...], contents: Contents, span: int) -> Array:
    """Numbers as `contents` says: integers up to `span` in size, or real ones of about 1 if it is 0."""
    numbers = np.random.default_rng(rng.getrandbits(63))
    kind = tensor_dtype_to_np_dtype(dtype)
    if contents.below:
        return numbers.integers(0, contents.below, shape).astype(kind)
    if dtype == onnx.TensorProto.BOOL:
        return numbers.integers(0, 2, shape).astype(bool)
    if dtype in _FLOATS and not span:
        flip = 1 if contents.sign == "positive" else numbers.choice((-1, 1), shape)
        found = numbers.standard_normal(shape) if contents.sign == "any" else numbers.uniform(0.5, 2, shape) * flip
        if np.size(found) == 1:
            found = np.rint(found * 256) / 256  # a single number may become an attribute, which holds a float32
        return np.asarray(found).astype(kind)
    high = span or 5
    low = 0 if kind.kind == "u" else -high
    found = numbers.integers(1 if contents.sign == "positive" else low, high, shape, endpoint=True)
    if contents.sign == "nonzero":
        found = np.where(found == 0, 1, found)
    return np.asarray(found).astype(kind)
