"""A detector of the YOLO family: focus, cross-stage blocks, spatial pyramid pooling, a neck that goes up and down again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import ZooError, choice, dimension, multiplier, scaled, stages, whole


def yolo_csp(
    rng: np.random.Generator,
    *,
    activation: str = "silu",
    batch: int | str = 1,
    image: int = 320,
    width: float = 0.5,
    depth: Sequence[int] = (1, 3, 3, 1),
    classes: int = 80,
) -> onnx.ModelProto:
    """Returns a detector like YOLOv5 (release 5; small by default), input (batch, 3, image, image), outputs at three scales.

    Four slices joined (focus), stages of stride-2 conv and cross-stage block, parallel maximum pools, then a neck that
    upsamples and joins twice, downsamples and joins twice; conv, batchnorm and activation apart, as before folding. The heads
    are (batch, 3 * (5 + classes), image / s, image / s) for s = 8, 16, 32, not decoded.

    Args:
        rng: source of the weights.
        activation: "silu" (x * sigmoid(x) in two operators) or "leaky" (LeakyRelu, slope 0.1).
        batch: a number or a symbol.
        image: side of the input, a multiple of 32.
        width: multiplies every channel count; 0.5 is the small, 1.0 the large model.
        depth: how many bottlenecks in the cross-stage block of each of the four stages; blocks of the neck have the last number.
        classes: kinds of objects.
    """
    builder = GraphBuilder("yolo_csp", rng)
    net = _Network(builder, choice("activation", activation, ("silu", "leaky")))
    side, width, classes = whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    if side % 32:
        raise ZooError(f"image must be a multiple of 32, not {side}.")
    counts = stages("depth", depth, 4)
    c = [scaled(64 * 2**i, width) for i in range(5)]
    x = net.focus(builder.input("input", (dimension("batch", batch), 3, side, side)), c[0])
    levels: list[Value] = []
    for stage, count in enumerate(counts, start=1):
        with builder.scope(f"backbone{stage}"):
            x = net.unit(x, c[stage], 3, "down", stride=2)
            if stage == 4:
                x = net.pyramid(x, c[stage])
            x = net.cross_stage(x, c[stage], count, "csp", shortcut=stage < 4)
            levels.append(x)
    _, fine, middle, coarse = levels
    with builder.scope("up4"):
        narrow5 = net.unit(coarse, c[3], 1, "reduce")
        joined = net.cross_stage(builder.concat([_doubled(builder, narrow5), middle]), c[3], counts[-1], "csp")
    with builder.scope("up3"):
        narrow4 = net.unit(joined, c[2], 1, "reduce")
        out3 = net.cross_stage(builder.concat([_doubled(builder, narrow4), fine]), c[2], counts[-1], "csp")
    with builder.scope("down4"):
        out4 = net.cross_stage(builder.concat([net.unit(out3, c[2], 3, "down", stride=2), narrow4]), c[3], counts[-1], "csp")
    with builder.scope("down5"):
        out5 = net.cross_stage(builder.concat([net.unit(out4, c[3], 3, "down", stride=2), narrow5]), c[4], counts[-1], "csp")
    heads = [builder.conv(y, 3 * (5 + classes), 1, f"head{i}", normed=False, bias=True) for i, y in enumerate((out3, out4, out5))]
    return builder.model(*heads)


class _Network(NamedTuple):
    """The builder with what every block must know."""

    builder: GraphBuilder
    activation: str

    def unit(self, x: Value, channels: int, kernel: int, label: str, stride: int = 1, gain: float = 1.0) -> Value:
        """Returns x after conv, batchnorm and activation."""
        with self.builder.scope(label):
            x = self.builder.batchnorm(self.builder.conv(x, channels, kernel, stride=stride), gain=gain)
            if self.activation == "leaky":
                return self.builder.node("LeakyRelu", [x], x.shape, "leaky", alpha=0.1)
            gate = self.builder.node("Sigmoid", [x], x.shape, "sigmoid")
            return self.builder.node("Mul", [x, gate], x.shape, "mul")

    def focus(self, x: Value, channels: int) -> Value:
        """Returns the four phases of every other row and column of x (N, 3, H, W), joined, after a conv."""
        builder, side = self.builder, int(x.shape[2]) // 2
        axes = builder.constant("constant/rows_and_columns", np.array([2, 3], np.int64))
        far = builder.constant("constant/to_the_end", np.array([2**31 - 1] * 2, np.int64))
        steps = builder.constant("constant/every_other", np.array([2, 2], np.int64))
        with builder.scope("focus"):
            phases = []
            for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
                start = builder.constant(f"constant/from{row}{column}", np.array([row, column], np.int64))
                phases.append(builder.node("Slice", [x, start, far, axes, steps], (*x.shape[:2], side, side), f"slice{row}{column}"))
            return self.unit(builder.concat(phases), channels, 3, "unit")

    def cross_stage(self, x: Value, channels: int, count: int, label: str, shortcut: bool = False) -> Value:
        """Returns x after a cross-stage block: half the channels through bottlenecks, half past them, joined."""
        half = max(1, channels // 2)
        with self.builder.scope(label):
            y = self.unit(x, half, 1, "in")
            for i in range(count):
                with self.builder.scope(f"bottleneck{i}"):
                    z = self.unit(self.unit(y, half, 1, "conv1"), half, 3, "conv2", gain=0.3 if shortcut else 1.0)
                    y = self.builder.add(y, z) if shortcut else z
            return self.unit(self.builder.concat([y, self.unit(x, half, 1, "past")]), channels, 1, "out")

    def pyramid(self, x: Value, channels: int) -> Value:
        """Returns x joined with its maxima over windows of 5, 9 and 13, between two 1x1 convs."""
        with self.builder.scope("pyramid"):
            y = self.unit(x, max(1, channels // 2), 1, "in")
            pools = [self.builder.max_pool(y, kernel, f"maxpool{kernel}") for kernel in (5, 9, 13)]
            return self.unit(self.builder.concat([y, *pools]), channels, 1, "out")


def _doubled(builder: GraphBuilder, x: Value) -> Value:
    """Returns x (N, C, H, W) with each number repeated in a square of four."""
    scales = builder.constant("constant/doubled", np.array([1, 1, 2, 2], np.float32))
    shape = (*x.shape[:2], 2 * int(x.shape[2]), 2 * int(x.shape[3]))
    return builder.node(
        "Resize", [x, "", scales], shape, "upsample", mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
    )
