"""ONNX files in and out: `load` and `save`, whole or with external data, nothing lost and no partial file left."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import onnx
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.tensor import Tensor
from cgorl.ir.to_proto import all_tensors, to_proto

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message may have."""

_SPARE = 64 << 20
_EXTERNAL_FROM = 1024
_ALIGN = 4096


class ModelError(ValueError):
    """A file that cannot be read or written as an ONNX model; the message says what to do."""


def load(path: str | Path) -> Graph:
    """The graph in an ONNX file; external data stays on disk until somebody reads a tensor.

    Raises ModelError with one sentence when there is no such file, it is no ONNX model, or its external data is missing,
    and GraphError when the model is inconsistent.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError
        if path.exists() and not path.is_file():
            raise FileExistsError
        size = path.stat().st_size
        model = onnx.load_model(path, format="protobuf", load_external_data=False)
    except FileNotFoundError:
        raise ModelError(f"there is no file '{path}'") from None
    except IsADirectoryError:
        raise ModelError(f"'{path}' is a folder, not an ONNX file") from None
    except FileExistsError:
        raise ModelError(f"'{path}' is a device or pipe, not an ONNX file") from None
    except OSError as e:
        raise ModelError(f"cannot read '{path}': {e.strerror or e}") from None
    except Exception:  # protobuf's DecodeError has no stable home
        raise ModelError(f"'{path}' is not an ONNX file, or is cut short ({size:,} bytes)") from None
    if not (model.ir_version and model.opset_import and (model.graph.node or model.graph.output)):
        raise ModelError(f"'{path}' holds no ONNX model ({size:,} bytes without a graph or its operator set)")
    if not all(isinstance(s, str) for s in _texts(model)):
        raise ModelError(f"'{path}' is damaged: a name in it is no text")
    _check_tensors(model, path)
    return from_proto(model, path.parent)


def save(graph: Graph, path: str | Path) -> list[Path]:
    """The files written: the model and, where it needs one, `<name>.data` beside it with the external weights.

    Weights of 1 KB and more that were external stay so (onnxruntime must see smaller ones, which may be shapes), and all go
    there when the model would pass protobuf's 2 GB. The files appear whole or not at all, the data before the model. Data
    that `graph` itself reads is never overwritten: where that lies in `<name>.data`, the new goes to `<name>.1.data`.
    Raises ModelError.
    """
    path = Path(path)
    check_writable(path)
    model, weights = to_proto(graph)
    held = [(p, Tensor(_copy(p), base=graph.frame.base)) for p in all_tensors(model) if p.data_location == onnx.TensorProto.EXTERNAL]
    tensors = [*(t for _, t in held), *weights.values()]
    try:
        full = model.ByteSize() + sum(t.nbytes for t in tensors if not t.external) > PROTOBUF_LIMIT - _SPARE
        beside = {id(t) for t in tensors if (full or t.external) and t.nbytes >= _EXTERNAL_FROM and t.dtype != onnx.TensorProto.STRING}
        data = _data_file(path, tensors) if beside else None
        with _replacing([path] if data is None else [data, path]) as files:
            for proto, tensor in held:
                _put(proto, tensor, proto.name, files[0], data if id(tensor) in beside else None)
            for name, tensor in weights.items():
                _put(model.graph.initializer.add(), tensor, name, files[0], data if id(tensor) in beside else None)
            files[-1].write(model.SerializeToString())
    except OSError as e:
        why = "there is no space left" if e.errno == errno.ENOSPC else (e.strerror or str(e))
        raise ModelError(f"cannot write '{path}': {why}; nothing was written") from None
    except EncodeError:
        raise ModelError(f"cannot write '{path}': its nodes alone pass protobuf's limit of 2 GB; nothing was written") from None
    return [path] if data is None else [path, data]


def check_writable(path: Path, what: str = "output") -> None:
    """Raises ModelError if `path` cannot become a file: no such folder, a folder itself, or no right to write."""
    try:
        folder = path.is_dir()
    except OSError as e:
        raise ModelError(f"cannot write '{path}': {e.strerror}") from None
    if folder:
        raise ModelError(f"{what} '{path}' is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise ModelError(f"{what} '{path}' is a device or pipe, which a file would take the place of")
    if not path.parent.is_dir():
        raise ModelError(f"there is no folder '{path.parent}' to write '{path.name}' into; make it first")
    if not os.access(path.parent, os.W_OK):
        raise ModelError(f"no right to write into '{path.parent}'")


def _copy(proto: onnx.TensorProto) -> onnx.TensorProto:
    made = onnx.TensorProto()
    made.CopyFrom(proto)
    return made


def _data_file(path: Path, tensors: Iterable[Tensor]) -> Path:
    """`<name>.data` beside `path`, or the first `<name>.<k>.data` that none of `tensors` reads."""
    read = {t.location()[0].resolve() for t in tensors if t.external}
    names = (path.with_name(f"{path.name}{'.' * bool(k)}{k or ''}.data") for k in itertools.count())
    return next(p for p in names if p.resolve() not in read)


def _put(made: onnx.TensorProto, tensor: Tensor, name: str, side: IO[bytes], data: Path | None) -> None:
    """Makes `made` hold `tensor`, or refer to its bytes at the end of `side`, the file that will be `data`."""
    if data is None:
        with _reading():
            tensor.to_proto(name, made)
        return
    side.write(b"\0" * (-side.tell() % _ALIGN))
    offset = side.tell()
    length = sum(side.write(chunk) for chunk in _chunks(tensor))
    made.Clear()
    made.name, made.data_type, made.data_location = name, tensor.dtype, onnx.TensorProto.EXTERNAL
    made.dims.extend(tensor.shape)
    if tensor.proto is not None:
        made.metadata_props.extend(tensor.proto.metadata_props)
        if tensor.proto.HasField("doc_string"):
            made.doc_string = tensor.proto.doc_string
    for key, value in (("location", data.name), ("offset", str(offset)), ("length", str(length))):
        made.external_data.add(key=key, value=value)


def _chunks(tensor: Tensor) -> Iterator[bytes]:
    with _reading():
        yield from tensor.read()


@contextmanager
def _reading() -> Iterator[None]:
    """Says of an OSError that it is the external data, not the output, that is amiss."""
    try:
        yield
    except OSError as e:
        raise ModelError(f"cannot read '{e.filename}' any more: {e.strerror}; nothing was written") from None


@contextmanager
def _replacing(paths: list[Path]) -> Iterator[list[IO[bytes]]]:
    """Temporary files beside `paths` that take their places, in turn, when the block ends well and vanish when it does not."""
    parts: list[str] = []
    try:
        with ExitStack() as stack:
            files: list[IO[bytes]] = []
            for path in paths:
                handle, name = tempfile.mkstemp(prefix=f".{path.name[:80]}.", suffix=".part", dir=path.parent)
                parts.append(name)
                files.append(stack.enter_context(os.fdopen(handle, "wb")))
            yield files
            for f in files:
                f.flush()
                os.fsync(f.fileno())
        mask = os.umask(0)
        os.umask(mask)
        for name, path in zip(parts, paths, strict=True):
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, path)
    except BaseException:
        for name in parts:
            Path(name).unlink(missing_ok=True)
        raise


def _texts(model: onnx.ModelProto) -> Iterator[object]:
    """Every name in the graph; protobuf hands out bytes where one is not UTF-8."""
    g = model.graph
    yield from (o.domain for o in model.opset_import)
    yield from (item.name for part in (g.input, g.output, g.initializer, g.value_info) for item in part)
    for node in g.node:
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output, *(a.name for a in node.attribute))


def _check_tensors(model: onnx.ModelProto, path: Path) -> None:
    roots = {path.parent.resolve(), path.resolve().parent}  # two where a cache keeps links to files elsewhere
    for proto in all_tensors(model):
        tensor = Tensor(proto, base=path.parent)
        if proto.data_location != onnx.TensorProto.EXTERNAL:
            if not tensor.sound():
                raise ModelError(f"'{path}' is damaged: tensor '{proto.name}' holds other than its shape says")
            continue
        try:
            where, offset, length = tensor.location()
        except ValueError:
            offset = length = -1
        if offset < 0 or length < tensor.nbytes:
            raise ModelError(f"tensor '{proto.name}' of '{path}' does not say rightly where in its external data it lies")
        name = next((e.value for e in proto.external_data if e.key == "location"), "")
        if not name or Path(name).is_absolute() or not any(where.resolve().is_relative_to(r) for r in roots):
            raise ModelError(
                f"tensor '{proto.name}' of '{path}' keeps its data outside the model's folder ('{name}'), which is not followed"
            )
        if not where.is_file():
            raise ModelError(f"external data file '{where}' of tensor '{proto.name}' is missing; put it beside '{path.name}'")
        if where.stat().st_size < offset + length:
            raise ModelError(f"external data file '{where}' ends before tensor '{proto.name}' does (needs {offset + length:,} bytes)")
