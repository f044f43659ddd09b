"""The zoo's names, parameters and error sentences; same seed, same bytes."""

import hashlib
import os
import subprocess
import sys
from typing import Any

import pytest
from onnx import numpy_helper

from cgorl import zoo

SMALL: dict[str, dict[str, Any]] = {
    "bert": {"layers": 1, "hidden": 32, "heads": 4, "seq": 8},
    "inception_e_n": {"width": 0.125, "n": 1},
    "inception_v3": {"width": 0.125, "image": 75},
    "mobilenet_v2": {"width": 0.25, "image": 32},
    "nasnet_a": {"width": 0.0625, "image": 32, "depth": (1, 1, 1)},
    "nasrnn": {"hidden": 16, "length": 2},
    "repvgg_a0": {"width": 0.125, "image": 32},
    "resnet18": {"width": 0.125, "image": 32},
    "resnet50": {"width": 0.125, "image": 32},
    "resnet_n": {"width": 0.125, "n": 1},
    "resnext50": {"width": 0.25, "image": 32},
    "squeezenet1_1": {"width": 0.25, "image": 32},
    "transformer_transducer": {"audio_layers": 1, "hidden": 32, "heads": 4, "seq": 8, "labels": 4, "intermediate": 32},
    "vgg19": {"width": 0.0625, "image": 32},
    "vit": {"layers": 1, "hidden": 32, "heads": 4, "image": 32},
    "yolo_csp": {"width": 0.0625, "image": 32},
}


def _digest(name: str, **params: Any) -> str:
    return hashlib.sha256(zoo.build(name, **SMALL[name], **params).SerializeToString(deterministic=True)).hexdigest()


@pytest.mark.parametrize(
    ("name", "params", "parts"),
    [
        ("inception", {}, ["'inception'", "did you mean 'inception_v3'", *zoo.names()]),
        ("ResNet50", {}, ["'ResNet50'", "did you mean 'resnet50'", *zoo.names()]),
        ("@", {}, ["'@'", *zoo.names()]),
        ("resnet50", {"img": 64}, ["resnet50", "'img'", "did you mean 'image'", "width", "seed"]),
        ("nasrnn", {"form": "export"}, ["nasrnn", "'form'", "hidden"]),
        ("resnet50", {"form": "tasso"}, ["resnet50", "form", "'taso'", "'tasso'"]),
        ("inception_v3", {"image": 74}, ["inception_v3", "image", "75", "74"]),
        ("resnet50", {"image": 16}, ["image", "32", "16"]),
        ("repvgg_a0", {"image": "large"}, ["image", "'large'"]),
        ("bert", {"heads": 7}, ["bert", "heads", "7", "512"]),
        ("bert", {"seq": "a b"}, ["seq", "'a b'"]),
        ("bert", {"batch": 0}, ["batch", "at least 1", "0"]),
        ("resnet50", {"batch": True}, ["batch", "True"]),
        ("resnet50", {"depth": (1, 2)}, ["depth", "4", "(1, 2)"]),
        ("inception_v3", {"depth": (1, 0, 1)}, ["depth[1]", "0"]),
        ("repvgg_a0", {"depth": "2222"}, ["depth", "'2222'"]),
        ("repvgg_a0", {"width": 0}, ["width", "0"]),
        ("repvgg_a0", {"width": float("nan")}, ["width", "nan"]),
        ("bert", {"seed": -1}, ["seed", "-1"]),
        ("bert", {"form": "taso", "batch": 2}, ["batch", "1", "2"]),
        ("bert", {"form": "taso", "seq": "seq"}, ["seq", "'seq'"]),
        ("vit", {"form": "taso", "batch": "n"}, ["batch", "1", "'n'"]),
        ("vit", {"image": 100}, ["image", "100", "16"]),
        ("vit", {"heads": 5}, ["heads", "5", "192"]),
        ("transformer_transducer", {"form": "taso", "batch": 3}, ["batch", "1", "3"]),
        ("yolo_csp", {"image": 100}, ["image", "32", "100"]),
        ("yolo_csp", {"activation": "mish"}, ["activation", "'silu'", "'mish'"]),
        ("resnet_n", {"n": 0}, ["n must", "0"]),
    ],
)
def test_a_wrong_call_gets_one_sentence(name: str, params: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(zoo.ZooError) as caught:
        zoo.build(name, **params)
    sentence = str(caught.value)
    assert all(part in sentence for part in parts), sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


@pytest.mark.parametrize("name", zoo.names())
def test_describe_names_every_parameter(name: str) -> None:
    text = zoo.describe(name)
    assert text.startswith(f"{name}(")
    assert all(f"{key}=" in text for key in zoo.defaults(name))
    with pytest.raises(zoo.ZooError):
        zoo.describe(name + "x")


def test_listing_imports_neither_onnx_nor_an_architecture() -> None:
    program = "import sys, cgorl.zoo as z; z.names(); print([m for m in ('onnx', 'numpy', 'cgorl.zoo.bert') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", zoo.names())
def test_a_seed_decides_the_bytes(name: str) -> None:
    assert _digest(name) == _digest(name, seed=0)
    assert _digest(name) != _digest(name, seed=1)


def test_bytes_are_the_same_in_another_process() -> None:
    program = (
        "import sys, hashlib; from cgorl import zoo\n"
        f"for name, params in {SMALL!r}.items():\n"
        "    print(hashlib.sha256(zoo.build(name, **params).SerializeToString(deterministic=True)).hexdigest())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "4242"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == [_digest(name) for name in SMALL]


_CONVOLUTIONAL = sorted(name for name in zoo.names() if {"image", "width"} <= set(zoo.defaults(name)))


@pytest.mark.parametrize("name", [name for name in _CONVOLUTIONAL if name != "vgg19"])  # whose linear layer reads the image
def test_batch_and_image_leave_the_weights_alone(name: str) -> None:
    small = zoo.build(name, **SMALL[name])
    large = zoo.build(name, **SMALL[name] | {"batch": "n", "image": 96})
    assert [w.SerializeToString() for w in small.graph.initializer] == [w.SerializeToString() for w in large.graph.initializer]


@pytest.mark.parametrize("name", _CONVOLUTIONAL)
def test_one_channel_everywhere_still_has_weights(name: str) -> None:
    model = zoo.build(name, **SMALL[name] | {"width": 0.001})
    weights = [tensor for tensor in model.graph.initializer if not tensor.name.startswith("constant/")]
    assert all(numpy_helper.to_array(weight).any() for weight in weights)
