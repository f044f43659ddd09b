"""Normalization, scales and shifts round layers that can take them up."""

from __future__ import annotations

import numpy as np

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

_IMAGE = (2, 3, 12, 12)


def _per_channel(s: Sketch, op: str, x: Value) -> Value:
    return s.apply(op, x, s.uniform(int(x.shape[1]), 1, 1))


def dcgan_generator(s: Sketch) -> Value:
    """Transposed convolution, batchnorm, relu: the generator of DCGAN, decoders of U-Nets and autoencoders."""
    x = s.apply("Relu", s.norm(s.deconv(s.input(2, 8, 5, 5), 6, bias=False)))
    return s.apply("Tanh", s.deconv(x, 3))


def decoder_frozen_batchnorm(s: Sketch) -> Value:
    """Transposed convolution, then a scale and a shift by channel: decoders with a batchnorm frozen to mul and add."""
    x = s.deconv(s.input(2, 8, 5, 5), 6)
    return s.conv(s.apply("Relu", _per_channel(s, "Add", _per_channel(s, "Mul", x))), 3)


def deconv_bias_add(s: Sketch) -> Value:
    """Transposed convolution without bias, then an Add: TensorFlow's conv2d_transpose with BiasAdd."""
    return s.apply("Relu", _per_channel(s, "Add", s.deconv(s.input(2, 8, 5, 5), 6, bias=False)))


def frozen_batchnorm(s: Sketch) -> Value:
    """Convolution, then x scale + bias: FrozenBatchNorm2d of torchvision's and Detectron2's detectors."""
    x = s.conv(s.input(2, 4, 12, 12), 8, 3, bias=False)
    return s.apply("Relu", _per_channel(s, "Add", _per_channel(s, "Mul", x)))


def frozen_batchnorm_on_sum(s: Sketch) -> Value:
    """A sum, then x scale + bias: frozen batchnorm before the convolution of pre-activation networks."""
    x = s.apply("Add", s.input(2, 8, 9, 9), s.input(2, 8, 9, 9))
    return s.conv(s.apply("Relu", _per_channel(s, "Add", _per_channel(s, "Mul", x))), 8)


def caffe_batchnorm_scale(s: Sketch) -> Value:
    """Batchnorm, then a scale and a shift by channel: Caffe's BatchNorm and Scale layers, converted one by one."""
    x = s.apply("MaxPool", s.input(2, 8, 10, 10), kernel_shape=[2, 2], strides=[2, 2])
    return s.apply("Relu", _per_channel(s, "Add", _per_channel(s, "Mul", s.norm(x))))


def batchnorm_twice(s: Sketch) -> Value:
    """Batchnorm on batchnorm: a block that ends without an activation (MobileNetV2's bottleneck) under a head that begins with one."""
    x = s.norm(s.norm(s.apply("PRelu", s.conv(s.input(2, 8, 9, 9), 8, 3), s.uniform(8, 1, 1, low=0.1, high=0.4))))
    return s.apply("Relu", x)


def rescaling_batchnorm(s: Sketch) -> Value:
    """Pixels times 1/255, then batchnorm: Keras models that begin with Rescaling and a normalization."""
    return s.conv(s.norm(s.apply("Mul", s.input(*_IMAGE), 1 / 255)), 8, 3, stride=2)


def bias_add_batchnorm(s: Sketch) -> Value:
    """A bias added behind pooling, then batchnorm: frozen TensorFlow graphs keep BiasAdd and FusedBatchNorm apart."""
    x = s.apply("AveragePool", s.input(2, 8, 10, 10), kernel_shape=[2, 2], strides=[2, 2])
    return s.apply("Relu", s.norm(_per_channel(s, "Add", x)))


def input_batchnorm(s: Sketch) -> Value:
    """Batchnorm on the input, then a convolution that pads nothing: networks that normalize their input so (PANNs)."""
    return s.apply("Relu", s.conv(s.norm(s.input(*_IMAGE)), 8, 3, pad=0, bias=False))


def input_standardized(s: Sketch) -> Value:
    """(x / 255 - mean) / std in front of the first convolution: exports that include ImageNet's preprocessing."""
    x = s.apply("Div", s.input(*_IMAGE), 255.0)
    x = s.apply("Sub", x, np.array([0.485, 0.456, 0.406], np.float32).reshape(3, 1, 1))
    x = s.apply("Div", x, np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1))
    return s.apply("Relu", s.conv(x, 8, 3, pad=0, stride=2))


def mean_subtracted(s: Sketch) -> Value:
    """The mean colour subtracted in front of a convolution that pads nothing: AlexNet and VGG-M with Caffe's preprocessing inside."""
    x = s.apply("Sub", s.input(*_IMAGE), np.array([104, 117, 123], np.float32).reshape(1, 3, 1, 1))
    return s.apply("Relu", s.conv(x, 8, 5, pad=0, stride=2))


def input_scaled(s: Sketch) -> Value:
    """An image times 2 minus 1, as Mul and Add, in front of a padded convolution: diffusion models and GANs that take [0, 1]."""
    x = s.apply("Mul", s.apply("Add", s.apply("Mul", s.input(*_IMAGE), 2.0), -1.0), 0.5)
    return s.apply("Relu", s.conv(x, 8, 3))


def input_scaled_only(s: Sketch) -> Value:
    """Pixels times 1/255 in front of a padded convolution: YOLO exports with the normalization inside."""
    return s.apply("Relu", s.conv(s.apply("Mul", s.input(*_IMAGE), 1 / 255), 8, 3))


def lpips_scaling(s: Sketch) -> Value:
    """A convolution, then (x - shift) / scale by channel: a linear generator in front of LPIPS's scaling layer."""
    x = s.apply("Sub", s.conv(s.input(2, 8, 9, 9), 3, 3), s.normal(1, 3, 1, 1))
    return s.apply("Relu", s.conv(s.apply("Div", x, s.uniform(1, 3, 1, 1)), 8, 3))


def attention_query_conv(s: Sketch) -> Value:
    """Queries of a 1x1 convolution scaled before the product: attention over feature maps in U-Nets of diffusion models."""
    x = s.input(2, 8, 5, 5)
    query = s.apply("Reshape", s.apply("Div", s.conv(x, 8), 8**0.5), [2, 8, 25])
    key = s.apply("Reshape", s.conv(x, 8), [2, 8, 25])
    return s.apply("Softmax", s.apply("MatMul", s.transpose(query, 0, 2, 1), key), axis=-1)


def linear_batchnorm(s: Sketch) -> Value:
    """Linear, BatchNorm1d, relu: PointNet's classifier, MLPs on tables, projection heads of SimCLR and BYOL."""
    return s.linear(s.apply("Relu", s.norm(s.linear(s.input(4, 16), 12))), 8)


def batchnorm_linear(s: Sketch) -> Value:
    """BatchNorm1d in front of a linear layer: the output stage of ArcFace (BN, dropout, FC, BN) and of re-identification networks."""
    return s.norm(s.linear(s.norm(s.input(4, 16)), 12))


def dense_batchnorm(s: Sketch) -> Value:
    """Dense without bias, then batchnorm, as MatMul: Keras MLPs with use_bias=False."""
    return s.matmul(s.apply("Relu", s.norm(s.matmul(s.input(4, 16), 12))), 8)


def batchnorm_dense(s: Sketch) -> Value:
    """Batchnorm on the features, then Dense without bias, as MatMul: Keras models of tables."""
    return s.apply("Relu", s.matmul(s.norm(s.input(4, 16)), 12))


def standard_scaler(s: Sketch) -> Value:
    """(x - offset) scale of a StandardScaler, then a linear layer: scikit-learn pipelines converted by Hummingbird."""
    x = s.apply("Mul", s.apply("Sub", s.input(4, 16), s.normal(16)), s.uniform(16))
    return s.apply("Relu", s.linear(x, 12))


def standard_scaler_shift(s: Sketch) -> Value:
    """`x scale + offset` of a MinMaxScaler, then a linear layer: scikit-learn pipelines converted by Hummingbird."""
    x = s.apply("Add", s.apply("Mul", s.input(4, 16), s.uniform(16)), s.normal(16))
    return s.apply("Relu", s.linear(x, 12))


def scaled_linear(s: Sketch) -> Value:
    """Linear, then a constant scale: the query times d^-1/2 of PyTorch's multi-head attention, on one token a row."""
    return s.apply("Softmax", s.apply("Mul", s.linear(s.input(4, 16), 12), 12**-0.5), axis=-1)


def logits_prior(s: Sketch) -> Value:
    """Linear, then a constant row added: logit adjustment by class priors, action offsets of policies."""
    return s.apply("Softmax", s.apply("Add", s.linear(s.input(4, 16), 12), s.normal(12)), axis=-1)


def query_scaled(s: Sketch) -> Value:
    """A product without bias times d^-1/2: queries of transformers whose projections have none (tensor2tensor, PaLM ports)."""
    return s.apply("Softmax", s.apply("Mul", s.matmul(s.input(2, 6, 16), 16), 0.25), axis=-1)


def query_divided(s: Sketch) -> Value:
    """A product divided by sqrt d: XLM and DistilBERT divide the query so (their bias left out here)."""
    return s.apply("Softmax", s.apply("Div", s.matmul(s.input(2, 6, 16), 16), 4.0), axis=-1)


def rms_norm_scale(s: Sketch) -> Value:
    """A scale by column in front of a product: RMSNorm's weight before LLaMA's projections."""
    x = s.input(2, 6, 16)
    mean = s.apply("ReduceMean", s.apply("Mul", x, x), [-1], keepdims=1)
    normal = s.apply("Div", x, s.apply("Sqrt", s.apply("Add", mean, 1e-5)))
    return s.matmul(s.apply("Mul", normal, s.uniform(16)), 16)
