"""Every graph of the zoo in every form, small: label -> (name, parameters)."""

from typing import Any

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {"layers": 4, "hidden": 64, "heads": 4, "seq": 12}),
    "bert-taso": ("bert", {"layers": 3, "hidden": 64, "heads": 4, "seq": 12, "form": "taso"}),
    "inception_e_n": ("inception_e_n", {"width": 0.125}),
    "inception_v3": ("inception_v3", {"width": 0.25, "image": 107}),
    "inception_v3-taso": ("inception_v3", {"width": 0.25, "image": 107, "form": "taso"}),
    "mobilenet_v2": ("mobilenet_v2", {"width": 0.5, "image": 64, "classes": 50}),
    "mobilenet_v2-taso": ("mobilenet_v2", {"width": 0.5, "image": 64, "classes": 50, "form": "taso"}),
    "nasnet_a": ("nasnet_a", {"width": 0.125, "image": 64, "depth": (2, 2, 2)}),
    "nasnet_a-real": ("nasnet_a", {"width": 0.125, "image": 64, "depth": (1, 1, 1), "form": "real"}),
    "nasnet_a-export": ("nasnet_a", {"width": 0.125, "image": 64, "depth": (1, 1, 1), "classes": 50, "form": "export"}),
    "nasrnn": ("nasrnn", {"hidden": 64}),
    "repvgg_a0": ("repvgg_a0", {"width": 0.25, "image": 64}),
    "resnet18": ("resnet18", {"width": 0.25, "image": 64}),
    "resnet18-taso": ("resnet18", {"width": 0.25, "image": 64, "form": "taso"}),
    "resnet50": ("resnet50", {"width": 0.25, "image": 64}),
    "resnet50-taso": ("resnet50", {"width": 0.25, "image": 64, "form": "taso"}),
    "resnet_n": ("resnet_n", {"width": 0.125, "image": 7}),
    "resnext50": ("resnext50", {"width": 0.25, "image": 64}),
    "resnext50-taso": ("resnext50", {"width": 0.25, "image": 64, "form": "taso"}),
    "squeezenet1_1": ("squeezenet1_1", {"width": 0.5, "image": 64, "classes": 50}),
    "squeezenet1_1-taso": ("squeezenet1_1", {"width": 0.5, "image": 64, "classes": 50, "form": "taso"}),
    "transformer_transducer": (
        "transformer_transducer",
        {"hidden": 64, "heads": 4, "seq": 9, "labels": 4, "audio_layers": 3, "intermediate": 128},
    ),
    "transformer_transducer-taso": (
        "transformer_transducer",
        {"hidden": 64, "heads": 4, "seq": 9, "audio_layers": 3, "intermediate": 128, "form": "taso"},
    ),
    "vgg19": ("vgg19", {"width": 0.125, "image": 32, "classes": 50}),
    "vgg19-taso": ("vgg19", {"width": 0.125, "image": 32, "classes": 50, "form": "taso"}),
    "vit": ("vit", {"layers": 3, "hidden": 64, "heads": 4, "image": 64, "classes": 50}),
    "vit-taso": ("vit", {"layers": 4, "hidden": 64, "heads": 4, "image": 64, "form": "taso"}),
    "yolo_csp": ("yolo_csp", {"width": 0.25, "image": 64, "classes": 3}),
    "yolo_csp-leaky": ("yolo_csp", {"width": 0.25, "image": 64, "classes": 3, "activation": "leaky"}),
}


def unbatched(label: str) -> bool:
    """Whether the graph has no batch."""
    name, params = VARIANTS[label]
    return params.get("form") == "taso" and name in ("bert", "transformer_transducer", "vit")
