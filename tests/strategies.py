"""Random small ONNX models for property tests: `models()` draws one, `feeds(model, rng)` makes inputs for it.

Every model passes onnx.checker and runs in onnxruntime: it is built by tracking types, never by filtering. Drawn are opset
and IR version (initializers listed as inputs in IR 3, some as overridable defaults later), float and integer types, bool and
strings, broadcasts, shared and dead values, several-output operators, absent optional inputs, shape plumbing, If and Loop
with captured values, symbolic and anonymous dims, outputs that are inputs, weights or Identities, nodes without names.
All numbers stay finite; nothing is random when run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as oh

from cgorl.ir.run import random_array
from tests.drawn_nodes import BODIES, KINDS
from tests.sketch import Sketch, info

SIZES = {"N": 3, "M": 2}
"""What the symbolic dims of drawn models are bound to by `feeds`; a dim without a name is an N."""

OPSETS = (9, 11, 13, 17, 18, 20, 22)


@st.composite
def models(draw: Any, max_nodes: int = 10, opsets: Sequence[int] = OPSETS, bodies: bool = True, half: bool = True) -> onnx.ModelProto:
    """A valid model of up to about `max_nodes` nodes at one of `opsets`, with If, Loop and float16 where `bodies` and `half` say so.

    onnxruntime runs float16 nodes in float32 and rounds where it likes: outputs of `half` models change with the graph.
    """
    return _whole(Sketch(draw, draw(st.sampled_from(opsets)), half), max_nodes, KINDS + BODIES * 2 if bodies else KINDS)


def feeds(model: onnx.ModelProto, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """An array for each input of a drawn model that has no default; symbols are bound as in SIZES."""
    given = {t.name for t in model.graph.initializer}
    found = {}
    for wanted in model.graph.input:
        if wanted.name not in given:
            kind = wanted.type.tensor_type
            shape = [d.dim_value if d.HasField("dim_value") else SIZES[d.dim_param or "N"] for d in kind.shape.dim]
            found[wanted.name] = random_array(rng, kind.elem_type, shape)
    return found


def _whole(s: Sketch, max_nodes: int, kinds: Sequence[Callable[[Sketch], None]]) -> onnx.ModelProto:
    """A model of nodes of those kinds."""
    s.fresh(T.FLOAT, s.shape(1, 4))
    for _ in range(s.number(1, max_nodes)):
        s.of(kinds)(s)
    ir = s.of((3, 4, 8, 10) if s.opset < 21 else (10,))
    made = {o for n in s.nodes for o in n.output}
    computed = [v for v in s.values if v.name in made]
    outputs = [computed[-1]]
    if s.coin():
        outputs += [s.of(computed) for _ in range(s.number(1, 3))]
    if s.number(0, 3) == 0:
        outputs.append(s.of(s.values if ir >= 4 else [v for v in s.values if v.name not in s.weights]))
    outputs = list(dict.fromkeys(outputs))
    for v in outputs[: s.number(0, 1)]:  # one value under two names
        outputs += s.add("Identity", [v], [(v.dtype, v.shape)])
    listed = [v for v in s.values if v.name in s.weights and (ir < 4 or s.number(0, 9) == 0)]
    inputs = [info(v, s.number(0, 4) == 0) for v in s.inputs.values()] + [info(v) for v in listed]
    told = [info(v) for v in computed if v not in outputs and s.number(0, 3) == 0]
    graph = oh.make_graph(
        s.nodes,
        "drawn",
        s.draw(st.permutations(inputs)),
        [info(v, s.number(0, 4) == 0) for v in outputs],
        list(s.weights.values()),
        value_info=told,
    )
    opsets = [oh.make_opsetid("", s.opset), *([oh.make_opsetid("com.microsoft", 1)] if s.number(0, 4) == 0 else [])]
    model = oh.make_model(graph, ir_version=ir, opset_imports=opsets, producer_name="strategies")
    if s.number(0, 3) == 0:
        oh.set_model_props(model, {"author": "hypothesis"})
    return model
