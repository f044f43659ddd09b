"""MobileNetV2, as torchvision exports it and as TENSAT evaluates it."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole

# expansion, channels and stride of each of the seven stages
_STAGES = ((1, 16, 1), (6, 24, 2), (6, 32, 2), (6, 64, 2), (6, 96, 1), (6, 160, 2), (6, 320, 1))


def mobilenet_v2(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (1, 2, 3, 4, 3, 3, 1),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns MobileNetV2 (Sandler et al., 2018), input (batch, 3, image, image).

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph before folding: conv, batchnorm and relu6 (a Clip) apart, classifier
            (3.50 M parameters). "taso" is TENSAT's graph in TASO's operators, which is that of MXNet's model: relu instead of
            relu6, an expanding conv in the first block too, a 1x1 conv as classifier; batchnorm still apart; 155 operators,
            each relu counted.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies every channel count.
        depth: how many blocks in each of the seven stages.
        classes: outputs.
    """
    builder = GraphBuilder("mobilenet_v2", rng)
    taso = choice("form", form, ("export", "taso")) == "taso"
    side, width, classes = whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    with builder.scope("stem"):
        x = _unit(builder, x, scaled(32, width), 3, "", taso, stride=2)
    for stage, (count, (expansion, channels, stride)) in enumerate(zip(stages("depth", depth, 7), _STAGES, strict=True)):
        for i in range(count):
            with builder.scope(f"stage{stage}/{i}"):
                x = _block(builder, x, scaled(channels, width), expansion, stride if i == 0 else 1, taso)
    with builder.scope("top"):
        x = _unit(builder, x, scaled(1280, width), 1, "", taso)
    if not taso:
        return builder.model(builder.classifier(x, classes))
    pooled = builder.node("GlobalAveragePool", [x], (*x.shape[:2], 1, 1), "avgpool")
    logits = builder.conv(pooled, classes, 1, "classifier", normed=False)
    return builder.model(builder.node("Flatten", [logits], logits.shape[:2], "flatten", axis=1))


def _unit(
    builder: GraphBuilder, x: Value, channels: int, kernel: int, suffix: str, taso: bool, *, stride: int = 1, group: int = 1
) -> Value:
    """Returns x after conv, batchnorm and relu or relu6."""
    x = builder.conv(x, channels, kernel, f"conv{suffix}", stride=stride, group=group)
    x = builder.batchnorm(x, f"bn{suffix}")
    if taso:
        return builder.relu(x, f"relu{suffix}")
    bounds = [builder.constant(f"constant/{name}", np.array(bound, np.float32)) for name, bound in (("zero", 0.0), ("six", 6.0))]
    return builder.node("Clip", [x, *bounds], x.shape, f"relu6{suffix}")


def _block(builder: GraphBuilder, x: Value, channels: int, expansion: int, stride: int, taso: bool) -> Value:
    """Returns a 1x1 conv to more channels, a depthwise 3x3 conv and a 1x1 conv without activation, plus x if shapes agree."""
    inner = expansion * int(x.shape[1])
    y = _unit(builder, x, inner, 1, "1", taso) if taso or expansion > 1 else x
    y = _unit(builder, y, inner, 3, "2", taso, stride=stride, group=inner)
    same = stride == 1 and x.shape[1] == channels
    # What is added to x adds little to its mean square, which would else double in each block; half is what a relu leaves.
    y = builder.batchnorm(builder.conv(y, channels, 1, "conv3"), "bn3", gain=0.1 if same else 0.5)
    return builder.add(y, x) if same else y
