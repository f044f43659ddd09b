"""Pools beside, behind and over one another."""

from __future__ import annotations

import math

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

_MAP = (2, 8, 10, 10)


def _max(s: Sketch, x: Value, side: int) -> Value:
    return s.apply("MaxPool", x, kernel_shape=[side, side], pads=[side // 2] * 4, strides=[1, 1])


def spatial_pyramid(s: Sketch) -> Value:
    """Max pools of 5, 9 and 13 beside one another, concatenated: SPP of YOLOv3-SPP, YOLOv4, YOLOv5."""
    x = s.conv(s.input(*_MAP), 4)
    return s.conv(s.concat(x, *(_max(s, x, side) for side in (5, 9, 13))), 8)


def spatial_pyramid_fast(s: Sketch) -> Value:
    """Three max pools of 5 behind one another, all concatenated: SPPF of YOLOv5 6.0 and later."""
    x = s.conv(s.input(*_MAP), 4)
    y = _max(s, x, 5)
    z = _max(s, y, 5)
    return s.conv(s.concat(x, y, z, _max(s, z, 5)), 8)


def mask_dilated(s: Sketch) -> Value:
    """A max pool of a max pool: masks dilated again and again (matting, SuperPoint's non-maximum suppression)."""
    x = s.apply("Sigmoid", s.conv(s.input(*_MAP), 1))
    return s.apply("Sub", _max(s, _max(s, x, 3), 3), x)


def stem_pool(s: Sketch) -> Value:
    """A convolution, relu, max pool: the stem of ResNet, VGG, SqueezeNet."""
    x = s.apply("Relu", s.conv(s.input(2, 3, 16, 16), 8, 3, stride=2))
    return s.apply("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])


def pool_then_relu(s: Sketch) -> Value:
    """A max pool, then relu: Keras's and Caffe's CIFAR-10 networks, NASNet's cells."""
    x = s.apply("MaxPool", s.conv(s.input(2, 3, 12, 12), 8, 3), kernel_shape=[2, 2], strides=[2, 2])
    return s.conv(s.apply("Relu", x), 8, 3)


def two_stream_max_pools(s: Sketch) -> Value:
    """Max pools of two streams, concatenated: RGB and depth, or two views, fused after the stem."""
    streams = [s.apply("MaxPool", s.conv(s.input(*_MAP), 4, 3), kernel_shape=[2, 2], strides=[2, 2]) for _ in range(2)]
    return s.conv(s.concat(*streams), 8)


def two_stream_average_pools(s: Sketch) -> Value:
    """Average pools of two streams, concatenated: two-stream networks that fuse behind the stem."""
    streams = [s.apply("AveragePool", s.conv(s.input(*_MAP), 4, 3), kernel_shape=[2, 2], strides=[2, 2]) for _ in range(2)]
    return s.conv(s.concat(*streams), 8)


def two_backbones(s: Sketch) -> Value:
    """Global average pools of two backbones, concatenated, then a classifier: ensembles and two-stream action recognition."""
    pooled = [s.apply("GlobalAveragePool", s.conv(s.input(*_MAP), n, 3)) for n in (4, 6)]
    return s.linear(s.apply("Flatten", s.concat(*pooled)), 5)


def mean_as_reduction(s: Sketch) -> Value:
    """x.mean([2, 3], keepdim=True), then a 1x1 convolution: timm's and torchvision's MobileNets and EfficientNets."""
    return s.conv(s.apply("ReduceMean", s.conv(s.input(*_MAP), 8, 3), [2, 3], keepdims=1), 6)


def nasnet_pools(s: Sketch) -> Value:
    """Two average pools, added: NASNet's and AmoebaNet's cells."""
    x, y = (s.conv(s.input(*_MAP), 6) for _ in range(2))
    pools = [s.apply("AveragePool", v, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1]) for v in (x, y)]
    return s.apply("Relu", s.apply("Add", *pools))


def pool_mixer(s: Sketch) -> Value:
    """An average pool that counts its padding, then a 1x1 convolution: pool branches of Caffe's Inception."""
    x = s.apply("AveragePool", s.input(*_MAP), kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1], count_include_pad=1)
    return s.apply("Relu", s.conv(x, 6, bias=False))


def pad_before_max_pool(s: Sketch) -> Value:
    """A Pad with minus infinity in front of a max pool: SAME padding as timm's TensorFlow ports do it."""
    x = s.apply("Pad", s.conv(s.input(2, 3, 12, 12), 8, 3), [0, 0, 0, 0, 0, 0, 1, 1], -math.inf)
    return s.apply("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
