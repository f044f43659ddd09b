"""What the engine knows of an ONNX operator: its schema, whether it may be computed ahead, whether operands commute."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import onnx

from cgorl.ir.node import Attrs, AttrValue, Opaque, attr_digest
from cgorl.ir.tensor import Tensor

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"},
)
"""Operators that may answer differently each time; inference-mode Dropout is turned into nothing by simplify instead."""

QUANTIZED = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
"""Computing these ahead would undo a quantized model: runtimes look for them next to the operators they serve."""

BODIES = frozenset({"If", "Loop", "Scan", "SequenceMap"})

COMMUTATIVE = frozenset(
    {"Add", "Mul", "Sum", "Max", "Min", "Mean", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"},
)
"""Operators whose operands may stand in any order."""


@lru_cache(maxsize=4096)
def schema(op: str, domain: str, version: int) -> Any | None:
    """The OpSchema of `op` in force at opset `version` of `domain`; None where onnx defines no such operator."""
    try:
        found = onnx.defs.get_schema(op, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # a version beyond 32 bits is a TypeError
        return None
    return None if found.deprecated else found


@lru_cache(maxsize=4096)
def foldable(op: str, domain: str) -> bool:
    """Whether the operator, given constants, gives a constant: pure, without bodies, no (de)quantization, a standard one."""
    return domain == "" and op not in RANDOM and op not in QUANTIZED and op not in BODIES and onnx.defs.has(op)


@lru_cache(maxsize=4096)
def pure(op: str, domain: str) -> bool:
    """Whether two equal applications always give equal results (the condition for sharing one)."""
    return domain == "" and op not in RANDOM and op not in BODIES and op != "Optional" and onnx.defs.has(op)


@lru_cache(maxsize=4096)
def defaults(op: str, domain: str, version: int) -> dict[str, AttrValue]:
    """Attribute values that hold where a node names none."""
    found = schema(op, domain, version)
    if found is None:
        return {}
    return {
        name: parse_attribute(a.default_value)
        for name, a in found.attributes.items()
        if a.default_value is not None and a.default_value.type != onnx.AttributeProto.UNDEFINED
    }


def parse_attribute(proto: onnx.AttributeProto, base: Any = None, places: Mapping[str, int] | None = None) -> AttrValue:
    """The Python value of an attribute; tensors stay unread, bodies and rarities become Opaque.

    `places` says which of its node's captures an outer name is, for the digest of a body.
    """
    kind = onnx.AttributeProto
    if proto.ref_attr_name:
        return Opaque(proto, _digest(proto))
    match proto.type:
        case kind.INT:
            return int(proto.i)
        case kind.FLOAT:
            return float(proto.f)
        case kind.STRING:
            return proto.s.decode("utf-8", "surrogateescape")
        case kind.INTS:
            return tuple(int(i) for i in proto.ints)
        case kind.FLOATS:
            return tuple(float(f) for f in proto.floats)
        case kind.STRINGS:
            return tuple(s.decode("utf-8", "surrogateescape") for s in proto.strings)
        case kind.TENSOR:
            return Tensor(proto.t, base=base)
        case kind.GRAPH:
            return Opaque(proto, body_digest(proto.g, places or {}, base))
        case _:
            return Opaque(proto, _digest(proto))


def parse_attributes(node: onnx.NodeProto, domain: str, version: int, base: Any = None) -> dict[str, AttrValue]:
    """All attributes of a NodeProto as Python values, without those that say what the default says."""
    usual = defaults(node.op_type, domain, version)
    places = {name: k for k, name in enumerate(captured(node))}
    found = {a.name: parse_attribute(a, base, places) for a in node.attribute}
    return {k: v for k, v in found.items() if k not in usual or attr_digest(usual[k]) != attr_digest(v)}


def make_node(op: str, domain: str, version: int, inputs: list[str], outputs: list[str], attrs: Attrs) -> onnx.NodeProto:
    """A NodeProto with the given attributes, typed as the operator's schema says."""
    made = onnx.NodeProto(op_type=op, domain=domain, input=inputs, output=outputs)
    spec = schema(op, domain, version)
    for name in attrs:
        value = attrs[name]
        kind = int(spec.attributes[name].type.value) if spec is not None and name in spec.attributes else None
        if isinstance(value, Tensor):
            proto = onnx.AttributeProto(name=name, type=onnx.AttributeProto.TENSOR)
            proto.t.CopyFrom(value.to_proto(""))
        elif isinstance(value, Opaque):
            proto = onnx.AttributeProto()
            proto.CopyFrom(value.proto)
        else:
            plain = list(value) if isinstance(value, tuple) else value
            proto = onnx.helper.make_attribute(name, plain, attr_type=kind)
        made.attribute.append(proto)
    return made


def _digest(proto: Any) -> bytes:
    import hashlib

    return hashlib.blake2b(proto.SerializeToString(deterministic=True), digest_size=16).digest()


def body_digest(body: onnx.GraphProto, places: Mapping[str, int], base: Any = None) -> bytes:
    """A digest of a body that is blind to the names it defines and to how its tensors are stored.

    An outer name counts by its place among its node's captures; `base` is the folder of external data.
    """
    made = onnx.GraphProto()
    made.CopyFrom(body)
    _strip(made, base)
    rename_values(made, _Numbering({name: f"^{places[name]}" for name in captures(body) if name in places}))
    return _digest(made)


class _Numbering(dict[str, str]):
    def __missing__(self, key: str) -> str:
        self[key] = found = f"%{len(self)}"
        return found


def _strip(body: onnx.GraphProto, base: Any) -> None:
    """Takes out what says nothing of what `body`, and the bodies inside it, compute; leaves a digest of each tensor."""
    body.ClearField("name")
    held = [(t, t.name) for t in body.initializer] + [(a.t, "") for node in body.node for a in node.attribute if a.HasField("t")]
    for t, name in held:
        digest = Tensor(t, base=base).digest
        t.Clear()
        t.name, t.raw_data = name, digest
    for part in (body, *body.input, *body.output, *body.node, *body.initializer):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    del body.value_info[:]
    for node in body.node:
        node.ClearField("name")
        attributes = sorted((onnx.AttributeProto.FromString(a.SerializeToString()) for a in node.attribute), key=lambda a: a.name)
        del node.attribute[:]
        node.attribute.extend(attributes)
        for inner in bodies(node):
            _strip(inner, base)


def rename_values(body: onnx.GraphProto, names: dict[str, str]) -> None:
    """Renames every value of `body` and the bodies inside it in place; `names[old]` must exist or be made on demand."""
    for tensor in body.initializer:
        tensor.name = names[tensor.name]
    for sparse in body.sparse_initializer:
        sparse.values.name = names[sparse.values.name]
    for part in (body.input, body.output, body.value_info):
        for info in part:
            info.name = names[info.name]
    for node in body.node:
        for part in (node.input, node.output):
            for k, name in enumerate(part):
                if name:
                    part[k] = names[name]
        for a in node.attribute:
            for g in [a.g, *a.graphs] if a.HasField("g") else a.graphs:
                rename_values(g, names)


def captures(body: onnx.GraphProto) -> list[str]:
    """Names that `body`, or a body inside it, reads from outside, in order of first use."""
    found: dict[str, None] = {}
    own = {i.name for i in body.input} | {t.name for t in body.initializer} | {s.values.name for s in body.sparse_initializer}
    own |= {o for node in body.node for o in node.output}
    for node in body.node:
        inner = (n for g in bodies(node) for n in captures(g))
        for name in (*node.input, *inner):
            if name and name not in own:
                found[name] = None
    for out in body.output:
        if out.name and out.name not in own:
            found[out.name] = None
    return list(found)


def bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The bodies that a NodeProto carries as attributes, by the attributes' names."""
    held = sorted((a for a in node.attribute if a.HasField("g") or a.graphs), key=lambda a: a.name)
    return [g for a in held for g in ([a.g, *a.graphs] if a.HasField("g") else a.graphs)]


def captured(node: onnx.NodeProto) -> list[str]:
    """Names that the bodies of a NodeProto read from outside, each once, in order of first use."""
    return list(dict.fromkeys(n for body in bodies(node) for n in captures(body)))
