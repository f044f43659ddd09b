"""Files that mean harm, or come from a broken disk: each made here, by name, as the files of an upload."""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.web.models import model, small

Files = Mapping[str, bytes]
_X, _Y = [("x", [1, 8])], [("y", [1, 8])]
_FLOAT = TensorProto.FLOAT


def _tensor(name: str, dims: list[int], raw: bytes = b"", kind: int = _FLOAT, **external: str) -> onnx.TensorProto:
    made = TensorProto(name=name, data_type=kind, dims=dims)
    if external:
        made.data_location = TensorProto.EXTERNAL
        for key, value in external.items():
            made.external_data.add(key=key, value=value)
    else:
        made.raw_data = raw
    return made


def _with(*weights: onnx.TensorProto, op: str = "Add", shape: list[int] | None = None) -> bytes:
    """A model that computes with the first of these weights."""
    return model([helper.make_node(op, ["x", weights[0].name], ["y"])], list(weights), [("x", shape or [1, 8])], _Y)


def _ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def _field(number: int, value: bytes) -> bytes:
    """A field of a protobuf message, written by hand: protobuf itself will not nest so deep."""
    size, left = b"", len(value)
    while left > 127:
        size, left = size + bytes([left & 127 | 128]), left >> 7
    return (
        bytes([number << 3 & 127 | 2 | (128 if number > 15 else 0)])
        + (bytes([number >> 4]) if number > 15 else b"")
        + size
        + bytes([left])
        + value
    )


def _nested(levels: int) -> bytes:
    """If in If in If."""
    out = helper.make_tensor_value_info("r", _FLOAT, [1, 8])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "in", [], [out]).SerializeToString()
    other = AttributeProto(name="else_branch", type=AttributeProto.GRAPH)
    other.g.ParseFromString(graph)
    for _ in range(levels):
        branch = AttributeProto(name="then_branch", type=AttributeProto.GRAPH).SerializeToString() + _field(6, graph)
        node = helper.make_node("If", ["c"], ["r"]).SerializeToString() + _field(5, branch) + _field(5, other.SerializeToString())
        graph = _field(1, node) + helper.make_graph([], "in", [], [out]).SerializeToString()
    inputs = [helper.make_tensor_value_info("x", _FLOAT, [1, 8]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph += b"".join(_field(11, i.SerializeToString()) for i in inputs)
    imports = helper.make_opsetid("", 17).SerializeToString()
    return onnx.ModelProto(ir_version=9).SerializeToString() + _field(7, graph) + _field(8, imports)


def _laughs(levels: int) -> bytes:
    """Functions of which each calls the next twice."""
    functions = []
    for k in range(levels):
        inner = f"f{k + 1}" if k + 1 < levels else "Relu"
        domain = "lol" if k + 1 < levels else ""
        nodes = [helper.make_node(inner, ["a"], ["b"], domain=domain), helper.make_node(inner, ["b"], ["c"], domain=domain)]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("lol", 1)]
        functions.append(helper.make_function("lol", f"f{k}", ["a"], ["c"], nodes, imports))
    return _functions(functions)


def _functions(functions: list[onnx.FunctionProto]) -> bytes:
    values = [helper.make_tensor_value_info(n, _FLOAT, [1, 8]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="lol")], "g", values[:1], values[1:])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("lol", 1)]
    return bytes(helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=9).SerializeToString())


def _endless_function() -> bytes:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("lol", 1)]
    node = helper.make_node("f0", ["a"], ["c"], domain="lol")
    return _functions([helper.make_function("lol", "f0", ["a"], ["c"], [node], imports)])


def _endless_loop() -> bytes:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Relu", ["v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", _FLOAT, [1, 8]),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("w", _FLOAT, [1, 8])],
    )
    weights = [numpy_helper.from_array(np.array(2**62), "m"), numpy_helper.from_array(np.array(True), "t")]
    nodes = [helper.make_node("Loop", ["m", "t", "x"], ["l"], body=body), helper.make_node("Identity", ["l"], ["k"])]
    return model([*nodes, helper.make_node("Relu", ["k"], ["y"])], weights, _X, _Y)


def _cycle() -> bytes:
    return model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])], [], _X, [("b", [1, 8])])


def _custom(count: int) -> bytes:
    nodes = [helper.make_node("Bomb", ["x" if not k else f"v{k - 1}"], [f"v{k}"], domain="evil.example") for k in range(count)]
    found = onnx.ModelProto.FromString(model(nodes, [], _X, [(f"v{count - 1}", [1, 8])]))
    found.opset_import.add(domain="evil.example", version=1)
    return bytes(found.SerializeToString())


def _wide(op: str, *shape: int, **attributes: object) -> bytes:
    """A constant that an operator blows up."""
    weights = [_ints("shape", *shape), numpy_helper.from_array(np.ones(1, np.float32), "one")]
    inputs = {"ConstantOfShape": ["shape"], "Expand": ["one", "shape"], "Tile": ["one", "shape"], "Pad": ["one", "shape"]}[op]
    nodes = [helper.make_node(op, inputs, ["big"], **attributes), helper.make_node("ReduceSum", ["big"], ["s"], keepdims=0)]
    return model([*nodes, helper.make_node("Add", ["x", "s"], ["y"])], weights, _X, _Y)


def _zip(inner: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("model.onnx", inner)
        z.writestr("../../escape.onnx", inner)
    return out.getvalue()


class _Pickled:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("open('pickled', 'w')",)


def _named(name: str) -> bytes:
    nodes = [helper.make_node("Relu", ["x"], [name], name=name), helper.make_node("Neg", [name], ["y"], name="plain")]
    return model(nodes, [], _X, _Y)


def _bad_text() -> bytes:
    return small().replace(b"relu", b"\xff\xfe\xfd\xfc")


MARKUP = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>\"'&{{7*7}}"
_PLAIN = small()
_MODEL = "model.onnx"

WRONG: Mapping[str, Callable[[], Files]] = {
    "truncated": lambda: {_MODEL: _PLAIN[: len(_PLAIN) // 2]},
    "one byte": lambda: {_MODEL: b"\x08"},
    "noise": lambda: {_MODEL: np.random.default_rng(0).bytes(4096)},
    "text": lambda: {_MODEL: b"<html><body>not a model</body></html>" * 50},
    "picture": lambda: {_MODEL: b"\x89PNG\r\n\x1a\n" + bytes(500)},
    "archive": lambda: {_MODEL: _zip(_PLAIN)},
    "archive of nothing": lambda: {_MODEL: _zip(bytes(30_000_000))},
    "compressed": lambda: {_MODEL: gzip.compress(_PLAIN)},
    "pickle": lambda: {_MODEL: pickle.dumps(_Pickled())},
    "names that are no text": lambda: {_MODEL: _bad_text()},
    "nested too deep": lambda: {_MODEL: _nested(200)},
    "a cycle": lambda: {_MODEL: _cycle()},
    "two gigabytes declared": lambda: {_MODEL: _with(_tensor("w", [500_000_000]))},
    "huge dims": lambda: {_MODEL: _with(_tensor("w", [2**62, 2**62]))},
    "negative dims": lambda: {_MODEL: _with(_tensor("w", [-8]))},
    "huge string tensor": lambda: {_MODEL: _with(_tensor("w", [2**40], kind=TensorProto.STRING))},
    "a kind that there is not": lambda: {_MODEL: _with(_tensor("w", [8], bytes(32), kind=99))},
    "data above": lambda: {_MODEL: _with(_tensor("w", [8], location="../../../../etc/passwd"))},
    "data elsewhere": lambda: {_MODEL: _with(_tensor("w", [8], location="/etc/passwd"))},
    "data of a device": lambda: {_MODEL: _with(_tensor("w", [8], location="/dev/zero", length="32"))},
    "data of nowhere": lambda: {_MODEL: _with(_tensor("w", [8], location="w.bin"))},
    "data of itself": lambda: {_MODEL: _with(_tensor("w", [2**20], location=_MODEL, offset="0", length=str(2**22)))},
    "data too short": lambda: {_MODEL: _with(_tensor("w", [2**30], location="w.bin")), "w.bin": bytes(64)},
    "data before its beginning": lambda: {_MODEL: _with(_tensor("w", [8], location="w.bin", offset="-64")), "w.bin": bytes(64)},
    "data at no number": lambda: {_MODEL: _with(_tensor("w", [8], location="w.bin", offset="1e99")), "w.bin": bytes(64)},
    "functions without end": lambda: {_MODEL: _endless_function()},
    "functions without number": lambda: {_MODEL: _laughs(48)},
    "nothing defines it": lambda: {_MODEL: model([helper.make_node("Add", ["x", "ghost"], ["y"])], [], _X, _Y)},
    "old opset": lambda: {_MODEL: model([helper.make_node("Relu", ["x"], ["y"])], [], _X, _Y, opset=3)},
}
"""Each of these is refused."""

ENDLESS: Callable[[], Files] = lambda: {_MODEL: _endless_loop()}  # noqa: E731
"""A loop without end, which nobody can tell from a long one: it is ended by the limits."""

STRANGE: Mapping[str, Callable[[], Files]] = {
    "nested deep": lambda: {_MODEL: _nested(24)},
    "input of an exabyte": lambda: {
        _MODEL: model([helper.make_node("Relu", ["x"], ["y"])], [], [("x", [2**30, 2**30])], [("y", [2**30, 2**30])])
    },
    "a constant of 64 GB": lambda: {_MODEL: _wide("ConstantOfShape", 2**34)},
    "a constant of 64 GB, expanded": lambda: {_MODEL: _wide("Expand", 2**34)},
    "a constant of 64 GB, tiled": lambda: {_MODEL: _wide("Tile", 2**34)},
    "a constant of 64 GB, padded": lambda: {_MODEL: _wide("Pad", 2**33, 2**33)},
    "a constant of many": lambda: {_MODEL: _wide("ConstantOfShape", 2**21, 2**21, 2**21)},
    "operators of another world": lambda: {_MODEL: _custom(3000)},
    "markup for names": lambda: {_MODEL: _named(MARKUP)},
    "a name of a megabyte": lambda: {_MODEL: _named("n" * 2**20)},
    "control characters for names": lambda: {_MODEL: _named("\x1b]0;owned\x07\x1b[2J\r\n")},
    "a module among its data": lambda: {
        _MODEL: _with(_tensor("w", [8], location="onnxruntime.py")),
        "onnxruntime.py": b"open('imported','w')".ljust(32),
        "numpy.py": b"open('imported','w')",
        "sitecustomize.py": b"open('imported','w')",
    },
    "a future": lambda: {_MODEL: model([helper.make_node("Relu", ["x"], ["y"])], [], _X, _Y, opset=9999)},
    "no operators": lambda: {_MODEL: model([], [], _X, [("x", [1, 8])])},
    "a conv of nothing": lambda: {
        _MODEL: model(
            [helper.make_node("Conv", ["x", "w"], ["y"], group=0, strides=[0, 0], kernel_shape=[2**31 - 1, 2**31 - 1])],
            [numpy_helper.from_array(np.ones((8, 3, 3, 3), np.float32), "w")],
            [("x", [1, 3, 16, 16])],
            [("y", [1, 8, 14, 14])],
        )
    },
}
"""Each of these ends: refused, failed with a reason, or done, whatever is right; none takes the service along."""
