"""SqueezeNet 1.1, as torchvision exports it and as TASO reads that export."""

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, whole

# squeezed and expanded channels of each fire module; a pool stands before the groups
_FIRES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))


def squeezenet1_1(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
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
        classes: outputs.
    """
    builder = GraphBuilder("squeezenet1_1", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    side, width, classes = whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    x = _unit(builder, x, scaled(64, width), 3, "conv", taso, stride=2)
    for stage, fires in enumerate(_FIRES):
        x = builder.max_pool(x, 3, f"maxpool{stage}", stride=2, same=False)
        for i, (squeezed, expanded) in enumerate(fires):
            with builder.scope(f"stage{stage}/fire{i}"):
                y = _unit(builder, x, scaled(squeezed, width), 1, "squeeze", taso)
                x = builder.concat([_unit(builder, y, scaled(expanded, width), k, f"expand{k}x{k}", taso) for k in (1, 3)])
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
