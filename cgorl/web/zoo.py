"""The models of the zoo as a page offers them."""

from __future__ import annotations

import re
from functools import cache

from cgorl import zoo
from cgorl.web import choices

_TITLES = {
    "bert": "BERT",
    "inception_e_n": "Inception E blocks",
    "inception_v3": "InceptionV3",
    "mobilenet_v2": "MobileNetV2",
    "nasnet_a": "NASNet-A",
    "nasrnn": "NasRNN",
    "repvgg_a0": "RepVGG-A0",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "resnet_n": "Residual blocks",
    "resnext50": "ResNeXt-50",
    "squeezenet1_1": "SqueezeNet 1.1",
    "transformer_transducer": "Transformer transducer",
    "vgg19": "VGG-19",
    "vit": "Vision transformer",
    "yolo_csp": "YOLO detector",
}


@cache
def shelf() -> list[dict[str, str]]:
    """`name`, `title` and a line `about` each."""
    return [{"name": n, "title": _TITLES.get(n, n), "about": _about(n)} for n in choices.models()]


def _about(name: str) -> str:
    """Who it is by and when, of the first line of its documentation."""
    found = re.search(r"\(([A-Z][^()]*?\d{4})[^()]*\)", zoo.describe(name).partition("): ")[2])
    return found[1] if found else ""
