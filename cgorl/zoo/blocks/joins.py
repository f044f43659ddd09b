"""Concat, Split, Slice and Gather against one another and against activations."""

from __future__ import annotations

import numpy as np

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

_MAP = (2, 8, 8, 8)


def _joined(s: Sketch, op: str, *operands: float) -> Value:
    """Two 3x3 convolutions of two inputs, each under `op`, concatenated."""
    parts = [s.apply(op, s.conv(s.input(*_MAP), 6, 3), *operands) for _ in range(2)]
    return s.conv(s.concat(*parts), 8)


def two_routes_relu(s: Sketch) -> Value:
    """Convolutions with relu on two inputs, concatenated: skip connections of U-Nets."""
    return _joined(s, "Relu")


def two_routes_leaky(s: Sketch) -> Value:
    """Convolutions with leaky relu on two inputs, concatenated: routes of YOLOv3 and YOLOv4-tiny."""
    return _joined(s, "LeakyRelu")


def two_routes_relu6(s: Sketch) -> Value:
    """Convolutions with relu6 on two inputs, concatenated: feature pyramids of MobileNet detectors."""
    return _joined(s, "Clip", 0.0, 6.0)


def two_routes_hardswish(s: Sketch) -> Value:
    """Convolutions with hard swish on two inputs, concatenated: necks of YOLOv5 3.0 and PP-PicoDet."""
    return _joined(s, "HardSwish")


def level_scores(s: Sketch) -> Value:
    """Class scores of two pyramid levels under sigmoid, concatenated: RetinaNet, FCOS, EfficientDet."""
    parts = [s.apply("Sigmoid", s.apply("Reshape", s.conv(s.input(2, 8, n, n), 6, 3), [2, 6, n * n])) for n in (6, 3)]
    return s.concat(*parts, axis=2)


def level_distances(s: Sketch) -> Value:
    """Exp of each pyramid level's distances, concatenated: FCOS's box regression."""
    parts = [s.apply("Exp", s.apply("Reshape", s.conv(s.input(2, 8, n, n), 4, 3), [2, 4, n * n])) for n in (6, 3)]
    return s.concat(*parts, axis=2)


def bidirectional_cell(s: Sketch) -> Value:
    """Tanh states of a forward and a backward cell, concatenated: a bidirectional RNN, unrolled."""
    parts = [s.apply("Tanh", s.apply("Add", s.matmul(s.input(2, 8), 8), s.matmul(s.input(2, 8), 8))) for _ in range(2)]
    return s.linear(s.concat(*parts), 6)


def graph_attention_heads(s: Sketch) -> Value:
    """Elu of each head, concatenated: graph attention networks (pyGAT)."""
    x = s.input(6, 8)
    heads = [s.apply("Elu", s.apply("MatMul", s.apply("Softmax", s.input(6, 6), axis=-1), s.matmul(x, 4))) for _ in range(2)]
    return s.concat(*heads)


def crelu(s: Sketch) -> Value:
    """Relu of a value beside its negative: CReLU of PVANet and early detectors."""
    x = s.conv(s.input(*_MAP), 6, 3)
    return s.conv(s.apply("Relu", s.concat(x, s.apply("Neg", x))), 8)


def res2net_split(s: Sketch) -> Value:
    """A relu, then split into parts of which each goes its way: Res2Net."""
    first, second = s.split(s.apply("Relu", s.conv(s.input(*_MAP), 8)), [4, 4])
    return s.concat(first, s.apply("Relu", s.conv(second, 4, 3)))


def conv_gru_gates(s: Sketch) -> Value:
    """Sigmoid of both gates at once, then split: ConvGRU in PyTorch."""
    x, h = s.input(2, 4, 7, 7), s.input(2, 4, 7, 7)
    reset, update = s.split(s.apply("Sigmoid", s.conv(s.concat(x, h), 8, 3)), [4, 4])
    return s.apply("Add", s.apply("Mul", reset, h), s.apply("Mul", update, x))


def zero_dce_curves(s: Sketch) -> Value:
    """Tanh of all curve parameters at once, then split, one part an iteration: Zero-DCE's enhancement of dark images."""
    image = s.input(2, 3, 8, 8)
    for curve in s.split(s.apply("Tanh", s.conv(image, 6, 3)), [3, 3]):
        image = s.apply("Add", image, s.apply("Mul", curve, s.apply("Sub", s.apply("Mul", image, image), image)))
    return image


def image_gradients(s: Sketch) -> Value:
    """The length of each plane's gradient, a square root, concatenated: the gradient branch of SPSR's super-resolution."""
    lengths = []
    for _ in range(2):
        plane = s.input(2, 1, 8, 8)
        down, right = s.conv(plane, 1, 3, bias=False), s.conv(plane, 1, 3, bias=False)
        squares = s.apply("Add", s.apply("Mul", down, down), s.apply("Mul", right, right))
        lengths.append(s.apply("Sqrt", s.apply("Add", squares, 1e-6)))
    return s.concat(*lengths)


def clamp_then_planes(s: Sketch) -> Value:
    """An image clamped to [0, 1], split into its planes, which are joined in reverse: RGB to BGR behind super-resolution."""
    red, green, blue = s.split(s.apply("Clip", s.conv(s.input(*_MAP), 3, 3), 0.0, 1.0), [1, 1, 1])
    return s.concat(blue, green, red)


def gated_linear_unit(s: Sketch) -> Value:
    """A convolution split in two, tanh of one half times sigmoid of the other: WaveNet, WaveGlow, gated PixelCNN."""
    value, gate = s.split(s.conv(s.input(*_MAP), 12, 3), [6, 6])
    return s.conv(s.apply("Mul", s.apply("Tanh", value), s.apply("Sigmoid", gate)), 8)


def c2f(s: Sketch) -> Value:
    """A convolution split in two, a bottleneck on one half, all concatenated: C2f of YOLOv8 (here with relu)."""
    first, second = s.split(s.conv(s.input(*_MAP), 8), [4, 4])
    third = s.apply("Add", s.conv(s.apply("Relu", s.conv(second, 4, 3)), 4, 3), second)
    return s.conv(s.concat(first, second, third), 8)


def nerf_skip(s: Sketch) -> Value:
    """Features beside an embedding that is concatenated itself, before and behind: NeRF's viewing direction, CoordConv with radius."""
    view, feature = s.input(4, 3), s.apply("Relu", s.linear(s.input(4, 8), 8))
    embedding = s.concat(view, s.apply("Sin", view), s.apply("Cos", view))
    return s.linear(s.concat(feature, embedding), 6)


def dense_growth(s: Sketch) -> Value:
    """Each layer's result concatenated to all before it, two at a time: DenseNet in Keras."""
    x, y = s.input(2, 6, 8, 8), s.input(2, 4, 8, 8)
    return s.conv(s.apply("Relu", s.norm(s.concat(s.concat(x, y), s.input(2, 4, 8, 8)))), 8)


def detect_head(s: Sketch) -> Value:
    """Boxes and classes concatenated, then split again: YOLOv8's Detect on one level."""
    x = s.input(*_MAP)
    boxes, classes = s.split(s.concat(s.conv(x, 4), s.conv(x, 6)), [4, 6])
    return s.concat(s.apply("Relu", boxes), s.apply("Sigmoid", classes))


def coupling_layers(s: Sketch) -> Value:
    """Two halves concatenated, then the first sliced out again: coupling layers of RealNVP and Glow one behind the other."""
    x, y = s.input(2, 8), s.input(2, 8)
    joined = s.concat(x, s.apply("Mul", y, s.apply("Exp", s.linear(x, 8))))
    return s.apply("Tanh", s.linear(s.slice(joined, 0, 8), 8))


def yolo_scores(s: Sketch) -> Value:
    """Sigmoid of two neighbouring slices, concatenated: objectness and classes in pytorch-YOLOv4's head."""
    x = s.conv(s.input(*_MAP), 12)
    return s.concat(s.apply("Sigmoid", s.slice(x, 4, 5)), s.apply("Sigmoid", s.slice(x, 5, 12)))


def whole_of_slices(s: Sketch) -> Value:
    """All channels in two slices, joined again: slicing left behind where what stood between was folded away."""
    x = s.apply("Relu", s.input(*_MAP))
    return s.conv(s.concat(s.slice(x, 0, 3), s.slice(x, 3, 8)), 6)


def box_width(s: Sketch) -> Value:
    """A slice of a slice: a box's sizes out of all its numbers, then one of them (box coders, crops in valid U-Nets)."""
    size = s.slice(s.input(6, 5), 1, 5)
    return s.apply("Exp", s.slice(size, 2, 3))


def joints_reordered(s: Sketch) -> Value:
    """Chosen from the chosen: key points reordered, then some of them taken (COCO to H36M before pose lifting, ST-GCN)."""
    x = s.apply("Gather", s.input(2, 17, 3), np.array([0, 5, 6, 11, 12, 1, 2], np.int64), axis=1)
    return s.matmul(s.apply("Gather", x, np.array([0, 3, 4], np.int64), axis=1), 4)


def complex_residual(s: Sketch) -> Value:
    """Skips added to the real and the imaginary part, which are then concatenated: complex networks for speech (DCCRN, DCUNet)."""
    real, imaginary = (s.apply("Add", s.conv(s.input(*_MAP), 4, 3), s.input(2, 4, 8, 8)) for _ in range(2))
    return s.conv(s.concat(real, imaginary), 6)


def channel_shuffle(s: Sketch) -> Value:
    """Reshape, transpose, reshape, then half of the channels each: ShuffleNetV2."""
    x = s.apply("Reshape", s.concat(s.input(2, 4, 6, 6), s.conv(s.input(2, 4, 6, 6), 4)), [2, 2, 4, 6, 6])
    x = s.apply("Reshape", s.transpose(x, 0, 2, 1, 3, 4), [2, 8, 6, 6])
    first, second = s.split(x, [4, 4])
    return s.concat(first, s.apply("Relu", s.conv(second, 4)))


def focus(s: Sketch) -> Value:
    """Every second pixel in four slices, concatenated, then a convolution: the Focus layer of YOLOv5."""
    x = s.input(2, 3, 12, 12)
    parts = [s.apply("Slice", x, list(at), [12, 12], [2, 3], [2, 2]) for at in ((0, 0), (1, 0), (0, 1), (1, 1))]
    return s.conv(s.concat(*parts), 8, 3)
