"""inceptionE-n: n inception blocks, one of two small families on which a search can be exhaustive."""

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import dimension, multiplier, scaled, whole


def inception_e_n(
    rng: np.random.Generator,
    *,
    n: int = 2,
    batch: int | str = 1,
    image: int = 8,
    width: float = 1.0,
) -> onnx.ModelProto:
    """Returns n of InceptionV3's E blocks as in examples/inceptionv3E.py of OCGGS (Fang et al., 2020), input (batch, 1280, image, image).

    A block is 9 convs with relu, a maximum pool (Inception's own is an average), the two forks joined, and all four branches
    joined: 13 operators, the relu of a conv counted with it.

    Args:
        rng: source of the weights.
        n: how many blocks.
        batch: a number or a symbol.
        image: side of the input.
        width: multiplies every channel count.
    """
    builder = GraphBuilder("inception_e_n", rng)
    width, side = multiplier("width", width), whole("image", image)
    x = builder.input("input", (dimension("batch", batch), scaled(1280, width), side, side))
    for i in range(whole("n", n)):
        with builder.scope(f"block{i}"):
            x = _block(builder, x, width)
    return builder.model(x)


def _block(builder: GraphBuilder, x: Value, width: float) -> Value:
    """Returns the four branches of x joined, (N, 2048 * width, H, W)."""

    def unit(value: Value, channels: int, kernel: int | tuple[int, int], label: str) -> Value:
        return builder.relu(builder.conv(value, scaled(channels, width), kernel, label, normed=False), f"{label}_relu")

    def fork(value: Value) -> Value:
        return builder.concat([unit(value, 384, (1, 3), "row"), unit(value, 384, (3, 1), "column")])

    direct = unit(x, 320, 1, "conv1x1")
    with builder.scope("branch3x3"):
        short = fork(unit(x, 384, 1, "conv"))
    with builder.scope("branch3x3dbl"):
        long = fork(unit(unit(x, 448, 1, "conv1"), 384, 3, "conv2"))
    with builder.scope("branch_pool"):
        pooled = unit(builder.max_pool(x, 3), 192, 1, "conv")
    return builder.concat([direct, short, long, pooled])
