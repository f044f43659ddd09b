"""ResNeXt-50, as torchvision exports it and as TASO evaluates it."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole


def resnext50(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (3, 4, 6, 3),
    groups: int = 32,
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns ResNeXt-50 32x4d (Xie et al., 2017), input (batch, 3, image, image).

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph before folding: conv, batchnorm and relu apart, classifier
            (25.03 M parameters). "taso" is TASO's examples/resnext50.py: no batchnorm, no classifier, and a relu on the
            short-cut conv; 86 operators, the relu of a conv counted with it.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies the channels of the stem and of each group.
        depth: how many blocks in each of the four stages.
        groups: in how many groups the 3x3 convs work.
        classes: outputs of the classifier, which "taso" lacks.
    """
    builder = GraphBuilder("resnext50", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    side, width = whole("image", image, 32), multiplier("width", width)
    blocks, groups, classes = stages("depth", depth, 4), whole("groups", groups), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    with builder.scope("stem"):
        x = builder.conv(x, scaled(64, width), 7, stride=2, normed=not taso)
        x = builder.max_pool(builder.relu(x if taso else builder.batchnorm(x)), 3, stride=2)
    for stage, count in enumerate(blocks):
        for i in range(count):
            with builder.scope(f"layer{stage + 1}/{i}"):
                channels = groups * scaled(4 * 2**stage, width)
                x = _block(builder, x, channels, groups, 2 if stage > 0 and i == 0 else 1, taso)
    return builder.model(x if taso else builder.classifier(x, classes))


def _block(builder: GraphBuilder, x: Value, channels: int, groups: int, stride: int, taso: bool) -> Value:
    """Returns 1x1, grouped 3x3 and 1x1 convs to 2 * channels, plus x (through a 1x1 conv where shapes differ), relu."""
    # The branch adds little to the mean square of the sum, which would else double in each block.
    branch_gain = 0.1

    def unit(
        value: Value, out: int, kernel: int, suffix: str, stride: int = 1, group: int = 1, gain: float = 1.0, relu: bool = True
    ) -> Value:
        own = gain if taso else 1.0
        value = builder.conv(value, out, kernel, f"conv{suffix}", stride=stride, group=group, normed=not taso, gain=own)
        value = value if taso else builder.batchnorm(value, f"bn{suffix}", gain=gain)
        return builder.relu(value, f"relu{suffix}") if relu else value

    y = unit(x, channels, 1, "1")
    y = unit(y, channels, 3, "2", stride, groups)
    y = unit(y, 2 * channels, 1, "3", gain=branch_gain, relu=False)
    if stride > 1 or x.shape[1] != 2 * channels:
        with builder.scope("downsample"):
            x = unit(x, 2 * channels, 1, "", stride, relu=taso)
    return builder.relu(builder.add(y, x), "relu")
