"""ResNet-18, as torchvision exports it and in TASO's form of a residual network."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole


def resnet18(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (2, 2, 2, 2),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns ResNet-18 (He et al., 2015), input (batch, 3, image, image).

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph before folding: conv, batchnorm and relu apart, classifier
            (11.69 M parameters). "taso" is what TASO makes of residual networks (it has no ResNet-18 of its own): no
            batchnorm, no classifier, and a relu on the short-cut conv; 37 operators, the relu of a conv counted with it.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies every channel count.
        depth: how many blocks in each of the four stages; (3, 4, 6, 3) is ResNet-34.
        classes: outputs of the classifier, which "taso" lacks.
    """
    builder = GraphBuilder("resnet18", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    side, width = whole("image", image, 32), multiplier("width", width)
    blocks, classes = stages("depth", depth, 4), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    with builder.scope("stem"):
        x = builder.conv(x, scaled(64, width), 7, stride=2, normed=not taso)
        x = builder.max_pool(builder.relu(x if taso else builder.batchnorm(x)), 3, stride=2)
    for stage, count in enumerate(blocks):
        for i in range(count):
            with builder.scope(f"layer{stage + 1}/{i}"):
                x = _block(builder, x, scaled(64 * 2**stage, width), 2 if stage > 0 and i == 0 else 1, taso)
    return builder.model(x if taso else builder.classifier(x, classes))


def _block(builder: GraphBuilder, x: Value, channels: int, stride: int, taso: bool) -> Value:
    """Returns two 3x3 convs, plus x (through a 1x1 conv where shapes differ), relu."""
    # The branch adds little to the mean square of the sum, which would else double in each block.
    branch_gain = 0.1

    def unit(value: Value, kernel: int, suffix: str, stride: int = 1, gain: float = 1.0, relu: bool = True) -> Value:
        value = builder.conv(value, channels, kernel, f"conv{suffix}", stride=stride, normed=not taso, gain=gain if taso else 1.0)
        value = value if taso else builder.batchnorm(value, f"bn{suffix}", gain=gain)
        return builder.relu(value, f"relu{suffix}") if relu else value

    y = unit(x, 3, "1", stride)
    y = unit(y, 3, "2", gain=branch_gain, relu=False)
    if stride > 1 or x.shape[1] != channels:
        with builder.scope("downsample"):
            x = unit(x, 1, "", stride, relu=taso)
    return builder.relu(builder.add(y, x), "relu")
