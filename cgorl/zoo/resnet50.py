"""ResNet-50, as torchvision exports it and as TASO evaluates it."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole


def resnet50(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (3, 4, 6, 3),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns ResNet-50 (He et al., 2015; stride on the 3x3 conv), input (batch, 3, image, image).

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph before folding: conv, batchnorm and relu apart, classifier
            (25.56 M parameters). "taso" is TASO's examples/resnet50.py: no stem, so the input is (batch, 64, image / 4,
            image / 4), no batchnorm, no classifier, and a relu on the short-cut conv; 84 operators, the relu of a conv
            counted with it.
        batch: a number or a symbol.
        image: side of the image, at least 32.
        width: multiplies every channel count.
        depth: how many blocks in each of the four stages.
        classes: outputs of the classifier, which "taso" lacks.
    """
    builder = GraphBuilder("resnet50", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    batch, side, width = dimension("batch", batch), whole("image", image, 32), multiplier("width", width)
    blocks, classes = stages("depth", depth, 4), whole("classes", classes)
    if taso:
        x = builder.input("input", (batch, scaled(64, width), -(-side // 4), -(-side // 4)))
    else:
        x = builder.input("input", (batch, 3, side, side))
        with builder.scope("stem"):
            x = builder.relu(builder.batchnorm(builder.conv(x, scaled(64, width), 7, stride=2)))
            x = builder.max_pool(x, 3, stride=2)
    for stage, count in enumerate(blocks):
        for i in range(count):
            with builder.scope(f"layer{stage + 1}/{i}"):
                x = _bottleneck(builder, x, scaled(64 * 2**stage, width), 2 if stage > 0 and i == 0 else 1, taso)
    return builder.model(x if taso else builder.classifier(x, classes))


def _bottleneck(builder: GraphBuilder, x: Value, channels: int, stride: int, taso: bool) -> Value:
    """Returns the block: 1x1, 3x3 and 1x1 convs to 4 * channels, plus x (through a 1x1 conv where shapes differ), relu."""
    # The branch adds little to the mean square of the sum, which would else double in each block.
    branch_gain = 0.1

    def unit(value: Value, out: int, kernel: int, suffix: str, stride: int = 1, gain: float = 1.0, relu: bool = True) -> Value:
        value = builder.conv(value, out, kernel, f"conv{suffix}", stride=stride, normed=not taso, gain=gain if taso else 1.0)
        value = value if taso else builder.batchnorm(value, f"bn{suffix}", gain=gain)
        return builder.relu(value, f"relu{suffix}") if relu else value

    y = unit(x, channels, 1, "1")
    y = unit(y, channels, 3, "2", stride)
    y = unit(y, 4 * channels, 1, "3", gain=branch_gain, relu=False)
    if stride > 1 or x.shape[1] != 4 * channels:
        with builder.scope("downsample"):
            x = unit(x, 4 * channels, 1, "", stride, relu=taso)
    return builder.relu(builder.add(y, x), "relu")
