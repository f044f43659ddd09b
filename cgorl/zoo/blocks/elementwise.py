"""Arithmetic by element: gates, masks, scores and logarithms of sigmoids."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value


def gru_update(s: Sketch) -> Value:
    """`z h + (1 - z) n`: the new state of a GRU, as Keras and ConvGRU write it."""
    x, h = s.input(2, 16), s.input(2, 16)
    z = s.apply("Sigmoid", s.matmul(x, 16))
    n = s.apply("Tanh", s.matmul(x, 16))
    return s.apply("Add", s.apply("Mul", z, h), s.apply("Mul", s.apply("Sub", 1.0, z), n))


def gated_sum(s: Sketch) -> Value:
    """`x g + y g`, one gate on two values: attention gates on skip connections, masks on two embeddings."""
    gate = s.apply("Sigmoid", s.input(2, 16))
    x, y = s.input(2, 16), s.input(2, 16)
    return s.apply("Add", s.apply("Mul", x, gate), s.apply("Mul", y, gate))


def normalized_as_tensorflow(s: Sketch) -> Value:
    """`x r - mean r`, with r = 1 / std: the form into which tf.nn.batch_normalization multiplies out (group and instance norm)."""
    x = s.input(2, 8, 5, 5)
    mean = s.apply("ReduceMean", x, [2, 3], keepdims=1)
    variance = s.apply("ReduceMean", s.apply("Mul", x, x), [2, 3], keepdims=1)
    r = s.apply("Reciprocal", s.apply("Sqrt", s.apply("Add", variance, 1e-5)))
    return s.apply("Relu", s.apply("Sub", s.apply("Mul", x, r), s.apply("Mul", mean, r)))


def disentangled_attention(s: Sketch) -> Value:
    """Scores of content and of position, each divided by the scale of the heads, added: DeBERTa."""
    content, position = s.input(2, 6, 6), s.input(2, 6, 6)
    scale = s.apply("Sqrt", s.input(1))
    return s.apply("Softmax", s.apply("Add", s.apply("Div", content, scale), s.apply("Div", position, scale)), axis=-1)


def log_sigmoid_gate(s: Sketch) -> Value:
    """`x + log sigmoid(g)`, the latter as -softplus(-g), TensorFlow's log_sigmoid: gates in log space, log-likelihoods."""
    x, g = s.input(2, 16), s.input(2, 16)
    return s.apply("Exp", s.apply("Add", x, s.apply("Neg", s.apply("Softplus", s.apply("Neg", g)))))


def log_sigmoid_difference(s: Sketch) -> Value:
    """`x - log sigmoid(g)`, the latter as -softplus(-g): log odds and logistic losses in TensorFlow."""
    x, g = s.input(2, 16), s.input(2, 16)
    return s.apply("Tanh", s.apply("Sub", x, s.apply("Neg", s.apply("Softplus", s.apply("Neg", g)))))


def negative_log_sigmoid(s: Sketch) -> Value:
    """-log sigmoid(g), with TensorFlow's log_sigmoid: the logistic loss of ranking models (BPR, word2vec) as an output."""
    g = s.apply("ReduceSum", s.apply("Mul", s.input(4, 16), s.input(4, 16)), [1], keepdims=1)
    return s.apply("Neg", s.apply("Neg", s.apply("Softplus", s.apply("Neg", g))))


def added_to_itself(s: Sketch) -> Value:
    """`x + x`: NASNet's cells where both hidden states are one, as in TASO's graph of them."""
    x = s.apply("Relu", s.input(2, 8, 5, 5))
    return s.conv(s.apply("Add", x, x), 8)


def masked_scores(s: Sketch) -> Value:
    """Scores times d^-1/2, plus a mask, plus a bias, the two constant: causal attention with ALiBi or a window's bias."""
    scores = s.apply("MatMul", s.input(2, 2, 6, 8), s.input(2, 2, 8, 6))
    mask = s.hold(np.triu(np.full((1, 1, 6, 6), -1e4, np.float32), 1))
    scores = s.apply("Add", s.apply("Add", s.apply("Mul", scores, 0.35), mask), s.normal(1, 2, 6, 6))
    return s.apply("Softmax", scores, axis=-1)


def scaled_twice(s: Sketch) -> Value:
    """Values times a number, times a scale by column, times a gate: LayerScale under muP's multipliers."""
    x = s.apply("Mul", s.apply("Mul", s.input(2, 6, 16), 0.5), s.uniform(16))
    return s.apply("Mul", x, s.apply("Sigmoid", s.input(2, 6, 16)))


def two_shifts(s: Sketch) -> Value:
    """Words plus position plus segment embeddings, the latter constant: BERT and ViT exported for one length."""
    return s.apply("Add", s.apply("Add", s.input(2, 6, 16), s.normal(1, 6, 16)), s.normal(1, 1, 16))


def mixed_precision_casts(s: Sketch) -> Value:
    """From float16 to float32 and back again: autocast round operators that are kept in float32."""
    x = s.apply("Relu", s.input(2, 16, dtype=TensorProto.FLOAT16))
    back = s.apply("Cast", s.apply("Cast", x, to=TensorProto.FLOAT), to=TensorProto.FLOAT16)
    return s.apply("Relu", s.apply("Add", back, s.input(2, 16, dtype=TensorProto.FLOAT16)))


def swish_gate(s: Sketch) -> Value:
    """`x sigmoid(x)`: SiLU before opset 24, YOLOv5 to v8, EfficientNet."""
    x = s.norm(s.conv(s.input(2, 8, 9, 9), 8, 3, bias=False))
    return s.conv(s.apply("Mul", x, s.apply("Sigmoid", x)), 8)


def shortcut_as_sum(s: Sketch) -> Value:
    """A shortcut added by Sum: ShuffleNet and ResNets of Caffe and Caffe2."""
    x = s.apply("Relu", s.conv(s.input(2, 8, 10, 10), 8))
    return s.apply("Relu", s.apply("Sum", s.conv(x, 8, 3), x))


def state_with_zero(s: Sketch) -> Value:
    """A zero added that an option has left behind: the state that Silero VAD gives back."""
    return s.apply("Add", s.apply("Tanh", s.matmul(s.input(2, 16), 16)), 0.0)
