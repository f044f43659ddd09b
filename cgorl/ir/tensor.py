"""Tensor: the contents of a constant, read only when somebody looks."""

from __future__ import annotations

import errno
import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx_ir import serde

Array = np.ndarray[Any, Any]

_CHUNK_BYTES = 1 << 20  # larger ones cost a page fault for every page, ten times the time


class Tensor:
    """An immutable constant: a TensorProto as it stood in the file, or an array made by a rewrite.

    The numbers of a file's tensor, external ones included, are touched only by `array`, `digest` and `read`;
    a graph of several gigabytes is therefore cheap to hold, copy and search.
    """

    __slots__ = ("_array", "_digest", "base", "dtype", "memo", "nbytes", "proto", "shape")

    def __init__(self, proto: onnx.TensorProto | None, array: Array | None = None, dtype: int = 0, base: Path | None = None) -> None:
        """Wraps `proto` (external data relative to folder `base`), or `array` with the onnx element type `dtype`."""
        self.proto, self._array, self.base = proto, array, base
        self._digest: bytes | None = None
        self.memo: dict[str, Any] = {}
        if proto is not None:
            self.dtype, self.shape = int(proto.data_type), tuple(proto.dims)
            self.nbytes = math.ceil(math.prod(self.shape) * element_bits(self.dtype) / 8)
        else:
            assert array is not None
            array.flags.writeable = False
            self.dtype, self.shape = dtype, tuple(array.shape)
            self.nbytes = math.ceil(array.size * element_bits(dtype) / 8)

    @classmethod
    def of(cls, array: Any, dtype: int | None = None) -> Tensor:
        """A tensor that holds a copy of `array` (anything numpy takes), of onnx element type `dtype` or the array's own."""
        made = np.array(array, order="C")
        if made.dtype.kind in "OSU":
            texts = [s if isinstance(s, bytes) else str(s).encode() for s in made.reshape(-1)]
            return cls(None, np.array(texts, object).reshape(made.shape), onnx.TensorProto.STRING)
        return cls(None, made, dtype if dtype is not None else onnx.helper.np_dtype_to_tensor_dtype(made.dtype))

    @property
    def external(self) -> bool:
        """Whether the bytes live beside the model file."""
        return self.proto is not None and self.proto.data_location == onnx.TensorProto.EXTERNAL

    def array(self) -> Array:
        """The contents, read-only; a tensor that came from a file is decoded anew each time, so that nothing is held twice."""
        if self._array is not None:
            return self._array
        assert self.proto is not None
        if self.dtype == onnx.TensorProto.STRING:
            found = np.array([bytes(s) for s in self.proto.string_data], dtype=object).reshape(self.shape)
        else:
            tensor = serde.deserialize_tensor(self.proto, base_path=str(self.base or ""))
            found = np.asarray(tensor.numpy())
        found.flags.writeable = False
        if self.nbytes <= 4096:
            self._array = found
        return found

    def small(self) -> bool:
        """Whether shape inference and conditions may look at the contents (at most 1,024 numbers)."""
        return math.prod(self.shape) <= 1024 and self.dtype != onnx.TensorProto.STRING

    @property
    def digest(self) -> bytes:
        """16 bytes that stand for type, shape and contents, equal in every process; read in chunks, kept."""
        if self._digest is None:
            h = hashlib.blake2b(repr((self.dtype, self.shape)).encode(), digest_size=16)
            if self.dtype == onnx.TensorProto.STRING:
                for s in self.array().reshape(-1):
                    h.update(len(s).to_bytes(8, "little") + s)
            else:
                for chunk in self.read():
                    h.update(chunk)
            self._digest = h.digest()
        return self._digest

    def sound(self) -> bool:
        """Whether the model file itself holds as many numbers as the shape says."""
        assert self.proto is not None
        if self.dtype not in onnx.TensorProto.DataType.values() or self.dtype == onnx.TensorProto.UNDEFINED:
            return False
        if self.proto.HasField("raw_data"):
            return self.dtype != onnx.TensorProto.STRING and bool(len(self.proto.raw_data) == self.nbytes)
        field, bits = _FIELDS.get(self.dtype, "int32_data"), element_bits(self.dtype)
        count = math.prod(self.shape) * (2 if self.dtype in (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128) else 1)
        return bool(len(getattr(self.proto, field)) == (self.nbytes if bits in (2, 4) else count))

    def read(self) -> Any:
        """The raw little-endian bytes as an iterator of chunks; an external file is read, not mapped, so memory stays flat."""
        if self.external:
            path, offset, length = self.location()
            with path.open("rb") as f:
                f.seek(offset)
                while length > 0:
                    if not (chunk := f.read(min(length, _CHUNK_BYTES))):
                        raise OSError(errno.EIO, f"external data ends {length:,} bytes early", str(path))
                    length -= len(chunk)
                    yield chunk
        elif self.proto is not None and self.proto.HasField("raw_data"):
            yield self.proto.raw_data
        elif self.proto is not None:
            yield serde.deserialize_tensor(self.proto).tobytes()
        elif self._array is not None and self._array.dtype.kind in "biuf" and element_bits(self.dtype) == 8 * self._array.dtype.itemsize:
            yield self._array.tobytes()
        else:
            yield self.to_proto("").raw_data

    def location(self) -> tuple[Path, int, int]:
        """File, offset and length in bytes of external data."""
        assert self.proto is not None
        entry = {e.key: e.value for e in self.proto.external_data}
        path = (self.base or Path()) / entry.get("location", "")
        offset = int(entry.get("offset", 0) or 0)
        length = int(entry["length"]) if entry.get("length") else self.nbytes
        return path, offset, length

    def to_proto(self, name: str, made: onnx.TensorProto | None = None) -> onnx.TensorProto:
        """A TensorProto called `name` that carries its bytes (external ones are read in); `made`, if given, becomes it."""
        made = onnx.TensorProto() if made is None else made
        if self.proto is not None and not self.external:
            made.CopyFrom(self.proto)
        elif self.proto is not None:
            made.CopyFrom(self.proto)
            made.ClearField("external_data")
            made.ClearField("data_location")
            made.raw_data = b"".join(self.read())
        elif self.dtype == onnx.TensorProto.STRING:
            assert self._array is not None
            made.data_type = self.dtype
            made.dims.extend(self.shape)
            made.string_data.extend(self._array.reshape(-1).tolist())
        else:
            assert self._array is not None
            made.CopyFrom(serde.serialize_tensor(_as_ir(self._array, self.dtype)))
        if made.name != name:
            made.name = name
        return made


def _as_ir(array: Array, dtype: int) -> Any:
    import onnx_ir as ir

    return ir.Tensor(array, dtype=ir.DataType(dtype))


_FIELDS: dict[int, str] = {
    onnx.TensorProto.STRING: "string_data",
    onnx.TensorProto.INT64: "int64_data",
    **dict.fromkeys((onnx.TensorProto.FLOAT, onnx.TensorProto.COMPLEX64), "float_data"),
    **dict.fromkeys((onnx.TensorProto.DOUBLE, onnx.TensorProto.COMPLEX128), "double_data"),
    **dict.fromkeys((onnx.TensorProto.UINT32, onnx.TensorProto.UINT64), "uint64_data"),
}
_BITS: dict[int, int] = {
    onnx.TensorProto.STRING: 64,
    **dict.fromkeys((onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.UINT32), 32),
    **dict.fromkeys((onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64, onnx.TensorProto.UINT64, onnx.TensorProto.COMPLEX64), 64),
    **dict.fromkeys((onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT16, onnx.TensorProto.UINT16), 16),
    onnx.TensorProto.COMPLEX128: 128,
    **dict.fromkeys((onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT4E2M1), 4),
    **dict.fromkeys((onnx.TensorProto.INT2, onnx.TensorProto.UINT2), 2),
    **dict.fromkeys((onnx.TensorProto.FLOAT6E2M3, onnx.TensorProto.FLOAT6E3M2), 6),
}


def element_bits(dtype: int) -> int:
    """Bits that one element of the onnx type `dtype` takes in a file; the byte-sized types are the rest."""
    return _BITS.get(dtype, 8)
