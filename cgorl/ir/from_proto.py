"""ModelProto -> Graph, without loss: every node, name and attribute is kept, what is not understood is opaque."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import onnx
from immutables import Map

from cgorl.ir import infer, types_of
from cgorl.ir.calls import check_calls
from cgorl.ir.graph import Frame, Graph, GraphError, link, topological
from cgorl.ir.node import Node, TensorType, Value, constant, graph_input, sparse_constant
from cgorl.ir.ops import captured, foldable, parse_attributes
from cgorl.ir.tensor import Tensor


def from_proto(model: onnx.ModelProto, base: Path | None = None) -> Graph:
    """The graph of `model`, which it takes over: the caller must not use `model` afterwards.

    `base` is the folder of external data. Raises GraphError for a value that nothing defines or two things define, and for functions
    that call themselves or come to too much.
    """
    g = model.graph
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import}
    _check_names(g)
    check_calls(model)
    types = types_of.types_of(model, base)
    nodes: dict[int, Node] = {}
    scope: dict[str, Value] = {}
    weights = {t.name: t for t in g.initializer}
    listed = {i.name for i in g.input}
    pinned = _trained(model)
    inputs: list[int] = []
    for info in g.input:
        if info.name in weights and model.ir_version < 4:
            continue  # before IR 4 every initializer had to be listed; it was no less constant
        kind = infer.from_proto(info.type) if info.HasField("type") else None
        default = Tensor(weights[info.name], base=base) if info.name in weights else None
        nodes[len(nodes)] = graph_input(len(inputs), kind, info.name, default)
        scope[info.name] = Value(len(nodes) - 1)
        inputs.append(len(nodes) - 1)
    for proto in g.initializer:
        if proto.name in listed and model.ir_version >= 4:
            continue  # a default that a caller may override is no constant; it stays in the frame
        made = constant(Tensor(proto, base=base), proto.name)
        nodes[len(nodes)] = made if proto.name not in pinned else made.with_inputs({}, False)
        scope[proto.name] = Value(len(nodes) - 1)
    for sparse in g.sparse_initializer:
        if sparse.values.name in scope:
            raise GraphError(f"initializer '{sparse.values.name}' is defined twice")
        nodes[len(nodes)] = sparse_constant(sparse)
        scope[sparse.values.name] = Value(len(nodes) - 1)
    add_nodes(nodes, scope, list(g.node), types, model, opsets, base, len(nodes))
    outputs = tuple(_resolve(scope, o.name, "graph output") for o in g.output)
    value_info = {v.name: v for v in g.value_info}
    functions = sorted(f.SerializeToString(deterministic=True) for f in model.functions)
    digest = hashlib.blake2b(repr(functions).encode(), digest_size=16).digest() if functions else b""
    frame = Frame(_frame(model), value_info, frozenset(scope), base, digest)
    return Graph(Map(nodes), link(nodes, outputs), tuple(inputs), outputs, opsets, frame, len(nodes))


def add_nodes(
    nodes: dict[int, Node],
    scope: dict[str, Value],
    protos: list[onnx.NodeProto],
    types: Mapping[str, TensorType],
    model: onnx.ModelProto,
    opsets: Mapping[str, int],
    base: Path | None,
    start: int,
) -> None:
    """Adds a Node with an id from `start` on for each NodeProto, in a valid order, and its outputs' names to `scope`."""
    local = {("" if f.domain == "ai.onnx" else f.domain, f.name) for f in model.functions}
    maker = {name: k for k, p in enumerate(protos) for name in p.output if name}
    for name in maker:
        if name in scope:
            raise GraphError(f"value '{name}' is defined twice")
    order = topological({k: [maker[n] for n in _reads(p) if n in maker] for k, p in enumerate(protos)})
    for i, k in enumerate(order, start):
        proto = protos[k]
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        called = f"node '{proto.name or proto.op_type}'"
        inputs = tuple(_resolve(scope, n, called) if n else None for n in proto.input)
        caught = tuple((n, _resolve(scope, n, called)) for n in captured(proto))
        version = opsets.get(domain, 1)
        if (domain, proto.op_type) in local:
            domain = domain or "cgorl.local"
        attrs = parse_attributes(proto, domain, version, base)
        fixed = (
            foldable(proto.op_type, domain)
            and (all(nodes[v.node].constant for v in inputs if v is not None) if inputs else proto.op_type == "Constant")
            and (proto.op_type != "Constant" or "sparse_value" not in attrs)
        )
        if proto.op_type == "Constant" and domain == "" and fixed:
            attrs = {"value": _constant_value(proto, attrs)}
        kinds = tuple(types.get(n) if n else None for n in proto.output)
        if "value" in attrs and proto.op_type == "Constant" and domain == "":
            t = attrs["value"]
            assert isinstance(t, Tensor)
            kinds = (TensorType(t.dtype, tuple(int(d) for d in t.shape)),)
        nodes[i] = Node(proto.op_type, domain, inputs, attrs, kinds, fixed, proto.name, tuple(proto.output), caught, proto)
        for port, name in enumerate(proto.output):
            if name:
                scope[name] = Value(i, port)


def _constant_value(proto: onnx.NodeProto, attrs: Mapping[str, object]) -> Tensor:
    """The dense tensor that a Constant node gives, whichever attribute holds it."""
    if isinstance(attrs.get("value"), Tensor):
        return attrs["value"]  # type: ignore[return-value]
    name, value = next(iter(attrs.items()), ("", None))
    dtypes = {"value_float": 1, "value_floats": 1, "value_int": 7, "value_ints": 7, "value_string": 8, "value_strings": 8}
    if name not in dtypes:
        raise GraphError(f"node '{proto.name or proto.output[0]}' (Constant) holds no value")
    if dtypes[name] == onnx.TensorProto.STRING:
        texts = value if isinstance(value, tuple) else (value,)
        shape = [len(texts)] if isinstance(value, tuple) else []
        made = onnx.TensorProto(data_type=dtypes[name], dims=shape)
        made.string_data.extend(str(s).encode("utf-8", "surrogateescape") for s in texts)
        return Tensor(made)
    import numpy as np

    return Tensor.of(np.array(value, np.float32 if dtypes[name] == 1 else np.int64))


def _frame(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` itself without nodes, weights and value_info; the messages taken out live on through their references."""
    g = model.graph
    listed = {i.name for i in g.input} if model.ir_version >= 4 else set()
    kept = [t for t in g.initializer if t.name in listed]
    copies = []
    for t in kept:
        copy = onnx.TensorProto()
        copy.CopyFrom(t)
        copies.append(copy)
    del g.node[:]
    del g.initializer[:]
    g.initializer.extend(copies)
    del g.value_info[:]
    return model


def _reads(proto: onnx.NodeProto) -> Iterable[str]:
    return (n for n in (*proto.input, *captured(proto)) if n)


def _resolve(scope: Mapping[str, Value], name: str, reader: str) -> Value:
    try:
        return scope[name]
    except KeyError:
        raise GraphError(f"{reader} reads '{name}', which nothing defines") from None


def _check_names(g: onnx.GraphProto) -> None:
    for what, names in (("input", [i.name for i in g.input]), ("initializer", [t.name for t in g.initializer])):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise GraphError(f"{what} '{name}' is defined twice")
            seen.add(name)
    made = set()
    for node in g.node:
        for name in node.output:
            if name and name in made:
                raise GraphError(f"value '{name}' is defined twice")
            made.add(name)


def _trained(model: onnx.ModelProto) -> set[str]:
    """Names that training_info updates: no constants, whatever they look like."""
    return {b.key for t in model.training_info for part in (t.initialization_binding, t.update_binding) for b in part}
