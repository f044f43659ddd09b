"""Activations spelled out, stacked on one another, or bounded twice."""

from __future__ import annotations

import math

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

_SHAPE = (2, 8, 10, 10)


def _relu6(s: Sketch, x: Value) -> Value:
    return s.apply("Clip", x, 0.0, 6.0)


def hardswish_division(s: Sketch) -> Value:
    """Hard swish as x relu6(x + 3) / 6: PyTorch versions of MobileNetV3 written before nn.Hardswish."""
    x = s.conv(s.input(*_SHAPE), 8)
    return s.conv(s.apply("Div", s.apply("Mul", x, _relu6(s, s.apply("Add", x, 3.0))), 6.0), 8)


def hardswish_sixth(s: Sketch) -> Value:
    """Hard swish as x relu6(x + 3) times 1/6: TensorFlow slim's MobileNetV3."""
    x = s.conv(s.input(*_SHAPE), 8)
    return s.conv(s.apply("Mul", s.apply("Mul", x, _relu6(s, s.apply("Add", x, 3.0))), 1 / 6), 8)


def hardswish_of_sigmoid(s: Sketch) -> Value:
    """Hard swish as x times (relu6(x + 3) times 1/6): Keras's MobileNetV3, whose hard_swish calls hard_sigmoid."""
    x = s.conv(s.input(*_SHAPE), 8)
    return s.conv(s.apply("Mul", x, s.apply("Mul", _relu6(s, s.apply("Add", x, 3.0)), 1 / 6)), 8)


def squeeze_excite_hard(s: Sketch) -> Value:
    """Squeeze and excitation gated by relu6(x + 3) / 6: MobileNetV3 and GhostNet in PyTorch."""
    x = s.input(*_SHAPE)
    squeezed = s.apply("Relu", s.conv(s.apply("ReduceMean", x, [2, 3], keepdims=1), 4))
    gate = s.apply("Add", s.conv(squeezed, 8), 3.0)
    return s.apply("Mul", x, s.apply("Div", _relu6(s, gate), 6.0))


def mish(s: Sketch) -> Value:
    """Mish from its parts, x tanh(softplus(x)): YOLOv4's backbone in every exporter before opset 18."""
    x = s.norm(s.conv(s.input(*_SHAPE), 8, bias=False))
    return s.conv(s.apply("Mul", x, s.apply("Tanh", s.apply("Softplus", x))), 8)


def gelu_torch(s: Sketch) -> Value:
    """GELU as PyTorch exports it before opset 20: x (1 + erf(x / sqrt 2)) times 1/2, in the feed-forward part of BERT and ViT."""
    x = s.apply("Add", s.matmul(s.input(2, 6, 16), 32), s.normal(32))
    wide = s.apply("Add", s.apply("Erf", s.apply("Div", x, math.sqrt(2))), 1.0)
    return s.matmul(s.apply("Mul", s.apply("Mul", x, wide), 0.5), 16)


def gelu_python(s: Sketch) -> Value:
    """GELU as x/2 (1 + erf(x / sqrt 2)): the function in Python of early BERT ports (Hugging Face, Google)."""
    x = s.apply("Add", s.matmul(s.input(2, 6, 16), 32), s.normal(32))
    wide = s.apply("Add", s.apply("Erf", s.apply("Div", x, math.sqrt(2))), 1.0)
    return s.matmul(s.apply("Mul", s.apply("Mul", x, 0.5), wide), 16)


def gelu_tanh_tensorflow(s: Sketch) -> Value:
    """GELU by tanh with the cube as products, x (x (c x)): jax.nn.gelu and TensorFlow's through tf2onnx."""
    x = s.apply("Add", s.matmul(s.input(2, 6, 16), 32), s.normal(32))
    cube = s.apply("Mul", x, s.apply("Mul", x, s.apply("Mul", 0.044715, x)))
    wide = s.apply("Add", 1.0, s.apply("Tanh", s.apply("Mul", math.sqrt(2 / math.pi), s.apply("Add", x, cube))))
    return s.matmul(s.apply("Mul", x, s.apply("Mul", 0.5, wide)), 16)


def layer_norm(s: Sketch) -> Value:
    """Layer normalization from its parts: PyTorch exports of transformers before opset 17."""
    x = s.input(2, 6, 16)
    centred = s.apply("Sub", x, s.apply("ReduceMean", x, [-1], keepdims=1))
    variance = s.apply("ReduceMean", s.apply("Pow", centred, 2.0), [-1], keepdims=1)
    normal = s.apply("Div", centred, s.apply("Sqrt", s.apply("Add", variance, 1e-5)))
    return s.matmul(s.apply("Add", s.apply("Mul", normal, s.uniform(16)), s.normal(16)), 16)


def relu_on_features(s: Sketch) -> Value:
    """F.relu on a backbone's features, which end in a relu already: classifiers after CheXNet with a ResNet in DenseNet's place."""
    x = s.apply("Relu", s.apply("Relu", s.conv(s.input(*_SHAPE), 8)))
    return s.apply("GlobalAveragePool", x)


def relu_on_relu6(s: Sketch) -> Value:
    """F.relu on the features of a MobileNetV2, which end in a relu6: the same classifiers with that backbone."""
    x = s.apply("Relu", _relu6(s, s.conv(s.input(*_SHAPE), 8)))
    return s.apply("GlobalAveragePool", x)


def clipped_relu_keras(s: Sketch) -> Value:
    """Keras's ReLU(max_value=20), a relu, then clip_by_value as Minimum and Maximum: Deep Speech."""
    x = s.apply("Relu", s.matmul(s.input(2, 16), 16))
    return s.matmul(s.apply("Max", s.apply("Min", x, 20.0), 0.0), 8)


def image_clamped_twice(s: Sketch) -> Value:
    """An image clamped to [0, 1] by the network and again by the wrapper that it is exported in: super-resolution, denoising."""
    x = s.apply("Clip", s.conv(s.input(2, 8, 10, 10), 3, 3), 0.0, 1.0)
    return s.apply("Mul", s.apply("Clip", x, 0.0, 1.0), 255.0)


def maximum_with_zero(s: Sketch) -> Value:
    """A relu written maximum(x, 0): hinge losses and handwritten layers of TensorFlow and JAX."""
    return s.matmul(s.apply("Max", s.matmul(s.input(2, 16), 16), 0.0), 8)


def clamp_from_zero(s: Sketch) -> Value:
    """A relu written clamp(min=0): PyTorch exports it as a Clip without an upper bound."""
    return s.conv(s.apply("Clip", s.conv(s.input(*_SHAPE), 8), 0.0), 8)
