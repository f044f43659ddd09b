"""The transformer transducer, as published and as X-RLflow evaluates it."""

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import ZooError, choice, dimension, whole
from cgorl.zoo.transformer import attention, bare_attention, check_heads


def transformer_transducer(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    seq: int | str = 80,
    labels: int | str = 20,
    audio_layers: int = 12,
    label_layers: int = 2,
    hidden: int = 512,
    heads: int = 8,
    intermediate: int = 2048,
    outputs: int = 10,
) -> onnx.ModelProto:
    """Returns a transformer transducer (Zhang et al., 2020), inputs audio (batch, seq, hidden) and label (batch, labels, hidden).

    Two encoders, of audio frames and of the labels so far, meet in a joint network.

    Args:
        rng: source of the weights.
        form: "export" is what an exporter writes: layer norm before each part, softmax, biases, and a joint network that adds
            each frame to each label: (batch, seq, labels, outputs). "taso" is X-RLflow's graph in TASO's operators: one input
            (seq, hidden) for both encoders, bare attention without batch, bias, softmax or layer norm, the encoders
            concatenated; 19 operators a layer, 272 in all.
        batch: a number or a symbol; 1 in "taso".
        seq: audio frames; a number, or a symbol, which "taso" does not take.
        labels: labels so far, a number or a symbol; "taso" has as many as frames.
        audio_layers: how many layers encode the audio, after a bottleneck of hidden / 32 features.
        label_layers: how many layers encode the labels.
        hidden: features of a frame and of a label.
        heads: attention heads; a divisor of hidden.
        intermediate: features inside the feed-forward part.
        outputs: of the joint network.
    """
    taso = choice("form", form, ("export", "taso")) == "taso"
    batch, seq, labels = dimension("batch", batch), dimension("seq", seq), dimension("labels", labels)
    counts = whole("audio_layers", audio_layers), whole("label_layers", label_layers)
    hidden, heads = whole("hidden", hidden), whole("heads", heads)
    intermediate, outputs = whole("intermediate", intermediate), whole("outputs", outputs)
    check_heads(hidden, heads)
    builder = GraphBuilder("transformer_transducer", rng)
    if taso:
        if batch != 1:
            raise ZooError(f"batch must be 1 in form 'taso', which has none, not {batch!r}.")
        audio = label = builder.input("input", (whole("seq", seq), hidden))
    else:
        audio, label = builder.input("audio", (batch, seq, hidden)), builder.input("label", (batch, labels, hidden))
    layer, linear = (_bare, _matmul) if taso else (_layer, GraphBuilder.linear)
    with builder.scope("audio"):
        audio = linear(builder, linear(builder, audio, max(1, hidden // 32), "bottleneck"), hidden, "frames")
    encoded = []
    for side, x, count in (("audio", audio, counts[0]), ("label", label, counts[1])):
        for i in range(count):
            with builder.scope(f"{side}/layer{i}"):
                x = layer(builder, x, heads, intermediate)
        encoded.append(x)
    with builder.scope("joint"):
        joined = builder.concat(encoded) if taso else _grid(builder, *encoded)
        x = builder.relu(linear(builder, joined, hidden, "hidden"))
        return builder.model(linear(builder, x, outputs, "outputs"))


def _matmul(builder: GraphBuilder, x: Value, features: int, label: str, *, gain: float = 1.0) -> Value:
    """Returns x without a bias, under the names of `GraphBuilder.linear`."""
    return builder.matmul(x, features, f"{label}/matmul", gain=gain)


def _layer(builder: GraphBuilder, x: Value, heads: int, intermediate: int) -> Value:
    """Returns one pre-norm encoder layer of x (N, S, D); each part adds little to the mean square."""
    with builder.scope("attention"):
        x = builder.add(attention(builder, builder.layer_norm(x, "norm", epsilon=1e-6), heads, gain=0.5), x)
    with builder.scope("mlp"):
        y = builder.relu(builder.linear(builder.layer_norm(x, "norm", epsilon=1e-6), intermediate, "up"))
        return builder.add(builder.linear(y, int(x.shape[2]), "down", gain=0.2), x)


def _bare(builder: GraphBuilder, x: Value, heads: int, intermediate: int) -> Value:
    """Returns one of X-RLflow's layers of x (S, D)."""
    with builder.scope("attention"):
        x = builder.add(bare_attention(builder, x, heads, gain=0.02), x)
    with builder.scope("mlp"):
        y = builder.relu(builder.matmul(x, intermediate, "up/matmul"))
        return builder.add(builder.matmul(y, int(x.shape[1]), "down/matmul", gain=0.1), x)


def _grid(builder: GraphBuilder, audio: Value, label: Value) -> Value:
    """Returns the sum of each frame (N, T, D) and each label (N, U, D), normalized: (N, T, U, D)."""
    (batch, frames, hidden), labels = audio.shape, label.shape[1]
    one, two = (builder.constant(f"constant/axis{axis}", np.array([axis], np.int64)) for axis in (1, 2))
    rows = builder.node("Unsqueeze", [builder.layer_norm(audio, "audio_norm", epsilon=1e-6), two], (batch, frames, 1, hidden), "frames")
    columns = builder.node("Unsqueeze", [builder.layer_norm(label, "label_norm", epsilon=1e-6), one], (batch, 1, labels, hidden), "labels")
    return builder.node("Add", [rows, columns], (batch, frames, labels, hidden), "grid")
