"""Parallel branches over one input, or twin towers with one weight, whose results are added or subtracted."""

from __future__ import annotations

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value


def repvgg(s: Sketch) -> Value:
    """3x3 and 1x1 convolutions and the identity, each with batchnorm, added: a RepVGG block as trained."""
    x = s.input(2, 8, 10, 10)
    dense, pointwise = s.norm(s.conv(x, 8, 3, bias=False)), s.norm(s.conv(x, 8, bias=False))
    return s.apply("Relu", s.apply("Add", s.apply("Add", dense, pointwise), s.norm(x)))


def repvgg_folded(s: Sketch) -> Value:
    """Two convolutions and one batchnorm of one input, added: a RepVGG block of which an exporter folded what it could."""
    x = s.input(2, 8, 10, 10)
    return s.apply("Relu", s.apply("Add", s.apply("Add", s.conv(x, 8, 3), s.norm(x)), s.conv(x, 8)))


def acnet(s: Sketch) -> Value:
    """3x3, 1x3 and 3x1 convolutions of one input, added: ACNet's asymmetric block, folded by the exporter."""
    x = s.input(2, 8, 10, 10)
    across = s.apply("Conv", x, s.normal(8, 8, 1, 3, std=0.2), s.normal(8), kernel_shape=[1, 3], pads=[0, 1, 0, 1])
    along = s.apply("Conv", x, s.normal(8, 8, 3, 1, std=0.2), s.normal(8), kernel_shape=[3, 1], pads=[1, 0, 1, 0])
    return s.apply("Relu", s.apply("Add", s.apply("Add", s.conv(x, 8, 3), across), along))


def mobileone(s: Sketch) -> Value:
    """Depthwise 3x3 convolutions, a depthwise 1x1 and a batchnorm of one input, added: MobileOne as trained, folded in part."""
    x = s.input(2, 8, 10, 10)
    wide = s.apply("Add", s.conv(x, 8, 3, group=8), s.conv(x, 8, 3, group=8))
    return s.apply("Relu", s.apply("Add", s.apply("Add", wide, s.conv(x, 8, group=8)), s.norm(x)))


def diverse_branch(s: Sketch) -> Value:
    """A 3x3 convolution and an average pool of one input, added: the average branch of the Diverse Branch Block."""
    x = s.input(2, 8, 10, 10)
    pool = s.apply("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    return s.apply("Relu", s.apply("Add", s.conv(x, 8, 3), pool))


def residual_linear(s: Sketch) -> Value:
    """A single convolution added to its own input: the positional encoding generator of CPVT and Twins, with a depthwise one."""
    x = s.input(2, 8, 7, 7)
    return s.apply("Relu", s.apply("Add", s.conv(x, 8, 3, group=8), x))


def residual_scaled(s: Sketch) -> Value:
    """A convolution added to its own input scaled by channel: the identity branch of RepOptimizer's CSLA blocks."""
    x = s.input(2, 8, 7, 7)
    return s.apply("Relu", s.apply("Add", s.conv(x, 8, 3), s.apply("Mul", x, s.uniform(8, 1, 1))))


def siamese_difference(s: Sketch) -> Value:
    """The difference of one convolution's results on two images: gradient-difference losses (one Sobel kernel for both) in the graph."""
    weight = s.normal(8, 3, 3, 3, std=0.2)
    first, second = (s.conv(s.input(2, 3, 10, 10), 8, 3, weight=weight) for _ in range(2))
    return s.apply("Abs", s.apply("Sub", first, second))


def siamese_sum(s: Sketch) -> Value:
    """The sum of one convolution's results on two inputs: test-time augmentation in the graph, the last layer of two views, added."""
    weight = s.normal(8, 3, 3, 3, std=0.2)
    first, second = (s.conv(s.input(2, 3, 10, 10), 8, 3, weight=weight) for _ in range(2))
    return s.apply("Relu", s.apply("Add", first, second))


def two_stream_sum(s: Sketch) -> Value:
    """Convolutions of two inputs, added: RGB and depth fused in FuseNet, skip connections projected and added in FCN."""
    return s.apply("Relu", s.apply("Add", s.conv(s.input(2, 8, 8, 8), 8), s.conv(s.input(2, 6, 8, 8), 8)))


def lora(s: Sketch) -> Value:
    """`x W + (x A) B`: a linear layer with a low-rank adapter that was not merged (LoRA)."""
    x = s.input(2, 6, 16)
    return s.apply("Softmax", s.apply("Add", s.matmul(x, 16), s.matmul(s.matmul(x, 2), 16)), axis=-1)


def weight_delta(s: Sketch) -> Value:
    """`x W + x D`: a layer whose full-rank difference from the base model is kept apart (BitDelta, task vectors)."""
    x = s.input(2, 6, 16)
    return s.apply("Relu", s.apply("Add", s.matmul(x, 16), s.matmul(x, 16)))


def two_linears(s: Sketch) -> Value:
    """Two linear layers of one input, added: parallel adapters of full rank, the mean of two models' heads."""
    x = s.input(4, 16)
    return s.apply("Relu", s.apply("Add", s.linear(x, 12), s.linear(x, 12)))


def graph_sage(s: Sketch) -> Value:
    """`x U + (A x) V`: GraphSAGE and GraphConv add the node's own part to its neighbours'."""
    x, adjacency = s.input(6, 16), s.input(6, 6)
    return s.apply("Relu", s.apply("Add", s.matmul(x, 12), s.matmul(s.apply("MatMul", adjacency, x), 12)))


def shared_projection(s: Sketch) -> Value:
    """`x W + y W`, one weight: symmetric pair features, late fusion of twin towers."""
    weight = s.normal(16, 12, std=0.25)
    first, second = (s.apply("MatMul", s.input(2, 6, 16), weight) for _ in range(2))
    return s.apply("Relu", s.apply("Add", first, second))


def relative_attention(s: Sketch) -> Value:
    """Q K + Q R, content and position scored apart: attention with relative positions (Shaw, Music Transformer, BoTNet)."""
    query, key, position = s.input(2, 2, 6, 8), s.input(2, 2, 8, 6), s.input(2, 2, 8, 6)
    return s.apply("Softmax", s.apply("Add", s.apply("MatMul", query, key), s.apply("MatMul", query, position)), axis=-1)
