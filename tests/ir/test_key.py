"""The key of a graph sees all that matters and nothing else."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh
from onnx import parser

from cgorl.ir.graph import link
from cgorl.ir.node import Value
from cgorl.ir.ops import COMMUTATIVE
from tests.ir.walks import SEEDS, load, scratch, text, walk
from tests.strategies import models


@given(models(), SEEDS)
@settings(max_examples=30)
def test_a_key_computed_late_is_the_key_computed_along_the_way(model: onnx.ModelProto, seed: int) -> None:
    lazy = walk(load(model), np.random.default_rng(seed), 6)[-1][0]
    eager_graph = load(model)
    eager_graph.key  # noqa: B018
    eager = walk(eager_graph, np.random.default_rng(seed), 6)[-1][0]
    assert lazy.key == eager.key == scratch(lazy).key


def disguised(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """The same model under other names, its nodes, weights and commutative operands in another order."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    names: dict[str, str] = {}

    def new(name: str) -> str:
        return names.setdefault(name, f"r{rng.integers(1 << 60)}") if name else ""

    def rename(g: onnx.GraphProto, top: bool) -> None:
        g.name, g.doc_string = f"g{rng.integers(99)}", "other"
        for item in (*g.input, *g.output, *g.value_info, *g.initializer):
            item.name = new(item.name)
        for node in g.node:
            node.name, node.doc_string = f"n{rng.integers(9)}", "other"
            node.input[:] = [new(n) for n in node.input]
            node.output[:] = [new(n) for n in node.output]
            if top and node.op_type in COMMUTATIVE:
                node.input[:] = [node.input[k] for k in rng.permutation(len(node.input))]
            attributes = [node.attribute[k] for k in rng.permutation(len(node.attribute))]
            del node.attribute[:]
            node.attribute.extend(attributes)
            for a in node.attribute:
                if a.HasField("g"):
                    rename(a.g, False)

    rename(made.graph, True)
    weights = {t.name for t in made.graph.initializer}
    parts = [made.graph.node, made.graph.initializer, made.graph.value_info, made.opset_import]
    for part in parts:
        items = [part[k] for k in rng.permutation(len(part))]
        copies = [type(m).FromString(m.SerializeToString()) for m in items]
        del part[:]
        part.extend(copies)
    if made.ir_version < 4:  # inputs that are weights are no part of the interface
        real = [i for i in made.graph.input if i.name not in weights]
        rest = [i for i in made.graph.input if i.name in weights]
        inputs = [onnx.ValueInfoProto.FromString(i.SerializeToString()) for i in (*rest, *real)]
        del made.graph.input[:]
        made.graph.input.extend(inputs)
    return made


@given(models(), SEEDS)
@settings(max_examples=80)
def test_the_key_is_blind_to_names_ids_and_order(model: onnx.ModelProto, seed: int) -> None:
    assert load(disguised(model, np.random.default_rng(seed))).key == load(model).key


@given(models(), SEEDS)
@settings(max_examples=80)
def test_the_key_sees_attributes_contents_and_operators(model: onnx.ModelProto, seed: int) -> None:
    rng = np.random.default_rng(seed)
    key = load(model).key
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    numbers = [a for n in changed.graph.node for a in n.attribute if a.type == onnx.AttributeProto.INT and n.op_type != "Cast"]
    if numbers:
        numbers[rng.integers(len(numbers))].i += 1
        assert load(changed).key != key
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    read = {name for n in changed.graph.node for name in n.input} | {v.name for v in changed.graph.output}
    weights = [t for t in changed.graph.initializer if t.name in read and t.data_type in (T.FLOAT, T.INT64) and np.prod(t.dims) > 0]
    if weights:
        t = weights[rng.integers(len(weights))]
        array = nh.to_array(t).copy()
        array.reshape(-1)[-1] += 1
        t.CopyFrom(nh.from_array(array, t.name))
        assert load(changed).key != key
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    pairs = [n for n in changed.graph.node if n.op_type in ("Add", "Sub", "Relu", "Identity")]
    if pairs:
        n = pairs[rng.integers(len(pairs))]
        n.op_type = {"Add": "Sub", "Sub": "Add", "Relu": "Neg", "Identity": "Elu"}[n.op_type]
        assert load(changed).key != key


BODY = "Y {{ y = If (c) <then_branch = t () => (float[2] p) {{ p = Sub({}) }}, else_branch = e () => (float[2] q) {{ q = Sub({}) }}> }}"
TWICE = "(float[2] y, float[2] z, float[2] u, float[2] w) { a = Neg(x)  e = Neg(x)  %s  y = Relu(b)  z = Exp(c)  u = Sin(d)  w = Cos(f) }"

DIFFERENT = {
    "shared or twice": [
        ("(float[2] y, float[2] z) { a = Neg(x)  y = Relu(a)  z = Exp(a) }",),
        ("(float[2] y, float[2] z) { a = Neg(x)  b = Neg(x)  y = Relu(a)  z = Exp(b) }",),
    ],
    "who reads which copy": [
        ("(float[2] y, float[2] z, float[2] u) { a = Neg(x)  b = Neg(x)  y = Relu(a)  z = Exp(a)  u = Sin(b) }",),
        ("(float[2] y, float[2] z, float[2] u) { a = Neg(x)  b = Neg(x)  y = Relu(a)  z = Exp(b)  u = Sin(b) }",),
    ],
    "who reads which copy, two levels up": [
        (TWICE % "b = Abs(a) c = Abs(a) d = Abs(e) f = Abs(e)",),
        (TWICE % "b = Abs(a) d = Abs(a) c = Abs(e) f = Abs(e)",),
    ],
    "which copy stands first": [
        ("(float[2] y, float[2] z) { a = Neg(x)  b = Neg(x)  y = Sub(a, b)  z = Relu(a) }",),
        ("(float[2] y, float[2] z) { a = Neg(x)  b = Neg(x)  y = Sub(a, b)  z = Relu(b) }",),
    ],
    "order of outputs": [
        ("(float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }",),
        ("(float[2] z, float[2] y) { y = Neg(x)  z = Abs(x) }",),
    ],
    "order of operands": [("Y { a = Neg(x)  y = Sub(a, x) }",), ("Y { a = Neg(x)  y = Sub(x, a) }",)],
    "which output": [("(float[1] y) { a, b = Split(x)  y = Neg(a) }",), ("(float[1] y) { a, b = Split(x)  y = Neg(b) }",)],
    "absent operand": [("Y <float lo = {0}> { y = Clip(x, lo) }",), ("Y <float lo = {0}> { y = Clip(x, , lo) }",)],
    "a list of strings": [
        ('Y { y = t.Op<a = ["p", "q"]>(x) }',),
        ('Y { y = t.Op<a = ["p,sq"]>(x) }',),
        ('Y { y = t.Op<a = ["psq"]>(x) }',),
        ('Y { y = t.Op<a = ["p1:sq"]>(x) }',),
    ],
    "attributes run together": [
        ('Y { y = t.Op<a = "x", b = "y">(x) }',),
        ('Y { y = t.Op<a = "xb=sy">(x) }',),
        ('Y { y = t.Op<a = "xbsy">(x) }',),
    ],
    "domain": [("Y { y = t.Neg(x) }",), ("Y { y = Neg(x) }",)],
    "opset": [("(float[2,2] y) { y = Softmax(x) }", 12, "float[2,2] x"), ("(float[2,2] y) { y = Softmax(x) }", 13, "float[2,2] x")],
    "zero's sign": [("Y <float w = {0.0}> { y = Div(x, w) }",), ("Y <float w = {-0.0}> { y = Div(x, w) }",)],
    "element type": [("Y <int64[2] w = {0, 0}> { y = t.Op(x, w) }",), ("Y <double[2] w = {0, 0}> { y = t.Op(x, w) }",)],
    "shape": [("Y <float[2,1] w = {0, 0}> { y = t.Op(x, w) }",), ("Y <float[1,2] w = {0, 0}> { y = t.Op(x, w) }",)],
    "strings": [('Y <string[2] w = {"ab", "c"}> { y = t.Op(x, w) }',), ('Y <string[2] w = {"a", "bc"}> { y = t.Op(x, w) }',)],
    "input type": [
        ("Y { y = t.Op(x) }",),
        ("Y { y = t.Op(x) }", 17, "float[3] x"),
        ("Y { y = t.Op(x) }", 17, "double[2] x"),
        ("Y { y = t.Op(x) }", 17, "float[N] x"),
    ],
    "input order": [("Y { y = Sub(x, b) }", 17, "float[2] x, float[2] b"), ("Y { y = Sub(x, b) }", 17, "float[2] b, float[2] x")],
    "captures of bodies": [(BODY.format(p, q), 17, "float[2] a, float[2] b, bool c") for p in ("a, b", "b, a") for q in ("a, b", "b, a")],
    "default of an input": [
        ("Y { y = Sub(x, b) }", 17, "float[2] x, float[2] b"),
        ("Y { y = Sub(x, b) }", 17, "float[2] x, float[2] b = {1, 2}"),
        ("Y { y = Sub(x, b) }", 17, "float[2] x, float[2] b = {1, 3}"),
    ],
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_graphs_have_different_keys(name: str) -> None:
    keys = [load(text(*args)).key for args in DIFFERENT[name]]
    assert len(set(keys)) == len(keys)


def test_the_key_tells_apart_outputs_of_copies() -> None:
    graph = load(text("(float[2] y, float[2] z, float[2] u) { y = Neg(x)  z = Neg(x)  u = Neg(x) }"))
    y, z, u = graph.outputs
    made = []
    for outputs in ((y, y, z), (y, z, z), (y, z, y), (y, z, u)):
        nodes = {i: n for i, n in graph.nodes.items() if n.is_input or Value(i) in outputs}
        made.append(dataclasses.replace(graph, nodes=nodes, outputs=outputs, users=link(nodes, outputs), memo={}))
    assert len({g.key for g in made}) == 4
    flipped = dataclasses.replace(made[0], outputs=(z, z, y), users=link(made[0].nodes, (z, z, y)), memo={})
    assert flipped.key == made[0].key


def test_the_key_sees_sparse_contents_and_functions() -> None:
    def sparse(values: list[float], name: str) -> onnx.ModelProto:
        held = oh.make_sparse_tensor(oh.make_tensor(name, T.FLOAT, [2], values), oh.make_tensor(name + "i", T.INT64, [2], [0, 2]), [3])
        x, y = (oh.make_tensor_value_info(n, T.FLOAT, [3]) for n in "xy")
        return oh.make_model(
            oh.make_graph([oh.make_node("Add", ["x", name], ["y"])], "g", [x], [y], sparse_initializer=[held]), ir_version=8
        )

    assert load(sparse([1, 2], "s")).key == load(sparse([1, 2], "other")).key
    assert load(sparse([1, 2], "s")).key != load(sparse([1, 3], "s")).key

    def function(op: str) -> onnx.ModelProto:
        return parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17, "t" : 1]> g (float[2] x) => (float[2] y) { y = t.f(x) }'
            f'<domain: "t", opset_import: ["" : 17]> f (a) => (b) {{ b = {op}(a) }}'
        )

    assert load(function("Neg")).key == load(function("Neg")).key
    assert load(function("Neg")).key != load(function("Abs")).key


def test_the_key_is_blind_to_a_body_s_names_and_defaults_written_out() -> None:
    head = "float[2] a, float[2] b, bool c"
    one = load(text(BODY.format("a, b", "b, a"), 17, head))
    two = load(
        text(BODY.format("a, b", "b, a").replace(" p", " other").replace("(float[2] q)", "(float[2] p)").replace(" q ", " p "), 17, head)
    )
    assert one.key == two.key
    plain, said = "(float[2,2] y) { y = Softmax(x) }", "(float[2,2] y) { y = Softmax<axis = -1>(x) }"
    assert load(text(plain, 17, "float[2,2] x")).key == load(text(said, 17, "float[2,2] x")).key


PROGRAM = """
import sys
import numpy as np, onnx
from pathlib import Path
from tests.ir.walks import load, walk
for path in sorted(Path(sys.argv[1]).iterdir()):
    graph = load(onnx.load(path))
    graph.key
    print(path.name, graph.key, *(g.key for g, _ in walk(graph, np.random.default_rng(0), 5)))
"""


def test_the_key_is_the_same_in_every_process(tmp_path: Path) -> None:
    @given(models())
    @settings(max_examples=12)
    def write(model: onnx.ModelProto) -> None:
        onnx.save(model, tmp_path / f"{len(list(tmp_path.iterdir()))}.onnx")

    write()
    root = Path(__file__).resolve().parents[2]
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 12
