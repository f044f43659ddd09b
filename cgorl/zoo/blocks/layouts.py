"""Transpositions between NHWC and NCHW, as exports of TensorFlow and Keras hold them, and those of attention."""

from __future__ import annotations

from onnx import TensorProto

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

_MAP = (2, 6, 8, 8)


def _between(s: Sketch, op: str, *operands: float, **attributes: float) -> Value:
    """A convolution, turned to NHWC, `op`, turned back, a convolution."""
    x = s.to_nhwc(s.conv(s.input(*_MAP), 8, 3))
    return s.conv(s.to_nchw(s.apply(op, x, *operands, **attributes)), 6)


def nhwc_relu(s: Sketch) -> Value:
    """A relu between two convolutions: any TensorFlow CNN converted operator by operator."""
    return _between(s, "Relu")


def nhwc_sigmoid(s: Sketch) -> Value:
    """A sigmoid between two convolutions: attention maps and gates in TensorFlow."""
    return _between(s, "Sigmoid")


def nhwc_tanh(s: Sketch) -> Value:
    """A tanh between two convolutions: LeNet in Keras, WaveNet and ConvLSTM cells in TensorFlow."""
    return _between(s, "Tanh")


def nhwc_leaky(s: Sketch) -> Value:
    """A leaky relu between two convolutions: YOLOv3 in TensorFlow and Keras."""
    return _between(s, "LeakyRelu", alpha=0.1)


def nhwc_relu6(s: Sketch) -> Value:
    """A relu6 between two convolutions: MobileNetV1 and V2 in TensorFlow."""
    return _between(s, "Clip", 0.0, 6.0)


def nhwc_hard_sigmoid(s: Sketch) -> Value:
    """A hard sigmoid between two convolutions: Keras's activation of that name in ConvLSTM2D."""
    return _between(s, "HardSigmoid", alpha=0.2, beta=0.5)


def nhwc_hard_swish(s: Sketch) -> Value:
    """`x relu6(x + 3) / 6` between two convolutions: MobileNetV3 in Keras."""
    x = s.to_nhwc(s.conv(s.input(*_MAP), 8, 3))
    gated = s.apply("Mul", x, s.apply("Clip", s.apply("Add", x, 3.0), 0.0, 6.0))
    return s.conv(s.to_nchw(s.apply("Div", gated, 6.0)), 6)


def box_sizes(s: Sketch) -> Value:
    """Exp of a box head turned to (N, H, W, 4): FCOS and CenterNet heads decoded in the graph."""
    return s.apply("Reshape", s.apply("Exp", s.to_nhwc(s.conv(s.input(*_MAP), 4, 3))), [2, 64, 4])


def root_compression(s: Sketch) -> Value:
    """The square root of a spectrogram turned to (time, bins): root-compressed features of speech models."""
    power = s.apply("Add", s.apply("Mul", x := s.input(2, 9, 12), x), 1e-3)
    return s.matmul(s.apply("Sqrt", s.transpose(power, 0, 2, 1)), 8)


def waveform_envelope(s: Sketch) -> Value:
    """The absolute value of a filter bank's output turned to (time, filters): SincNet's front end ported to Keras."""
    x = s.apply("Conv", s.input(2, 1, 40), s.normal(6, 1, 5, std=0.4), kernel_shape=[5])
    return s.matmul(s.apply("Abs", s.transpose(x, 0, 2, 1)), 8)


def uint8_image(s: Sketch) -> Value:
    """A uint8 image in NHWC, turned to NCHW, cast, standardized: exports that take camera frames."""
    x = s.apply("Cast", s.to_nchw(s.input(2, 9, 9, 3, dtype=TensorProto.UINT8)), to=TensorProto.FLOAT)
    return s.conv(s.apply("Div", x, 255.0), 6, 3)


def half_features(s: Sketch) -> Value:
    """A float16 image cast, then turned to NCHW: mixed-precision Keras models (cast first, layers after)."""
    x = s.apply("Cast", s.input(2, 9, 9, 3, dtype=TensorProto.FLOAT16), to=TensorProto.FLOAT)
    return s.conv(s.to_nchw(x), 6, 3)


def nhwc_residual(s: Sketch) -> Value:
    """Two branches added: ResNet in TensorFlow."""
    x, y = (s.to_nhwc(s.conv(s.input(*_MAP), 8, 3)) for _ in range(2))
    return s.conv(s.to_nchw(s.apply("Add", x, y)), 6)


def nhwc_gate(s: Sketch) -> Value:
    """One branch times the other: attention gates and squeeze-and-excitation in TensorFlow."""
    x, y = (s.to_nhwc(s.conv(s.input(*_MAP), 8, 3)) for _ in range(2))
    return s.conv(s.to_nchw(s.apply("Mul", x, y)), 6)


def nhwc_difference(s: Sketch) -> Value:
    """The difference of two branches: Siamese networks and flow estimation in TensorFlow."""
    x, y = (s.to_nhwc(s.conv(s.input(*_MAP), 8, 3)) for _ in range(2))
    return s.conv(s.to_nchw(s.apply("Sub", x, y)), 6)


def nhwc_normalized_conv(s: Sketch) -> Value:
    """A convolution of values over one of their mask: partial convolutions for inpainting in Keras."""
    x = s.to_nhwc(s.conv(s.input(*_MAP), 6, 3))
    mask = s.apply("Sigmoid", s.conv(s.input(*_MAP), 6, 3))
    return s.conv(s.to_nchw(s.apply("Div", x, s.to_nhwc(mask))), 6)


def _preprocessed(s: Sketch, first: str, then: str) -> Value:
    x = s.to_nhwc(s.input(2, 3, 9, 9))
    x = s.apply(first, x, s.uniform(1, 1, 1, 3))
    return s.conv(s.to_nchw(s.apply(then, x, s.uniform(1, 1, 1, 3))), 6, 3)


def nhwc_standardized(s: Sketch) -> Value:
    """(x - mean) / std with constants (1, 1, 1, 3) between transpositions: Keras's Normalization in an NCHW export."""
    return _preprocessed(s, "Sub", "Div")


def nhwc_affine(s: Sketch) -> Value:
    """`x scale + offset` with constants (1, 1, 1, 3) between transpositions: a batchnorm that TensorFlow folded to mul and add."""
    return _preprocessed(s, "Mul", "Add")


def nhwc_pixels(s: Sketch) -> Value:
    """(x / 255 - 0.5) times 2 between transpositions: preprocessing of TensorFlow slim's Inception."""
    x = s.apply("Div", s.to_nhwc(s.input(2, 3, 9, 9)), 255.0)
    return s.conv(s.to_nchw(s.apply("Mul", s.apply("Sub", x, 0.5), 2.0)), 6, 3)


def nhwc_to_bytes(s: Sketch) -> Value:
    """`(x + 1) 127.5` between transpositions: images from [-1, 1] to bytes in TensorFlow's GANs."""
    x = s.apply("Add", s.to_nhwc(s.conv(s.input(*_MAP), 3, 3)), 1.0)
    return s.to_nchw(s.apply("Mul", x, 127.5))


def nhwc_concat(s: Sketch) -> Value:
    """Branches concatenated on the last axis: Inception and DenseNet in TensorFlow."""
    parts = [s.to_nhwc(s.conv(s.input(*_MAP), 4, 3)) for _ in range(2)]
    return s.conv(s.to_nchw(s.concat(*parts, axis=3)), 6)


def _reduced(s: Sketch, op: str, axes: list[int]) -> Value:
    x = s.to_nhwc(s.conv(s.input(*_MAP), 8, 3))
    return s.conv(s.to_nchw(s.apply(op, x, axes, keepdims=1)), 1 if axes == [3] else 8, bias=False)


def nhwc_mean(s: Sketch) -> Value:
    """The mean over all places, axes kept: squeeze-and-excitation in TensorFlow."""
    return _reduced(s, "ReduceMean", [1, 2])


def nhwc_channel_max(s: Sketch) -> Value:
    """The maximum over channels, axis kept: spatial attention of CBAM in TensorFlow."""
    return _reduced(s, "ReduceMax", [3])


def nhwc_sum(s: Sketch) -> Value:
    """The sum over all places, axes kept: attention pooling and normalizers in TensorFlow."""
    return _reduced(s, "ReduceSum", [1, 2])


def nhwc_dark_channel(s: Sketch) -> Value:
    """The minimum over channels, axis kept: the dark channel prior of dehazing networks in TensorFlow."""
    return _reduced(s, "ReduceMin", [3])


def nhwc_softmax(s: Sketch) -> Value:
    """Softmax over the last axis of a map turned to NHWC: segmentation networks of Keras."""
    return s.to_nchw(s.apply("Softmax", s.to_nhwc(s.conv(s.input(*_MAP), 4)), axis=-1))


def nhwc_roundtrip(s: Sketch) -> Value:
    """To NHWC and back with nothing between: converters that turn round each operator."""
    return s.conv(s.to_nchw(s.to_nhwc(s.conv(s.input(*_MAP), 8, 3))), 6)


def pooled_to_nhwc(s: Sketch) -> Value:
    """A map of one place turned to NHWC, flattened: the classifier of a TensorFlow CNN."""
    x = s.to_nhwc(s.apply("GlobalAveragePool", s.conv(s.input(*_MAP), 8)))
    return s.linear(s.apply("Flatten", x), 5)


def heads_turned_twice(s: Sketch) -> Value:
    """Two transpositions in a row that come to a third: attention heads split, then the key turned."""
    key = s.transpose(s.transpose(s.input(2, 6, 3, 4), 0, 2, 1, 3), 0, 1, 3, 2)
    return s.apply("Softmax", s.apply("MatMul", s.input(2, 3, 6, 4), key), axis=-1)


def turned_product(s: Sketch) -> Value:
    """The product of two matrices, both turned: tf.matmul with transpose_a and transpose_b."""
    x, y = s.input(2, 5, 6), s.input(2, 4, 5)
    return s.apply("Softmax", s.apply("MatMul", s.transpose(x, 0, 2, 1), s.transpose(y, 0, 2, 1)), axis=-1)


def patches_position(s: Sketch) -> Value:
    """Patches turned to (N, tokens, C), plus positions (1, tokens, C): ViT."""
    x = s.apply("Reshape", s.conv(s.input(2, 3, 8, 8), 6, 2, pad=0, stride=2), [2, 6, 16])
    return s.matmul(s.apply("Add", s.transpose(x, 0, 2, 1), s.normal(1, 16, 6)), 6)


def gemm_turned(s: Sketch) -> Value:
    """addmm(b, x.t(), W) and addmm(b, x, y.t()): PyTorch's functions on matrices that are turned first."""
    x = s.apply("Gemm", s.transpose(s.input(5, 4), 1, 0), s.normal(5, 6), s.normal(6))
    return s.apply("Gemm", s.apply("Relu", x), s.transpose(s.input(3, 6), 1, 0), s.normal(3))
