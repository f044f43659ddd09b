"""RepVGG-A0 in its training form."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import dimension, multiplier, scaled, stages, whole

_CHANNELS = (48, 48, 96, 192, 1280)


def repvgg_a0(
    rng: np.random.Generator,
    *,
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (2, 4, 14, 1),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns RepVGG-A0 (Ding et al., 2021) before its branches are merged, input (batch, 3, image, image).

    A block is the sum of a 3x3 conv + batchnorm, a 1x1 conv + batchnorm and, where the shape stays, a batchnorm alone;
    then relu. 9.11 M parameters; merged by hand into one 3x3 conv a block it would be 8.31 M.

    Args:
        rng: source of the weights.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies every channel count.
        depth: how many blocks in each of the four stages after the first block.
        classes: outputs of the classifier.
    """
    builder = GraphBuilder("repvgg_a0", rng)
    side, width, classes = whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    for stage, count in enumerate((1, *stages("depth", depth, 4))):
        for i in range(count):
            with builder.scope(f"stage{stage}/{i}"):
                x = _block(builder, x, scaled(_CHANNELS[stage], width), 2 if i == 0 else 1)
    return builder.model(builder.classifier(x, classes))


def _block(builder: GraphBuilder, x: Value, channels: int, stride: int) -> Value:
    """Returns relu of the summed branches, (N, channels, ceil(H / stride), ceil(W / stride))."""
    same = stride == 1 and x.shape[1] == channels
    gain = 1 / 3 if same else 1 / 2
    with builder.scope("dense"):
        branches = [builder.batchnorm(builder.conv(x, channels, 3, stride=stride), gain=gain)]
    with builder.scope("pointwise"):
        branches.append(builder.batchnorm(builder.conv(x, channels, 1, stride=stride), gain=gain))
    if same:
        with builder.scope("identity"):
            branches.append(builder.batchnorm(x, gain=gain))
    total = branches[0]
    for i, branch in enumerate(branches[1:], start=1):
        total = builder.add(total, branch, f"add{i}")
    return builder.relu(total)
