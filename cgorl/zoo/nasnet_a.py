"""NASNet-A, as TASO evaluates it, and with the relus and batchnorms of the published cells."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole

# Relative to what would keep the mean square from relu to relu, halved again after each conv without one: the sums add up.
_FITTED, _SEPARABLE = 0.5, 0.4


def nasnet_a(
    rng: np.random.Generator,
    *,
    form: str = "taso",
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (5, 5, 5),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns NASNet-A (Zoph et al., 2018), input (batch, 3, image, image).

    Three stages of normal cells, each closed by a reduction cell that doubles the channels.

    Args:
        rng: source of the weights.
        form: "taso" is TASO's examples/nasnet_a.py: no batchnorm, no classifier, each separable conv once, and no relu but
            those behind the convs that fit a cell's two inputs; 383 operators, the relu of a conv counted with it. "real" has
            the same cells with the published relus: one before each separable conv, which is applied twice, and before the
            convs that fit, none behind them. "export" is that before folding: a batchnorm behind each separable and each
            fitting conv, and a classifier.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies every channel count.
        depth: how many normal cells in each of the three stages.
        classes: outputs of the classifier, which only "export" has.
    """
    net = _Network(GraphBuilder("nasnet_a", rng), choice("form", form, ("taso", "real", "export")))
    builder, side, width, classes = net.builder, whole("image", image, 32), multiplier("width", width), whole("classes", classes)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    with builder.scope("stem"):
        x = builder.conv(x, scaled(64, width), 7, stride=2, normed=net.normed)
        x = builder.max_pool(builder.relu(builder.batchnorm(x) if net.normed else x), 3, stride=2)
    channels = scaled(128, width)
    for stage, count in enumerate(stages("depth", depth, 3), start=1):
        before = x
        for i in range(count):
            with builder.scope(f"stage{stage}/cell{i}"):
                before, x = x, net.normal(before, x, channels)
        channels *= 2
        with builder.scope(f"stage{stage}/reduction"):
            x = net.reduction(before, x, channels)
    return builder.model(builder.classifier(builder.relu(x, "relu"), classes) if net.normed else x)


class _Network(NamedTuple):
    """The builder with what every cell must know."""

    builder: GraphBuilder
    form: str

    @property
    def normed(self) -> bool:
        """Whether convs have a batchnorm behind them."""
        return self.form == "export"

    def normal(self, before: Value, x: Value, channels: int) -> Value:
        """Returns five sums over the last two cells' results, concatenated: (N, 5 * channels, H, W)."""
        cur, prev = self.fitted(before, x, channels)
        pairs = [
            (self.separable(cur, 3, "0a"), cur),
            (self.separable(prev, 3, "1a"), self.separable(cur, 3, "1b")),
            (self.average(cur, "2a"), prev),
            (self.average(prev, "3a"), self.average(prev, "3b")),
            (self.separable(prev, 3, "4a"), self.separable(prev, 3, "4b")),
        ]
        return self.builder.concat([self.builder.add(a, b, f"add{i}") for i, (a, b) in enumerate(pairs)])

    def reduction(self, before: Value, x: Value, channels: int) -> Value:
        """Returns five sums at half the size, concatenated: (N, 5 * channels, ceil(H / 2), ceil(W / 2))."""
        builder = self.builder
        cur, prev = self.fitted(before, x, channels)
        sums: list[Value] = []

        def add(a: Value, b: Value) -> None:
            sums.append(builder.add(a, b, f"add{len(sums)}"))

        add(self.separable(prev, 7, "0a", 2), self.separable(cur, 5, "0b", 2))
        add(builder.max_pool(cur, 3, "maxpool1a", stride=2), self.separable(prev, 7, "1b", 2))
        add(self.average(cur, "2a", 2), self.separable(prev, 5, "2b", 2))
        add(builder.max_pool(cur, 3, "maxpool3a", stride=2), self.separable(sums[0], 3, "3b"))
        add(self.average(sums[0], "4a"), sums[1])
        return builder.concat(sums)

    def fitted(self, before: Value, x: Value, channels: int) -> tuple[Value, Value]:
        """Returns x with the given channels, and what came before it with the same shape."""
        cur = self.fit(x, channels, 1, "squeeze")
        if before.shape[2:] == x.shape[2:]:
            return cur, self.fit(before, channels, 1, "fit")
        return cur, self.fit(before, channels, 3, "fit", 2)

    def fit(self, x: Value, channels: int, kernel: int, label: str, stride: int = 1) -> Value:
        """Returns x after a conv with the relu behind it (TASO) or before it."""
        if self.form == "taso":
            return self.builder.relu(self.conv(x, channels, kernel, label, stride, gain=_FITTED), f"{label}_relu")
        return self.conv(self.builder.relu(x, f"{label}_relu"), channels, kernel, label, stride, gain=_FITTED)

    def separable(self, x: Value, kernel: int, suffix: str, stride: int = 1) -> Value:
        """Returns x after a depthwise conv and a 1x1 conv, channels kept; outside TASO's form with a relu before, twice."""
        if self.form == "taso":
            return self.pair(x, kernel, suffix, stride, 0.5)
        for nth, step in (("", stride), ("_again", 1)):
            x = self.pair(self.builder.relu(x, f"relu{suffix}{nth}"), kernel, f"{suffix}{nth}", step, 1.0)
        return x

    def pair(self, x: Value, kernel: int, suffix: str, stride: int, gain: float) -> Value:
        """Returns x after a depthwise conv and a 1x1 conv, channels kept."""
        channels = int(x.shape[1])
        y = self.builder.conv(x, channels, kernel, f"depthwise{suffix}", stride=stride, group=channels, normed=False, gain=gain)
        return self.conv(y, channels, 1, f"pointwise{suffix}", gain=_SEPARABLE)

    def conv(self, x: Value, channels: int, kernel: int, label: str, stride: int = 1, *, gain: float) -> Value:
        """Returns x after a conv, and in the export form a batchnorm."""
        y = self.builder.conv(x, channels, kernel, label, stride=stride, normed=self.normed, gain=1.0 if self.normed else gain)
        return self.builder.batchnorm(y, f"{label}_bn", gain=gain) if self.normed else y

    def average(self, x: Value, suffix: str, stride: int = 1) -> Value:
        """Returns the means over windows of 3."""
        return self.builder.average_pool(x, 3, f"avgpool{suffix}", stride=stride, count_include_pad=False)
