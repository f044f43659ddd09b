"""NASNet-A, as TASO evaluates it."""

from collections.abc import Sequence

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import dimension, multiplier, scaled, stages, whole

# Relative to what would keep the mean square from relu to relu, halved again after each conv without one: the sums add up.
_FITTED, _SEPARABLE = 0.5, 0.4


def nasnet_a(
    rng: np.random.Generator,
    *,
    batch: int | str = 1,
    image: int = 224,
    width: float = 1.0,
    depth: Sequence[int] = (5, 5, 5),
) -> onnx.ModelProto:
    """Returns NASNet-A (Zoph et al., 2018) as in TASO's examples/nasnet_a.py, input (batch, 3, image, image).

    Three stages of normal cells, each closed by a reduction cell that doubles the channels; no batchnorm, no classifier,
    and no relu but those behind the convs that fit a cell's two inputs. 383 operators, the relu of a conv counted with it.

    Args:
        rng: source of the weights.
        batch: a number or a symbol.
        image: side of the input, at least 32.
        width: multiplies every channel count.
        depth: how many normal cells in each of the three stages.
    """
    builder = GraphBuilder("nasnet_a", rng)
    side, width = whole("image", image, 32), multiplier("width", width)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    with builder.scope("stem"):
        x = builder.relu(builder.conv(x, scaled(64, width), 7, stride=2, normed=False))
        x = builder.max_pool(x, 3, stride=2)
    channels = scaled(128, width)
    for stage, count in enumerate(stages("depth", depth, 3), start=1):
        before = x
        for i in range(count):
            with builder.scope(f"stage{stage}/cell{i}"):
                before, x = x, _normal(builder, before, x, channels)
        channels *= 2
        with builder.scope(f"stage{stage}/reduction"):
            x = _reduction(builder, before, x, channels)
    return builder.model(x)


def _normal(builder: GraphBuilder, before: Value, x: Value, channels: int) -> Value:
    """Returns five sums over the last two cells' results, concatenated: (N, 5 * channels, H, W)."""
    cur, prev = _fitted(builder, before, x, channels)
    pairs = [
        (_separable(builder, cur, 3, "0a"), cur),
        (_separable(builder, prev, 3, "1a"), _separable(builder, cur, 3, "1b")),
        (_average(builder, cur, "2a"), prev),
        (_average(builder, prev, "3a"), _average(builder, prev, "3b")),
        (_separable(builder, prev, 3, "4a"), _separable(builder, prev, 3, "4b")),
    ]
    return builder.concat([builder.add(a, b, f"add{i}") for i, (a, b) in enumerate(pairs)])


def _reduction(builder: GraphBuilder, before: Value, x: Value, channels: int) -> Value:
    """Returns five sums at half the size, concatenated: (N, 5 * channels, ceil(H / 2), ceil(W / 2))."""
    cur, prev = _fitted(builder, before, x, channels)
    sums: list[Value] = []

    def add(a: Value, b: Value) -> None:
        sums.append(builder.add(a, b, f"add{len(sums)}"))

    add(_separable(builder, prev, 7, "0a", 2), _separable(builder, cur, 5, "0b", 2))
    add(builder.max_pool(cur, 3, "maxpool1a", stride=2), _separable(builder, prev, 7, "1b", 2))
    add(_average(builder, cur, "2a", 2), _separable(builder, prev, 5, "2b", 2))
    add(builder.max_pool(cur, 3, "maxpool3a", stride=2), _separable(builder, sums[0], 3, "3b"))
    add(_average(builder, sums[0], "4a"), sums[1])
    return builder.concat(sums)


def _fitted(builder: GraphBuilder, before: Value, x: Value, channels: int) -> tuple[Value, Value]:
    """Returns x with the given channels, and what came before it with the same shape."""
    cur = builder.relu(builder.conv(x, channels, 1, "squeeze", normed=False, gain=_FITTED), "squeeze_relu")
    if before.shape[2:] == x.shape[2:]:
        prev = builder.conv(before, channels, 1, "fit", normed=False, gain=_FITTED)
    else:
        prev = builder.conv(before, channels, 3, "fit", stride=2, normed=False, gain=_FITTED)
    return cur, builder.relu(prev, "fit_relu")


def _separable(builder: GraphBuilder, x: Value, kernel: int, suffix: str, stride: int = 1) -> Value:
    """Returns x after a depthwise conv and a 1x1 conv, channels kept."""
    channels = int(x.shape[1])
    y = builder.conv(x, channels, kernel, f"depthwise{suffix}", stride=stride, group=channels, normed=False, gain=0.5)
    return builder.conv(y, channels, 1, f"pointwise{suffix}", normed=False, gain=_SEPARABLE)


def _average(builder: GraphBuilder, x: Value, suffix: str, stride: int = 1) -> Value:
    return builder.average_pool(x, 3, f"avgpool{suffix}", stride=stride, count_include_pad=False)
