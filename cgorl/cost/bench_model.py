"""One kernel as a model of its own, several times over: what is run to learn its price."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from cgorl.cost.kernels.kernel import BLOCKED, FUSED, Kernel, Slot
from cgorl.ir.ops import schema
from cgorl.ir.run import random_array
from cgorl.ir.tensor import Array, element_bits

OPSET = 17
"""The opset of the models, for operators whose form has not changed between theirs and this one."""

_SHAPES = frozenset({("Reshape", 1), ("Expand", 1), ("ConstantOfShape", 0)})
"""Operators and operands of theirs that are the shape of the result."""

_DRAWN = 1 << 20
"""Numbers that are drawn for an operand; a larger one repeats them."""

_CHAINED = frozenset({"Relu", "Sigmoid", "Tanh", "Clip", "LeakyRelu", "HardSigmoid", "HardSwish", "Erf", "Sqrt", "Exp", "Neg", "Abs"})
_CHAINED |= frozenset({"Softmax", "LayerNormalization", "QuickGelu", "Gelu", "FastGelu", "BiasGelu"})
"""Operators that the runtime runs in place: each copy reads the last one's result."""


def bench_model(kernel: Kernel, copies: int, held: int = 1, seed: int = 0) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model that runs `kernel` `copies` times, and what to feed it; to be run in the order of its nodes.

    Each copy has weights of its own, so that they are read from memory as in a real model, and reads the same operands.
    Each result is given free once the next copy has run, by a Flatten (`held` of them) that nobody reads. Results that
    nobody holds make memory-bound kernels too dear, those that are free at once too cheap.
    """
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    inputs, weights, nodes = [], [], []
    for k, s in enumerate(kernel.inputs):
        if s is not None and not s.fixed:
            feeds[f"x{k}"] = _array(kernel, k, s, rng)
            inputs.append(helper.make_tensor_value_info(f"x{k}", s.dtype, s.shape))
    chain, last, late = chained(kernel), "", list[str]()
    for n in range(copies):
        names = []
        for k, s in enumerate(kernel.inputs):
            if s is None:
                names.append("")
            elif s.fixed:
                names.append(f"w{n}_{k}")
                weights.append(helper.make_tensor(names[-1], s.dtype, s.shape, _array(kernel, k, s, rng).tobytes(), raw=True))
            else:
                names.append(last if chain and k == 0 and n else f"x{k}")
        results = [f"y{n}_{p}" if s is not None else "" for p, s in enumerate(kernel.outputs)]
        nodes.append(_node(kernel, names, results))
        if not chain:
            nodes += [helper.make_node("Flatten", [r], [f"f{n}_{p}_{h}"], axis=0) for p, r in enumerate(late) for h in range(held)]
        late = [r for r in results if r]
        last = late[0]
    out = next(s for s in kernel.outputs if s is not None)
    graph = helper.make_graph(nodes, "bench", inputs, [helper.make_tensor_value_info(last, out.dtype, None)], weights)
    domains = [("", _opset(kernel)), (FUSED, 1), (BLOCKED, 1)]
    if kernel.domain not in ("", FUSED, BLOCKED):
        domains.append((kernel.domain, kernel.opset))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains], ir_version=9), feeds


def weight_bytes(kernel: Kernel) -> int:
    """Bytes of the constants that each copy brings along."""
    return sum(math.ceil(s.elements * element_bits(s.dtype) / 8) for s in kernel.inputs if s is not None and s.fixed)


def flattens(kernel: Kernel) -> int:
    """How many Flattens stand between two copies, if each result is held by one."""
    return 0 if chained(kernel) else sum(s is not None for s in kernel.outputs)


def chained(kernel: Kernel) -> bool:
    """Whether each copy reads the last one's result, since the runtime writes it where the operand stood."""
    first = kernel.inputs[0] if kernel.inputs else None
    return kernel.op in _CHAINED and first is not None and not first.fixed and first == kernel.outputs[0]


def _opset(kernel: Kernel) -> int:
    if kernel.domain in (FUSED, BLOCKED):
        return OPSET
    a, b = schema(kernel.op, kernel.domain, kernel.opset), schema(kernel.op, kernel.domain, OPSET)
    if kernel.opset >= OPSET or kernel.domain or a is None or b is None:
        return kernel.opset
    same = set(a.attributes) == set(b.attributes) and len(a.inputs) == len(b.inputs) and kernel.op not in ("Softmax", "LogSoftmax")
    return OPSET if same else kernel.opset


def _node(kernel: Kernel, inputs: list[str], outputs: list[str]) -> onnx.NodeProto:
    if kernel.op == "Split":  # onnxruntime dies of a Split that has a result without a name
        outputs = [name or f"{next(filter(None, outputs))}_{p}" for p, name in enumerate(outputs)]
    attrs: dict[str, Any] = {}
    for name, value in kernel.attrs:
        if isinstance(value, tuple) and value and value[0] == "tensor":
            _, dtype, shape, numbers = value
            attrs[name] = helper.make_tensor(name, dtype, shape, numbers)
        else:
            attrs[name] = list(value) if isinstance(value, tuple) else value
    if kernel.op == "Split" and len(inputs) == 1 and kernel.opset >= 18:
        attrs["num_outputs"] = len(outputs)
    return helper.make_node(kernel.op, inputs, outputs, domain=kernel.domain, **attrs)


def _array(kernel: Kernel, k: int, s: Slot, rng: np.random.Generator) -> Array:
    dtype = helper.tensor_dtype_to_np_dtype(s.dtype)
    if s.holds is not None:
        return np.array(s.holds, dtype).reshape(s.shape)
    if (kernel.op, k) in _SHAPES and kernel.outputs[0] is not None:
        return np.array(kernel.outputs[0].shape, dtype)
    if s.dtype == TensorProto.STRING:
        raise ValueError("strings are not measured")
    made = random_array(rng, s.dtype, s.shape if s.elements <= _DRAWN else (_DRAWN,))
    if made.size != s.elements:
        made = np.resize(made, s.shape)  # again and again the same: no kernel is the faster for it
    if np.issubdtype(made.dtype, np.floating):
        made = np.abs(made) * made.dtype.type(0.05) + made.dtype.type(0.01)  # no denormals, nothing under a root
    return made
