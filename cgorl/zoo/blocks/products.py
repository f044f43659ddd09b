"""Matrix products in a row."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value


def linear_attention(s: Sketch) -> Value:
    """(Q K) V with nothing between: linear attention, non-local blocks in dot-product form without their scale."""
    query, key, value = s.input(2, 12, 4), s.input(2, 4, 12), s.input(2, 12, 4)
    return s.apply("Relu", s.apply("MatMul", s.apply("MatMul", query, key), value))


def linear_attention_state(s: Sketch) -> Value:
    """Q (K V), the state first: Linear Transformer, Performer, efficient attention."""
    query, key, value = s.input(2, 12, 4), s.input(2, 4, 12), s.input(2, 12, 4)
    return s.apply("Relu", s.apply("MatMul", query, s.apply("MatMul", key, value)))


def graph_convolution(s: Sketch) -> Value:
    """A (X W): a layer of a GCN with its adjacency as an input."""
    return s.apply("Relu", s.apply("MatMul", s.input(6, 6), s.matmul(s.input(6, 8), 5)))


def factorized_embedding(s: Sketch) -> Value:
    """(x A) B, both constant: ALBERT's embeddings, layers compressed by SVD."""
    return s.apply("Relu", s.matmul(s.matmul(s.input(2, 6, 16), 4), 16))


def linear_linear(s: Sketch) -> Value:
    """A linear layer behind a linear layer: projections whose activation was pruned, SVD-compressed classifiers of Fast R-CNN."""
    return s.apply("Relu", s.linear(s.linear(s.input(4, 16), 4), 12))


def qkv(s: Sketch) -> Value:
    """Three products of one input: query, key and value."""
    x = s.input(2, 6, 16)
    query, key, value = (s.matmul(x, 16) for _ in range(3))
    scores = s.apply("Softmax", s.apply("MatMul", query, s.transpose(key, 0, 2, 1)), axis=-1)
    return s.apply("MatMul", scores, value)


def qkv_joined(s: Sketch) -> Value:
    """Two products of one input, concatenated along the last axis: keys and values cached together, multi-head projections."""
    x = s.input(2, 6, 16)
    return s.apply("Softmax", s.concat(s.matmul(x, 8), s.matmul(x, 4), axis=2), axis=-1)


def qkv_heads(s: Sketch) -> Value:
    """Query, key and value from one product, permuted, unbound and attended by heads: timm's and DeiT's Attention."""
    x = s.input(2, 6, 16)
    wide = s.apply("Reshape", s.apply("Add", s.matmul(x, 48), s.normal(48)), [2, 6, 3, 4, 4])
    parts = s.split(s.transpose(wide, 2, 0, 3, 1, 4), [1, 1, 1], axis=0)
    query, key, value = (s.apply("Squeeze", part, [0]) for part in parts)
    scores = s.apply("Softmax", s.apply("MatMul", query, s.transpose(key, 0, 1, 3, 2)), axis=-1)
    mixed = s.transpose(s.apply("MatMul", scores, value), 0, 2, 1, 3)
    return s.matmul(s.apply("Reshape", mixed, [2, 6, 16]), 16)


def attention_exported(s: Sketch) -> Value:
    """Scaled dot-product attention by heads for one sequence: what PyTorch exports, the root of the scale at query and key."""
    x = s.input(1, 6, 16)
    query, key, value = (s.apply("Reshape", s.apply("Add", s.matmul(x, 16), s.normal(16)), [1, 6, 4, 4]) for _ in range(3))
    query, key = s.apply("Mul", s.transpose(query, 0, 2, 1, 3), 0.5**0.5), s.apply("Mul", s.transpose(key, 0, 2, 3, 1), 0.5**0.5)
    scores = s.apply("Softmax", s.apply("MatMul", query, key), axis=-1)
    mixed = s.transpose(s.apply("MatMul", scores, s.transpose(value, 0, 2, 1, 3)), 0, 2, 1, 3)
    return s.matmul(s.apply("Reshape", mixed, [1, 6, 16]), 16)


def swiglu(s: Sketch) -> Value:
    """Gate and up projections of one input, multiplied: feed-forward parts of LLaMA and PaLM."""
    x = s.input(2, 6, 16)
    gate, up = s.matmul(x, 24), s.matmul(x, 24)
    return s.matmul(s.apply("Mul", s.apply("Mul", gate, s.apply("Sigmoid", gate)), up), 16)


def fused_qkv(s: Sketch) -> Value:
    """One product, split into three: GPT-2's c_attn, fused projections of ViT."""
    query, key, value = s.split(s.matmul(s.input(2, 6, 16), 24), [8, 8, 8], axis=2)
    scores = s.apply("Softmax", s.apply("MatMul", query, s.transpose(key, 0, 2, 1)), axis=-1)
    return s.apply("MatMul", scores, value)


def dense_bias(s: Sketch) -> Value:
    """A product of rank 2, then the bias: Dense as tf2onnx writes it."""
    x = s.apply("Relu", s.apply("Add", s.matmul(s.input(4, 16), 12), s.normal(12)))
    return s.apply("Add", s.matmul(x, 8), s.normal(8))


def gemm_plain(s: Sketch) -> Value:
    """A Gemm with its weight as it is: MLPs of scikit-learn converters and of Caffe2."""
    return s.apply("Relu", s.apply("Gemm", s.input(4, 16), s.normal(16, 12, std=0.25), s.normal(12)))


def actor_critic(s: Sketch) -> tuple[Value, Value]:
    """Two linear layers of one input, both results wanted: actor and critic, mean and log variance of a VAE."""
    x = s.apply("Relu", s.linear(s.input(4, 16), 12))
    return s.linear(x, 6), s.linear(x, 1)


def recurrent_step(s: Sketch) -> Value:
    """`x U + h W`: the step of an unrolled RNN, LSTM gates."""
    return s.apply("Tanh", s.apply("Add", s.matmul(s.input(2, 8), 12), s.matmul(s.input(2, 6), 12)))


def concatenated_state(s: Sketch) -> Value:
    """[x, h] W: the step of TensorFlow's BasicRNNCell and BasicLSTMCell."""
    return s.apply("Tanh", s.matmul(s.concat(s.input(2, 8), s.input(2, 6)), 12))


def shared_tower(s: Sketch) -> Value:
    """One weight on query and document, stacked as rows: two-tower retrieval, contrastive learning."""
    weight = s.normal(16, 12, std=0.25)
    return s.apply("Tanh", s.concat(*(s.apply("MatMul", s.input(3, 16), weight) for _ in range(2)), axis=0))


def onehot_embedding(s: Sketch) -> Value:
    """A table looked up by a one-hot code and a product: jax.nn.one_hot and tf.one_hot in front of a dense layer."""
    x = s.apply("Unsqueeze", s.input(2, 6, dtype=TensorProto.INT64), [2])
    code = s.apply("Cast", s.apply("Equal", x, np.arange(9).reshape(1, 1, 9)), to=TensorProto.FLOAT)
    return s.apply("Relu", s.matmul(code, 16))


def embedding_bias(s: Sketch) -> Value:
    """Rows of a table and a bias: an embedding as flax's Dense of a one-hot code, once the code is looked up."""
    chosen = s.apply("ArgMax", s.input(2, 6, 9), axis=2, keepdims=0)
    rows = s.apply("Gather", s.normal(9, 16), chosen, axis=0)
    return s.apply("Relu", s.apply("Add", rows, s.normal(16)))


def sum_of_frames(s: Sketch) -> Value:
    """Features summed over the frames: statistics pooling of speaker embeddings, bags of words."""
    return s.matmul(s.apply("ReduceSum", s.apply("Relu", s.matmul(s.input(2, 12, 8), 16)), [1], keepdims=0), 6)


def sum_of_frames_kept(s: Sketch) -> Value:
    """The same with the axis kept, so that each frame is divided by the sum: normalized attention over frames."""
    x = s.apply("Exp", s.matmul(s.input(2, 12, 8), 16))
    return s.apply("Div", x, s.apply("ReduceSum", x, [1], keepdims=1))
