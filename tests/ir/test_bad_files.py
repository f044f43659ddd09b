"""A bad file, folder or disk is one sentence of the right kind, and leaves nothing half done."""

import errno
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import numpy_helper as nh

from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import GraphError
from cgorl.ir.onnx_io import ModelError, load, save
from tests.ir.files import one_node, with_external
from tests.strategies import models


def refused(path: Path | str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as e:
        load(path)
    assert "\n" not in str(e.value)


def test_what_is_no_onnx_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    refused(tmp_path / "none.onnx", "there is no file")
    refused(tmp_path / "none/none.onnx", "there is no file")
    refused(tmp_path, "is a folder")
    bad = tmp_path / "bad.onnx"
    good = one_node(initializer=[nh.from_array(np.ones(99), "w")]).SerializeToString()
    for content in (
        b"",
        b"hello, this is text\n" * 9,
        np.random.default_rng(0).bytes(999),
        b"{}",
        b"\n",
        good[: len(good) // 2],
        good[:-1],
    ):
        bad.write_bytes(content)
        refused(bad, "no ONNX model|not an ONNX file")
    refused(bad / "x", "cannot read|there is no file")
    for change in ({"dims": [98]}, {"data_type": T.FLOAT}, {"data_type": T.STRING}, {"data_type": 77}, {"data_type": 0}):
        model = onnx.ModelProto.FromString(good)
        for field, value in change.items():
            if field == "dims":
                model.graph.initializer[0].dims[:] = value
            else:
                setattr(model.graph.initializer[0], field, value)
        bad.write_bytes(model.SerializeToString())
        refused(bad, "damaged: tensor 'w'")
    model = onnx.ModelProto.FromString(good)
    model.ClearField("opset_import")
    bad.write_bytes(model.SerializeToString())
    refused(bad, "no ONNX model")
    bad.write_bytes(good.replace(b"Neg", b"\xff\xfeg"))
    refused(bad, "damaged: a name")
    (tmp_path / "invisible.onnx").symlink_to(tmp_path / "none")
    refused(tmp_path / "invisible.onnx", "there is no file")


@given(models(max_nodes=5), st.randoms(use_true_random=False))
@settings(max_examples=40, phases=[Phase.explicit, Phase.generate])
def test_a_damaged_file_is_loaded_or_refused_but_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto, rng: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.onnx"
    for _ in range(5):
        content = bytearray(model.SerializeToString())
        if rng.random() < 0.3:
            del content[rng.randrange(len(content)) :]
        for _ in range(rng.randrange(3)):
            if content:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            graph = load(path)
            assert graph.key
            save(graph, path)
        except (ModelError, GraphError):
            pass


# ------------------------------------------------------------ bad places out
def test_an_output_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path) -> None:
    graph = from_proto(one_node())
    for path, says in ((tmp_path / "none/m.onnx", "no folder"), (tmp_path, "is a folder"), (tmp_path / "m.onnx" / "x", "no folder")):
        (tmp_path / "m.onnx").write_bytes(b"")
        with pytest.raises(ModelError, match=says) as e:
            save(graph, path)
        assert "\n" not in str(e.value)
    long = tmp_path / ("n" * 300)
    with pytest.raises(ModelError, match="cannot write"):
        save(graph, long)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


class Full(io.FileIO):
    """A file on a disk with little room."""

    def __init__(self, handle: int, mode: str) -> None:
        super().__init__(handle, mode)
        self.room = 300

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("beside", [False, True])
def test_a_full_disk_leaves_the_old_files_and_no_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool) -> None:
    model = with_external(tmp_path / "m.onnx") if beside else one_node(initializer=[nh.from_array(np.ones(999), "w")])
    if not beside:
        onnx.save(model, tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    for place in ("m.onnx", "n.onnx"):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdopen", Full)
            with pytest.raises(ModelError, match="there is no space left; nothing was written"):
                save(graph, tmp_path / place)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
            with pytest.raises(ModelError, match="there is no space left; nothing was written"):
                save(graph, tmp_path / place)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_external(tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        save(graph, tmp_path / "m.onnx")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
