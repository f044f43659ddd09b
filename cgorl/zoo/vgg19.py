"""VGG-19, as torchvision exports it and as TENSAT evaluates it."""

import math
from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole

_CHANNELS = (64, 128, 256, 512, 512)


def vgg19(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (2, 2, 4, 4, 4),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns VGG-19 (Simonyan and Zisserman, 2014), input (batch, 3, image, image); it has no batchnorm.

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph: convs with bias, three Gemms (143.67 M parameters, 575 MB). "taso" is
            TENSAT's graph in TASO's operators: no bias, each weight of the classifier transposed by an operator of its own,
            each product flattened before, dropouts still there; 50 operators, each relu counted.
        batch: a number or a symbol.
        image: side of the input, at least 32. The first linear layer's weight, and what is drawn after it, depends on it.
        width: multiplies every channel count.
        depth: how many convs in each of the five stages; (2, 2, 3, 3, 3) is VGG-16.
        classes: outputs.
    """
    builder = GraphBuilder("vgg19", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    side, width, classes = whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    for stage, (count, channels) in enumerate(zip(stages("depth", depth, 5), _CHANNELS, strict=True)):
        with builder.scope(f"stage{stage}"):
            for i in range(count):
                x = builder.conv(x, scaled(channels, width), 3, f"conv{i}", normed=False, bias=not taso)
                x = builder.relu(x, f"relu{i}")
            x = builder.max_pool(x, 2, stride=2, same=False)
    for i, features in enumerate((scaled(4096, width), scaled(4096, width), classes)):
        with builder.scope(f"classifier{i}"):
            x = _linear(builder, x, features, taso)
            if i < 2:
                x = builder.relu(x)
                x = builder.node("Dropout", [x], x.shape, "dropout") if taso else x
    return builder.model(x)


def _linear(builder: GraphBuilder, x: Value, features: int, taso: bool) -> Value:
    """Returns the product of x (N, ...), flattened, with a weight that is stored transposed."""
    inner = math.prod(int(side) for side in x.shape[1:])
    if taso or len(x.shape) > 2:
        x = builder.node("Flatten", [x], (x.shape[0], inner), "flatten", axis=1)
    weight = builder.weight("weight", (features, inner), std=math.sqrt(2.0 / inner))
    if not taso:
        return builder.node("Gemm", [x, weight, builder.bias(features, "gemm")], (x.shape[0], features), "gemm", transB=1)
    transposed = builder.node("Transpose", [weight], (inner, features), "transpose", perm=(1, 0))
    return builder.node("MatMul", [x, transposed], (x.shape[0], features), "matmul")
