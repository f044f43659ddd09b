"""Value, TensorType, Node: what a graph is made of."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import onnx

from cgorl.ir.tensor import Tensor

Dim = int | str | None
"""A known size, a symbol (equal symbols of one graph are equal sizes), or nothing known."""


_DTYPES: dict[int, str] = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}


class Value(NamedTuple):
    """Output `port` of node `node`."""

    node: int
    port: int = 0


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type (onnx's number) and shape of a value; shape None: not even the rank is known."""

    dtype: int
    shape: tuple[Dim, ...] | None

    @property
    def rank(self) -> int | None:
        """The number of dims, if known."""
        return None if self.shape is None else len(self.shape)

    @property
    def static(self) -> bool:
        """Whether every dim is a number."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    def agrees(self, other: TensorType) -> bool:
        """Whether some tensor can have both types: nothing that both know differs."""
        if self.dtype != other.dtype:
            return False
        if self.shape is None or other.shape is None:
            return True
        if len(self.shape) != len(other.shape):
            return False
        return all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in zip(self.shape, other.shape, strict=True))

    def meet(self, other: TensorType) -> TensorType:
        """The type that knows what either knows (numbers before symbols before nothing; `self` first)."""
        if self.shape is None or other.shape is None:
            return self if other.shape is None else other
        pick = (
            a if isinstance(a, int) or (a is not None and not isinstance(b, int)) else b
            for a, b in zip(self.shape, other.shape, strict=True)
        )
        return TensorType(self.dtype, tuple(pick))

    def __str__(self) -> str:
        """The type as in onnx text form, e.g. `float[1,3,N,?]`."""
        name = _DTYPES.get(self.dtype, f"type{self.dtype}")
        return name + ("" if self.shape is None else "[" + ",".join("?" if d is None else str(d) for d in self.shape) + "]")


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """An attribute that nothing here computes with: a body, a sparse tensor, a type. Kept to the bit."""

    proto: Any
    digest: bytes


AttrValue = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Tensor | Opaque
Attrs = Mapping[str, AttrValue]

_INPUT, _CONSTANT = "Input", "Constant"


_OWN = ("signature", "hash")
"""What is remembered of a node whatever it reads."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One application of an ONNX operator, or a source: `Input` (a graph input) or `Constant` (an initializer or Constant node).

    A node that came from a file keeps its NodeProto, which is what a save writes back; `attrs` are its attributes as
    Python values without those equal to the operator's default. `captures` are the outer values that its bodies read, by
    the name they use; they are uses like any other. Two nodes are equal only if they are one object.
    """

    op: str
    domain: str
    inputs: tuple[Value | None, ...]
    attrs: Attrs
    types: tuple[TensorType | None, ...]
    constant: bool = False
    name: str = ""
    names: tuple[str, ...] = ()
    captures: tuple[tuple[str, Value], ...] = ()
    proto: onnx.NodeProto | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_input(self) -> bool:
        """Whether the node stands for a graph input."""
        return self.op == _INPUT and self.domain == SOURCE

    @property
    def holds_tensor(self) -> bool:
        """Whether the node is an initializer or a Constant node with a dense tensor, be it one that training updates."""
        return self.op == _CONSTANT and self.domain in ("", SOURCE) and "value" in self.attrs

    @property
    def is_constant(self) -> bool:
        """Whether the node is an initializer or a Constant node whose contents stand."""
        return self.constant and self.holds_tensor

    @property
    def is_source(self) -> bool:
        """Whether the node is an input, an initializer or a Constant node, which compute nothing."""
        return self.is_input or self.holds_tensor

    @property
    def label(self) -> str:
        """The operator with its domain, as people write it."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def tensor(self) -> Tensor:
        """The contents of a constant node."""
        found = self.attrs["value"]
        assert isinstance(found, Tensor)
        return found

    def gives(self, port: int) -> bool:
        """Whether output `port` is there: an optional one may have been left out."""
        return not self.names or bool(self.names[port])

    def reads(self) -> Iterator[Value]:
        """Every value the node uses, its bodies' captures included, with repetition."""
        for v in self.inputs:
            if v is not None:
                yield v
        for _, v in self.captures:
            yield v

    def with_inputs(self, swap: Mapping[Value, Value], constant: bool) -> Node:
        """The same node reading `swap[v]` for `v`."""
        inputs = tuple(v if v is None else swap.get(v, v) for v in self.inputs)
        captures = tuple((n, swap.get(v, v)) for n, v in self.captures)
        memo = {k: self.memo[k] for k in _OWN if k in self.memo}
        return Node(self.op, self.domain, inputs, self.attrs, self.types, constant, self.name, self.names, captures, self.proto, memo)

    @property
    def signature(self) -> bytes:
        """A digest of operator and attributes, without inputs; the same in every process."""
        found = self.memo.get("signature")
        if found is None:
            overload = self.proto.overload if self.proto is not None else ""
            about = (self.domain, self.op, overload, len(self.types))
            plain = all(isinstance(x, int | str) for v in self.attrs.values() for x in (v if isinstance(v, tuple) else (v,)))
            found = (_plain_signature if plain else _signature)(about, tuple(self.attrs.items()))
            self.memo["signature"] = found
        return found


def _signature(about: tuple[str, str, str, int], attrs: tuple[tuple[str, AttrValue], ...]) -> bytes:
    h = hashlib.blake2b(repr(about).encode(), digest_size=16)
    for key, value in sorted(attrs, key=lambda item: item[0]):
        h.update(_sized(key.encode()) + _sized(attr_digest(value)))
    return h.digest()


_plain_signature = lru_cache(maxsize=1 << 16)(_signature)
"""The same for attributes of integers and text; among floats 0.0 and -0.0 would be taken for one."""


SOURCE = "cgorl.source"
"""Domain of the nodes that stand for graph inputs and initializers; it never leaves a file."""


def constant(tensor: Tensor, name: str = "") -> Node:
    """A Constant node (saved as an initializer) with the given contents."""
    kind = TensorType(tensor.dtype, tuple(int(d) for d in tensor.shape))
    return Node(_CONSTANT, SOURCE, (), {"value": tensor}, (kind,), True, "", (name,))


def graph_input(position: int, kind: TensorType | None, name: str, default: Tensor | None = None) -> Node:
    """The node that stands for graph input number `position`, which a caller may leave out if it has a `default`."""
    attrs: dict[str, AttrValue] = {"position": position} if default is None else {"position": position, "default": default}
    return Node(_INPUT, SOURCE, (), attrs, (kind,), False, "", (name,))


def sparse_constant(proto: onnx.SparseTensorProto) -> Node:
    """The node that stands for a sparse initializer."""
    made = onnx.SparseTensorProto()
    made.CopyFrom(proto)
    made.values.ClearField("name")
    made.indices.ClearField("name")
    digest = hashlib.blake2b(made.SerializeToString(deterministic=True), digest_size=16).digest()
    kind = TensorType(proto.values.data_type, tuple(proto.dims))
    return Node("SparseConstant", SOURCE, (), {"value": Opaque(proto, digest)}, (kind,), False, "", (proto.values.name,))


def attr_digest(value: AttrValue) -> bytes:
    """Bytes that tell attribute values apart, the same in every process."""
    if isinstance(value, Tensor):
        return b"t" + value.digest
    if isinstance(value, Opaque):
        return b"o" + value.digest
    if isinstance(value, bool | int):
        return b"i%d" % int(value)
    if isinstance(value, float):
        return b"f" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogateescape")
    return b"(" + b"".join(_sized(attr_digest(v)) for v in value)


def _sized(part: bytes) -> bytes:
    return b"%d:" % len(part) + part
