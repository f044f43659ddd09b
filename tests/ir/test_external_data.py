"""External data: it moves with the model, stays readable whatever is saved where, and is followed only inside the model's folder."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as oh
from onnx import numpy_helper as nh

from cgorl.ir import onnx_io
from cgorl.ir.from_proto import from_proto
from cgorl.ir.onnx_io import ModelError, load, save
from cgorl.ir.run import Session
from cgorl.ir.to_proto import complete
from tests.ir.files import copy, one_node, tidy, with_external


def whole(path: Path) -> onnx.ModelProto:
    """The model at `path` with its external data read in by onnx."""
    model = onnx.load(path)
    for t in onnx.external_data_helper._get_all_tensors(model):
        array = nh.to_array(t)
        t.CopyFrom(nh.from_array(array, t.name))
    return tidy(model)


@pytest.mark.parametrize("options", [{}, {"all_tensors_to_one_file": False}])
def test_external_data_moves_with_the_model(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    model = with_external(tmp_path / "in/m.onnx", **options)
    graph = load(tmp_path / "in/m.onnx")
    assert complete(graph) is not None
    assert save(graph, tmp_path / "out/n.onnx") == [tmp_path / "out/n.onnx", tmp_path / "out/n.onnx.data"]
    shutil.rmtree(tmp_path / "in")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["n.onnx", "n.onnx.data"]
    assert whole(tmp_path / "out/n.onnx") == tidy(model)
    assert graph.type(graph.outputs[0]).shape == (2, 300)  # type: ignore[union-attr]
    given_ = {"x": np.ones(300, np.float32), "t": np.array(True)}
    assert Session(tmp_path / "out/n.onnx").run(given_)["y"].tobytes() == Session(model).run(given_)["y"].tobytes()
    again = load(tmp_path / "out/n.onnx")
    assert {n.names[0]: n.tensor.external for n in again.nodes.values() if n.holds_tensor} == {
        "w": True,
        "v": True,
        "c": True,
        "small": False,
        "shape": False,
    }


def test_a_model_completed_from_external_data_stands_alone(tmp_path: Path) -> None:
    model = with_external(tmp_path / "m.onnx")
    assert tidy(complete(load(tmp_path / "m.onnx"))) == tidy(model)


def test_offset_and_length_are_followed(tmp_path: Path) -> None:
    model = one_node(oh.make_node("Add", ["x", "w"], ["y"]), initializer=[nh.from_array(np.zeros(3, np.float32), "w")])
    held = model.graph.initializer[0]
    held.ClearField("raw_data")
    held.data_location = T.EXTERNAL
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/w.bin").write_bytes(b"junk!" + np.array([1, 2, 3], np.float32).tobytes() + b"more")
    for key, value in (("location", "sub/w.bin"), ("offset", "5"), ("length", "12"), ("checksum", "0")):
        held.external_data.add(key=key, value=value)
    onnx.save(model, tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    assert next(n for n in graph.nodes.values() if n.is_constant).tensor.array().tolist() == [1, 2, 3]
    save(graph, tmp_path / "n.onnx")
    assert nh.to_array(onnx.load(tmp_path / "n.onnx").graph.initializer[0]).tolist() == [1, 2, 3]


def test_saving_onto_the_file_that_was_loaded_corrupts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = tidy(with_external(path))
    graph = load(path)
    key = graph.key
    for _ in range(3):
        save(graph, path)
        assert whole(path) == model
        assert tidy(complete(graph)) == model, "the graph in memory reads what was written over"
    for _ in range(3):
        graph = load(path)
        save(graph, path)
        assert whole(path) == model
        assert tidy(complete(graph)) == model
        assert load(path).key == key
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.1.data", "m.onnx.data"]


def test_saving_a_copy_onto_the_original_keeps_the_copy(tmp_path: Path) -> None:
    model = tidy(with_external(tmp_path / "m.onnx"))
    shutil.copy(tmp_path / "m.onnx", tmp_path / "copy.onnx")  # reads m.onnx.data too
    save(load(tmp_path / "copy.onnx"), tmp_path / "m.onnx")
    assert whole(tmp_path / "copy.onnx") == whole(tmp_path / "m.onnx") == model


def test_weights_beyond_the_limit_of_protobuf_go_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = oh.make_tensor("s", T.STRING, [200], [f"text {k}" for k in range(200)])
    ints = oh.make_tensor("i", T.INT64, [200], range(200))  # int64_data, not raw_data
    model = one_node(initializer=[nh.from_array(rng.standard_normal((50, 50)), "w"), texts, ints, nh.from_array(np.ones(2), "small")])
    graph = from_proto(copy(model))
    monkeypatch.setattr(onnx_io, "PROTOBUF_LIMIT", onnx_io._SPARE + 15_000)
    assert len(save(graph, tmp_path / "m.onnx")) == 2
    held = {t.name: t.data_location for t in onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer}
    assert held == {"w": T.EXTERNAL, "s": T.DEFAULT, "i": T.EXTERNAL, "small": T.DEFAULT}
    for a, b in zip(onnx.load(tmp_path / "m.onnx").graph.initializer, model.graph.initializer, strict=True):
        np.testing.assert_array_equal(nh.to_array(a), nh.to_array(b))
    assert load(tmp_path / "m.onnx").key == graph.key


def refused(path: Path | str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as e:
        load(path)
    assert "\n" not in str(e.value)


def external(entries: dict[str, str], size: int = 3) -> onnx.ModelProto:
    held = T(name="w", data_type=T.FLOAT, dims=[size], data_location=T.EXTERNAL)
    for key, value in entries.items():
        held.external_data.add(key=key, value=value)
    return one_node(initializer=[held])


def test_external_data_that_cannot_be_is_refused_in_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "in").mkdir(parents=True)
    (home / "w.bin").write_bytes(bytes(12))
    (tmp_path / "secret").write_bytes(bytes(99))
    (home / "link").symlink_to(tmp_path / "secret")
    path = home / "m.onnx"
    for entries, says in (
        ({"location": "none.bin"}, "'.*none.bin' of tensor 'w' is missing"),
        ({"location": "in"}, "missing"),
        ({"location": "../secret"}, "outside the model's folder"),
        ({"location": "in/../../secret"}, "outside the model's folder"),
        ({"location": str(tmp_path / "secret")}, "outside the model's folder"),
        ({"location": str(home / "w.bin")}, "outside the model's folder"),
        ({"location": "link"}, "outside the model's folder"),
        ({}, "outside the model's folder"),
        ({"location": "w.bin", "offset": "4"}, "ends before tensor 'w' does"),
        ({"location": "w.bin", "offset": "-4"}, "tensor 'w'"),
        ({"location": "w.bin", "offset": "x"}, "tensor 'w'"),
        ({"location": "w.bin", "length": "8"}, "tensor 'w'"),
    ):
        onnx.save(external(entries), path)
        refused(path, says)
    onnx.save(external({"location": "in/../w.bin", "length": "12"}), path)
    assert load(path)
    onnx.save(external({"location": "w.bin"}, 4), path)
    refused(path, "ends before")


def test_links_as_a_download_cache_keeps_them_are_followed(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    model = with_external(tmp_path / "blobs/m")
    for name in ("m", "m.data"):
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "blobs" / name)
    assert tidy(complete(load(tmp_path / "snapshot/m"))) == tidy(model)


def test_external_data_that_goes_away_later_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with_external(tmp_path / "m.onnx")
    (tmp_path / "out").mkdir()
    graph = load(tmp_path / "m.onnx")
    os.truncate(tmp_path / "m.onnx.data", 30)
    with pytest.raises(ModelError, match=r"cannot read '.*m.onnx.data' any more: .*nothing was written"):
        save(graph, tmp_path / "out/n.onnx")
    (tmp_path / "m.onnx.data").unlink()
    with pytest.raises(ModelError, match=r"cannot read '.*m.onnx.data' any more: .*nothing was written"):
        save(graph, tmp_path / "out/n.onnx")
    assert list((tmp_path / "out").iterdir()) == []
