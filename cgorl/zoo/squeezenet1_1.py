"""SqueezeNet 1.1, as torchvision exports it and as TASO reads that export."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole

_SQUEEZED = ((16,), (32,), (48, 64))
"""Squeezed channels of the fire modules' groups, which expand to four times as many twice; a pool stands before each row."""


def squeezenet1_1(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (2, 2, 2, 2),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns SqueezeNet 1.1 (Iandola et al., 2016), input (batch, 3, image, image); it has no batchnorm.

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph: convs with bias, 65 operators (1.24 M parameters). "taso" is what TASO
            makes of it on loading: each bias reshaped and added by operators of its own, no relu fused, nothing flattened at
            the end; 116 operators.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies every channel count.
        depth: how many fire modules of 16, 32, 48 and 64 squeezed channels.
        classes: outputs.
    """
    builder = GraphBuilder("squeezenet1_1", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    side, width, classes = whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    x = _unit(builder, x, scaled(64, width), 3, "conv", taso, stride=2)
    counts = iter(stages("depth", depth, 4))
    for stage, groups in enumerate(_SQUEEZED):
        x = builder.max_pool(x, 3, f"maxpool{stage}", stride=2, same=False)
        for i, squeezed in enumerate([channels for channels in groups for _ in range(next(counts))]):
            with builder.scope(f"stage{stage}/fire{i}"):
                y = _unit(builder, x, scaled(squeezed, width), 1, "squeeze", taso)
                x = builder.concat([_unit(builder, y, scaled(4 * squeezed, width), k, f"expand{k}x{k}", taso) for k in (1, 3)])
    x = _unit(builder, x, classes, 1, "classifier", taso)
    pooled = builder.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1), "avgpool")
    return builder.model(pooled if taso else builder.node("Flatten", [pooled], x.shape[:2], "flatten", axis=1))


def _unit(builder: GraphBuilder, x: Value, channels: int, kernel: int, label: str, apart: bool, stride: int = 1) -> Value:
    """Returns relu of a conv with bias, the bias in the conv or added `apart`; only the first conv, of stride 2, is not padded."""
    y = builder.conv(x, channels, kernel, label, stride=stride, same=stride == 1, normed=False, bias=not apart)
    if apart:
        shape = builder.constant(f"constant/channels{channels}", np.array([1, channels, 1, 1], np.int64))
        bias = builder.node("Reshape", [builder.bias(channels, label), shape], (1, channels, 1, 1), f"{label}_bias")
        y = builder.add(y, bias, f"{label}_add")
    return builder.relu(y, f"{label}_relu")
