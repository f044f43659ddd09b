"""Changes of shape in a row, and round activations."""

from __future__ import annotations

from onnx import TensorProto

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value


def view_view(s: Sketch) -> Value:
    """A reshape of a reshape: x.view(...).view(...), heads joined and windows undone in Swin."""
    x = s.apply("Reshape", s.apply("Relu", s.input(2, 4, 3, 4)), [2, 12, 4])
    return s.matmul(s.apply("Reshape", x, [2, 3, 16]), 6)


def view_back(s: Sketch) -> Value:
    """A reshape and back: windows of Swin and shuffles left behind where what stood between was folded away."""
    x = s.apply("Reshape", s.apply("Relu", s.input(2, 12, 4)), [24, 4])
    return s.matmul(s.apply("Reshape", x, [2, 12, 4]), 6)


def flatten_view(s: Sketch) -> Value:
    """Flatten, then a reshape: PyTorch's torch.flatten(x, 1).view(n, -1, d), capsule networks."""
    return s.matmul(s.apply("Reshape", s.apply("Flatten", s.apply("Relu", s.input(2, 8, 3, 3)), axis=1), [2, 9, 8]), 6)


def squeeze_view(s: Sketch) -> Value:
    """Squeeze, then a reshape: pooled features in PyTorch, x.squeeze().view(n, -1)."""
    x = s.apply("Squeeze", s.apply("GlobalAveragePool", s.input(2, 8, 5, 5)), [2, 3])
    return s.matmul(s.apply("Reshape", x, [2, 2, 4]), 6)


def unsqueeze_view(s: Sketch) -> Value:
    """Unsqueeze, then a reshape: keys repeated for grouped queries, masks broadcast over heads."""
    x = s.apply("Unsqueeze", s.apply("Relu", s.input(2, 6, 8)), [2])
    return s.matmul(s.apply("Reshape", x, [12, 8]), 6)


def view_flatten(s: Sketch) -> Value:
    """A reshape, then Flatten: Keras's Reshape and Flatten layers, nn.Flatten behind a view."""
    return s.linear(s.apply("Flatten", s.apply("Reshape", s.apply("Relu", s.input(2, 8, 4)), [2, 4, 2, 4]), axis=1), 6)


def view_squeeze(s: Sketch) -> Value:
    """A reshape, then Squeeze: TensorFlow classifiers (Reshape to 1x1, Squeeze) of MobileNet."""
    x = s.apply("Reshape", s.apply("Relu", s.input(2, 8)), [2, 1, 1, 8])
    return s.linear(s.apply("Squeeze", x, [1, 2]), 6)


def view_unsqueeze(s: Sketch) -> Value:
    """A reshape, then Unsqueeze: heads split, then an axis put in to broadcast over."""
    x = s.apply("Unsqueeze", s.apply("Reshape", s.apply("Relu", s.input(2, 8)), [2, 2, 4]), [1])
    return s.apply("Mul", x, s.input(2, 3, 2, 4))


def conv1d_chain(s: Sketch) -> Value:
    """Squeeze, then Unsqueeze between two 1-D convolutions done as 2-D: TensorFlow's conv1d."""
    x = s.conv(s.apply("Unsqueeze", s.input(2, 4, 12), [2]), 6)
    return s.apply("Squeeze", s.conv(s.apply("Unsqueeze", s.apply("Squeeze", x, [2]), [2]), 4), [2])


def axis_in_and_out(s: Sketch) -> Value:
    """Unsqueeze, then Squeeze of the same axis: Paddle's and PyTorch's BatchNorm1d and LSTM wrappers."""
    return s.matmul(s.apply("Squeeze", s.apply("Unsqueeze", s.apply("Relu", s.input(2, 8)), [2]), [2]), 6)


def dcgan_projection(s: Sketch) -> Value:
    """A linear layer, a reshape to a map, relu: the first layer of DCGAN and of VAE decoders."""
    return s.deconv(s.apply("Relu", s.apply("Reshape", s.linear(s.input(2, 6), 128), [2, 8, 4, 4])), 4)


def dcgan_projection_leaky(s: Sketch) -> Value:
    """A linear layer, a reshape to a map, leaky relu: GANs after the DCGAN tutorial of TensorFlow."""
    return s.deconv(s.apply("LeakyRelu", s.apply("Reshape", s.linear(s.input(2, 6), 128), [2, 8, 4, 4]), alpha=0.2), 4)


def mlp_gan_image(s: Sketch) -> Value:
    """A linear layer, a reshape to an image, tanh: MLP generators of GAN collections, additive attention on split heads."""
    return s.apply("Tanh", s.apply("Reshape", s.linear(s.input(2, 6), 48), [2, 3, 4, 4]))


def squeeze_excite_reshape(s: Sketch) -> Value:
    """A linear gate, a reshape to (N, C, 1, 1), sigmoid: squeeze-and-excitation with linear layers (SENet)."""
    x = s.input(2, 8, 5, 5)
    gate = s.linear(s.apply("Relu", s.linear(s.apply("Flatten", s.apply("GlobalAveragePool", x)), 4)), 8)
    return s.apply("Mul", x, s.apply("Sigmoid", s.apply("Reshape", gate, [2, 8, 1, 1])))


def boxes_clipped(s: Sketch) -> Value:
    """A box head reshaped to (N, anchors, 4), clipped to [0, 1]: SSD and RetinaNet decoded in the graph."""
    x = s.to_nhwc(s.conv(s.input(2, 6, 4, 4), 8, 3))
    return s.apply("Clip", s.apply("Reshape", x, [2, 32, 4]), 0.0, 1.0)


def labels_cast(s: Sketch) -> Value:
    """A reshape, then a cast: uint8 images and labels brought into shape first."""
    x = s.apply("Reshape", s.input(2, 48, dtype=TensorProto.UINT8), [2, 3, 4, 4])
    return s.conv(s.apply("Cast", x, to=TensorProto.FLOAT), 4, 3)


def last_state(s: Sketch) -> Value:
    """An axis of size 1 taken out in front and put in behind: the last state of an LSTM as a sequence of one for a Conv1d."""
    x = s.apply("Squeeze", s.apply("Tanh", s.input(1, 2, 8)), [0])
    return s.apply("Relu", s.apply("Conv", s.apply("Unsqueeze", x, [2]), s.normal(6, 8, 1)))


def pooled_twice_squeezed(s: Sketch) -> Value:
    """Height, then width taken out of a pooled map: x.squeeze(-1).squeeze(-1) in PyTorch."""
    x = s.apply("Squeeze", s.apply("GlobalAveragePool", s.input(2, 8, 5, 5)), [3])
    return s.linear(s.apply("Squeeze", x, [2]), 6)


def mean_of_one(s: Sketch) -> Value:
    """The mean over a single frame: speech probabilities of Silero VAD, clips of one frame."""
    return s.apply("ReduceMean", s.apply("Sigmoid", s.matmul(s.input(2, 1, 8), 4)), [1], keepdims=0)


def conv1d_relu(s: Sketch) -> Value:
    """Two convolutions along time with a relu between: encoders of speech, Silero VAD's among them."""
    x = s.apply("Relu", s.apply("Conv", s.input(2, 8, 12), s.normal(8, 8, 3), s.normal(8), pads=[1, 1]))
    return s.apply("Sigmoid", s.apply("Conv", x, s.normal(8, 8, 3), s.normal(8), pads=[1, 1], strides=[2]))
