"""Convolutions in a row, in groups, with pads of their own."""

from __future__ import annotations

import numpy as np

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value


def linear_bottleneck(s: Sketch) -> Value:
    """A 3x3 convolution, then a 1x1 with nothing between: SVD-compressed layers, squeeze layers of efficient U-Nets."""
    return s.apply("Relu", s.conv(s.conv(s.input(2, 8, 10, 10), 6, 3), 8))


def tucker(s: Sketch) -> Value:
    """1x1, 3x3, 1x1 convolutions with nothing between: a layer compressed by Tucker decomposition."""
    x = s.conv(s.input(2, 16, 10, 10), 4, bias=False)
    return s.apply("Relu", s.conv(s.conv(x, 6, 3, bias=False), 16))


def densenet_transition(s: Sketch) -> Value:
    """Batchnorm, relu, a 1x1 convolution, average pool: the transition of DenseNet."""
    x = s.apply("Relu", s.norm(s.input(2, 16, 10, 10)))
    return s.apply("AveragePool", s.conv(x, 8, bias=False), kernel_shape=[2, 2], strides=[2, 2])


def preactivation_linear(s: Sketch) -> Value:
    """Batchnorm, then a 1x1 convolution with no relu between: PyramidNet's bottleneck blocks begin so."""
    return s.apply("Relu", s.norm(s.conv(s.norm(s.input(2, 8, 10, 10)), 8, bias=False)))


def inception_pool_branch(s: Sketch) -> Value:
    """An average pool, then a 1x1 convolution: the pool branch of Inception modules."""
    x = s.apply("AveragePool", s.input(2, 16, 9, 9), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return s.apply("Relu", s.conv(x, 6))


def resnext_groups(s: Sketch) -> Value:
    """A 3x3 convolution in groups between 1x1 ones: ResNeXt, RegNet."""
    x = s.apply("Relu", s.conv(s.input(2, 16, 8, 8), 64))
    return s.conv(s.apply("Relu", s.conv(x, 64, 3, group=32)), 16)


def groups_written_dense(s: Sketch) -> Value:
    """A convolution whose weight is block-diagonal: converters that write groups out for runtimes without grouped convolutions."""
    rng = np.random.default_rng(1)
    blocks = np.kron(np.eye(4), np.ones((2, 2)))[:, :, None, None]
    weight = s.hold((rng.standard_normal((8, 8, 3, 3)) * blocks * 0.3).astype(np.float32))
    return s.apply("Relu", s.conv(s.input(2, 8, 8, 8), 8, 3, weight=weight))


def alexnet_groups(s: Sketch) -> Value:
    """Split, a convolution on each half, concat: AlexNet in TensorFlow, which had no grouped convolution."""
    first, second = s.split(s.input(2, 8, 9, 9), [4, 4])
    return s.apply("Relu", s.concat(s.conv(first, 6, 3), s.conv(second, 6, 3)))


def unet_up(s: Sketch) -> Value:
    """A skip and a decoder's value concatenated, then a convolution: U-Net, feature pyramids of PSPNet and DeepLab."""
    skip, low = s.input(2, 6, 8, 8), s.input(2, 8, 4, 4)
    return s.apply("Relu", s.conv(s.concat(skip, s.deconv(low, 6)), 8, 3))


def pad_before_conv(s: Sketch) -> Value:
    """Zeros laid round the input, then a convolution of stride 2 without pads: TensorFlow and Keras (ZeroPadding2D)."""
    x = s.apply("Pad", s.input(2, 3, 12, 12), [0, 0, 0, 0, 0, 0, 1, 1], 0.0)
    return s.apply("Relu", s.conv(x, 8, 3, pad=0, stride=2))


def pad_twice(s: Sketch) -> Value:
    """A pad to a multiple of the stride, then the layer's own: segmentation wrappers round TensorFlow ports."""
    x = s.apply("Pad", s.input(2, 3, 11, 11), [0, 0, 0, 0, 0, 0, 1, 1], 0.0)
    x = s.apply("Pad", x, [0, 0, 1, 1, 0, 0, 1, 1], 0.0)
    return s.apply("Relu", s.conv(x, 8, 3, pad=0, stride=2))


def pad_before_average_pool(s: Sketch) -> Value:
    """A Pad of zeros, then an average pool without pads: PyTorch's export of avg_pool2d with count_include_pad."""
    x = s.apply("Pad", s.input(2, 8, 9, 9), [0, 0, 1, 1, 0, 0, 1, 1], 0.0)
    return s.conv(s.apply("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1]), 6)


def pointwise_mlp(s: Sketch) -> Value:
    """Two 1x1 convolutions without bias and an activation between: PointNet's shared MLP, MetaFormer's channel mixer."""
    x = s.apply("Relu", s.conv(s.input(2, 8, 7, 7), 12, bias=False))
    return s.conv(x, 8, bias=False)


def narrow_separable(s: Sketch) -> Value:
    """A separable convolution of few channels behind a relu: NASNet's first cells, with 11 and 22 channels."""
    x = s.apply("Relu", s.conv(s.input(2, 8, 12, 12), 11))
    return s.apply("Relu", s.conv(s.conv(x, 11, 5, group=11, bias=False), 11))


def narrow_bottleneck(s: Sketch) -> Value:
    """1x1, depthwise, 1x1 convolutions of few channels with nothing between: small linear bottlenecks found by search."""
    x = s.conv(s.input(2, 8, 12, 12), 10)
    return s.apply("Relu", s.conv(s.conv(x, 10, 3, group=10), 8))


def lenet_pool(s: Sketch) -> Value:
    """A convolution, relu, average pool: LeNet-5 with relus."""
    x = s.apply("Relu", s.conv(s.input(2, 1, 16, 16), 6, 5))
    return s.conv(s.apply("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2]), 16, 5)


def factorized_reduction(s: Sketch) -> Value:
    """Every second place, then a 1x1 convolution: the paths of NASNet's factorized reduction, which pick by a pool of window 1."""
    x = s.apply("Relu", s.input(2, 8, 12, 12))
    return s.apply("Relu", s.conv(s.apply("AveragePool", x, kernel_shape=[1, 1], strides=[2, 2]), 6, bias=False))


def factorized_reduction_shifted(s: Sketch) -> Value:
    """The same one row and column further: a row and a column of zeros behind, one cut off in front."""
    x = s.apply("Pad", s.apply("Relu", s.input(2, 8, 12, 12)), [0, 0, -1, -1, 0, 0, 1, 1])
    return s.apply("Relu", s.conv(x, 6, stride=2, bias=False))


def pad_before_two_convs(s: Sketch) -> Value:
    """One Pad in front of two convolutions: SAME padding as timm's TensorFlow ports do it, shared once equal nodes are."""
    x = s.apply("Pad", s.apply("Relu", s.input(2, 8, 12, 12)), [0, 0, 0, 0, 0, 0, 1, 1])
    return s.apply("Mul", *(s.conv(x, 8, 3, pad=0, stride=2) for _ in range(2)))
