"""Files of weights are found in the folders where a model looks for them, and a model has nothing put anywhere else."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import cgorl
from cgorl.web.placed import place
from tests.web.models import small


def apart(folder: Path, *locations: str) -> Path:
    """A model whose weights lie in those files, in turn; the files lie beside it by their last names."""
    folder.mkdir()
    made = onnx.load_from_string(small())
    for k, tensor in enumerate(made.graph.initializer):
        location = locations[k % len(locations)]
        with (folder / (location.rpartition("/")[2] or "w")).open("ab") as f:
            begins = f.tell()
            f.write(tensor.raw_data)
        onnx.external_data_helper.set_external_data(tensor, location, offset=begins, length=len(tensor.raw_data))
        tensor.ClearField("raw_data")
    path = folder / "net.onnx"
    onnx.save(made, path)
    return path


def test_a_model_finds_its_weights_by_their_names(tmp_path: Path) -> None:
    path = apart(tmp_path / "job", "weights/w.bin", "weights/deep/v.bin", "plain.bin", "./weights/dot.bin")
    with pytest.raises(ValueError, match="is missing"):
        cgorl.load(path)
    place(path)
    (tmp_path / "whole.onnx").write_bytes(small())
    assert cgorl.verify(tmp_path / "whole.onnx", path)
    before = sorted(tmp_path.rglob("*"))
    place(path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "location",
    [
        "../w",
        "../../job/w",
        "/etc/w",
        "a/../../w",
        "a/..",
        "run/w",
        "drawn/w",
        ".ssh/w",
        "a/" * 20 + "w",
        "w/" + "n" * 250,
        "a\\w",
        "",
        "a/\x00w",
    ],
)
def test_nothing_is_put_elsewhere(tmp_path: Path, location: str) -> None:
    path = apart(tmp_path / "job", "w")
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = location
    path.write_bytes(model.SerializeToString())
    place(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["job", "net.onnx", "w"]


@pytest.mark.parametrize("location", ["w/w", "net.onnx/w"])
def test_a_folder_that_is_a_file(tmp_path: Path, location: str) -> None:
    path = apart(tmp_path / "job", location)
    place(path)
    with pytest.raises(ValueError, match="missing"):
        cgorl.load(path)


def test_what_is_no_model_is_left_to_the_loader(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"1")
    (tmp_path / "net.onnx").write_bytes(b"no model")
    place(tmp_path / "net.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "w"]
