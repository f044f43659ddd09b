"""InceptionV3, as torchvision exports it and as TASO evaluates it."""

import string
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import choice, dimension, multiplier, scaled, stages, whole


class _Conv(NamedTuple):
    """A conv unit: conv, batchnorm (export form only), relu."""

    channels: int
    kernel: int | tuple[int, int]
    stride: int = 1
    same: bool = True


_Fork = tuple[_Conv, _Conv]
_Step = _Conv | _Fork | Literal["avg", "max"]
_Block = Mapping[str, Sequence[_Step]]

_STEM: Sequence[_Step] = [
    _Conv(32, 3, 2, same=False),
    _Conv(32, 3, same=False),
    _Conv(64, 3),
    "max",
    _Conv(80, 1),
    _Conv(192, 3, same=False),
    "max",
]
_CROSS: _Fork = (_Conv(384, (1, 3)), _Conv(384, (3, 1)))


def inception_v3(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int = 299,
    width: float = 1.0,
    depth: Sequence[int] = (3, 4, 2),
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns InceptionV3 (Szegedy et al., 2015), input (batch, 3, image, image).

    Args:
        rng: source of the weights.
        form: "export" is torchvision's inference graph before folding: conv, batchnorm and relu apart, classifier, no
            auxiliary head (23.83 M parameters). "taso" is TASO's examples/inceptionv3.py: conv and relu, six-way concats
            in the E blocks, no classifier, a 1x1 "global" pool at the end; 119 operators, a relu counted with its conv.
        batch: a number or a symbol.
        image: side of the input, at least 75.
        width: multiplies every channel count.
        depth: how many A, C and E blocks.
        classes: outputs of the classifier, which "taso" lacks.
    """
    net = _Network(GraphBuilder("inception_v3", rng), choice("form", form, ("export", "taso")) == "taso", multiplier("width", width))
    builder = net.builder
    side, classes = whole("image", image, 75), whole("classes", classes)
    count_a, count_c, count_e = stages("depth", depth, 3)
    x = builder.input("input", (dimension("batch", batch), 3, side, side))
    with builder.scope("stem"):
        (x,) = net.chain(x, _STEM)
    for i in range(count_a):
        x = net.block(x, f"mixed5{_letter(i + 1)}", _block_a(32 if i == 0 else 64))
    x = net.block(x, "mixed6a", _block_b())
    for i in range(count_c):
        x = net.block(x, f"mixed6{_letter(i + 1)}", _block_c(192 if i == count_c - 1 else 128 if i == 0 else 160))
    x = net.block(x, "mixed7a", _block_d())
    for i in range(count_e):
        x = net.block(x, f"mixed7{_letter(i + 1)}", _block_e())
    if net.taso:
        return builder.model(builder.average_pool(x, 1, count_include_pad=False))
    return builder.model(builder.classifier(x, classes))


class _Network(NamedTuple):
    """The builder with what every block must know."""

    builder: GraphBuilder
    taso: bool
    width: float

    def block(self, x: Value, label: str, branches: _Block) -> Value:
        """Returns the branches, each applied to x, concatenated."""
        with self.builder.scope(label):
            values: list[Value] = []
            for branch, steps in branches.items():
                with self.builder.scope(branch):
                    values += self.chain(x, steps)
            return self.builder.concat(values)

    def chain(self, x: Value, steps: Sequence[_Step]) -> list[Value]:
        """Returns x after the steps: one value, or the two ends of a fork where TASO leaves them to the block's concat."""
        for i, step in enumerate(steps):
            # Convs and pools are numbered apart; the two convs of a fork share a number.
            nth = 1 + sum(isinstance(earlier, str) == isinstance(step, str) for earlier in steps[:i])
            if step == "avg":
                x = self.builder.average_pool(x, 3, f"avgpool{nth}", count_include_pad=not self.taso)
            elif step == "max":
                x = self.builder.max_pool(x, 3, f"maxpool{nth}", stride=2, same=False)
            elif isinstance(step, _Conv):
                x = self.unit(x, step, str(nth))
            else:
                ends = [self.unit(x, end, f"{nth}{side}") for side, end in zip("ab", step, strict=True)]
                return ends if self.taso else [self.builder.concat(ends)]
        return [x]

    def unit(self, x: Value, conv: _Conv, suffix: str) -> Value:
        """Returns x after a conv unit whose labels end in the suffix."""
        channels = scaled(conv.channels, self.width)
        x = self.builder.conv(x, channels, conv.kernel, f"conv{suffix}", stride=conv.stride, same=conv.same, normed=not self.taso)
        if not self.taso:
            x = self.builder.batchnorm(x, f"bn{suffix}", epsilon=1e-3)
        return self.builder.relu(x, f"relu{suffix}")


def _letter(i: int) -> str:
    return string.ascii_lowercase[i] if i < 26 else f"z{i}"


def _block_a(pool: int) -> _Block:
    return {
        "branch1x1": [_Conv(64, 1)],
        "branch5x5": [_Conv(48, 1), _Conv(64, 5)],
        "branch3x3dbl": [_Conv(64, 1), _Conv(96, 3), _Conv(96, 3)],
        "branch_pool": ["avg", _Conv(pool, 1)],
    }


def _block_b() -> _Block:
    return {
        "branch3x3": [_Conv(384, 3, 2, same=False)],
        "branch3x3dbl": [_Conv(64, 1), _Conv(96, 3), _Conv(96, 3, 2, same=False)],
        "branch_pool": ["max"],
    }


def _block_c(c: int) -> _Block:
    row, column = (1, 7), (7, 1)
    return {
        "branch1x1": [_Conv(192, 1)],
        "branch7x7": [_Conv(c, 1), _Conv(c, row), _Conv(192, column)],
        "branch7x7dbl": [_Conv(c, 1), _Conv(c, column), _Conv(c, row), _Conv(c, column), _Conv(192, row)],
        "branch_pool": ["avg", _Conv(192, 1)],
    }


def _block_d() -> _Block:
    return {
        "branch3x3": [_Conv(192, 1), _Conv(320, 3, 2, same=False)],
        "branch7x7x3": [_Conv(192, 1), _Conv(192, (1, 7)), _Conv(192, (7, 1)), _Conv(192, 3, 2, same=False)],
        "branch_pool": ["max"],
    }


def _block_e() -> _Block:
    return {
        "branch1x1": [_Conv(320, 1)],
        "branch3x3": [_Conv(384, 1), _CROSS],
        "branch3x3dbl": [_Conv(448, 1), _Conv(384, 3), _CROSS],
        "branch_pool": ["avg", _Conv(192, 1)],
    }
