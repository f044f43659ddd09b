"""resnet-n: n residual blocks, one of two small families on which a search can be exhaustive."""

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder
from cgorl.zoo.parameters import dimension, multiplier, scaled, whole


def resnet_n(
    rng: np.random.Generator,
    *,
    n: int = 2,
    batch: int | str = 1,
    image: int = 14,
    width: float = 1.0,
) -> onnx.ModelProto:
    """Returns n residual blocks as in examples/resnet.py of OCGGS (Fang et al., 2020), input (batch, 256, image, image).

    A block is relu(conv3x3(relu(conv3x3(x))) + relu(conv1x1(x))): 5 operators, the relu of a conv counted with it. OCGGS
    takes n from 2 to 10.

    Args:
        rng: source of the weights.
        n: how many blocks.
        batch: a number or a symbol.
        image: side of the input.
        width: multiplies every channel count.
    """
    builder = GraphBuilder("resnet_n", rng)
    channels, side = scaled(256, multiplier("width", width)), whole("image", image)
    x = builder.input("input", (dimension("batch", batch), channels, side, side))
    for i in range(whole("n", n)):
        with builder.scope(f"block{i}"):
            y = builder.relu(builder.conv(x, channels, 3, "conv1", normed=False), "relu1")
            y = builder.conv(y, channels, 3, "conv2", normed=False, gain=0.3)
            short = builder.relu(builder.conv(x, channels, 1, "shortcut", normed=False, gain=0.7), "shortcut_relu")
            x = builder.relu(builder.add(short, y))
    return builder.model(x)
