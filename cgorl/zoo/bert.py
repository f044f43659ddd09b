"""The BERT encoder."""

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import ZooError, dimension, whole


def bert(
    rng: np.random.Generator,
    *,
    batch: int | str = 1,
    seq: int | str = 128,
    layers: int = 4,
    hidden: int = 512,
    heads: int = 8,
    intermediate: int | None = None,
) -> onnx.ModelProto:
    """Returns a BERT encoder (Devlin et al., 2018) on embedded tokens, input (batch, seq, hidden), unmasked.

    Written as an exporter writes it: projections as MatMul + Add, GELU by its Erf parts, LayerNormalization as one node.
    The default is BERT-small (12.6 M parameters, 50 MB); BERT-base is layers=12 hidden=768 heads=12 (85 M, 340 MB).

    Args:
        rng: source of the weights.
        batch: a number, or a symbol for a dynamic batch.
        seq: tokens in a sentence; a number, or a symbol.
        layers: how many encoder layers.
        hidden: features of a token.
        heads: attention heads; a divisor of hidden.
        intermediate: features inside the feed-forward part; 4 * hidden unless given.
    """
    batch, seq = dimension("batch", batch), dimension("seq", seq)
    layers, hidden, heads = whole("layers", layers), whole("hidden", hidden), whole("heads", heads)
    intermediate = whole("intermediate", 4 * hidden if intermediate is None else intermediate)
    if hidden % heads:
        raise ZooError(f"heads must divide hidden, but {heads} does not divide {hidden}.")
    builder = GraphBuilder("bert", rng)
    x = builder.input("input", (batch, seq, hidden))
    for i in range(layers):
        with builder.scope(f"layer{i}"):
            with builder.scope("attention"):
                attended = builder.add(_attention(builder, x, heads), x)
                x = builder.layer_norm(attended, "norm")
            with builder.scope("mlp"):
                y = _gelu(builder, builder.linear(x, intermediate, "up", gain=2.0))
                x = builder.layer_norm(builder.add(builder.linear(y, hidden, "down", gain=2.0), x), "norm")
    return builder.model(x)


def _attention(builder: GraphBuilder, x: Value, heads: int) -> Value:
    """Returns the projected self-attention of x_BSD; B batch, S seq, D hidden, H heads, K = D / H."""
    batch, seq, hidden = x.shape
    key = int(hidden) // heads
    # A 0 in a Reshape's shape keeps the dim of the input, so that one graph serves static and dynamic dims.
    split = builder.constant("constant/split_heads", np.array([0, 0, heads, key], np.int64))
    merge = builder.constant("constant/merge_heads", np.array([0, 0, hidden], np.int64))
    root = builder.constant("constant/root_of_head_size", np.array(np.sqrt(key), np.float32))

    def project(label: str, perm: tuple[int, ...]) -> Value:
        y_BSD = builder.linear(x, int(hidden), label, gain=2.0)
        y_BSHK = builder.node("Reshape", [y_BSD, split], (batch, seq, heads, key), f"{label}/reshape")
        return builder.node("Transpose", [y_BSHK], tuple(y_BSHK.shape[axis] for axis in perm), f"{label}/transpose", perm=perm)

    q_BHSK = project("query", (0, 2, 1, 3))
    k_BHKS = project("key", (0, 2, 3, 1))
    v_BHSK = project("value", (0, 2, 1, 3))
    scores_BHSS = builder.node("MatMul", [q_BHSK, k_BHKS], (batch, heads, seq, seq), "scores")
    scaled_BHSS = builder.node("Div", [scores_BHSS, root], scores_BHSS.shape, "scale")
    share_BHSS = builder.node("Softmax", [scaled_BHSS], scores_BHSS.shape, "softmax", axis=-1)
    mixed_BHSK = builder.node("MatMul", [share_BHSS, v_BHSK], q_BHSK.shape, "mix")
    mixed_BSHK = builder.node("Transpose", [mixed_BHSK], (batch, seq, heads, key), "transpose", perm=(0, 2, 1, 3))
    mixed_BSD = builder.node("Reshape", [mixed_BSHK, merge], x.shape, "reshape")
    return builder.linear(mixed_BSD, int(hidden), "output")


def _gelu(builder: GraphBuilder, x: Value) -> Value:
    """Returns x * (1 + erf(x / sqrt(2))) / 2 of x in five nodes."""
    root = builder.constant("constant/root_of_2", np.array(np.sqrt(2.0), np.float32))
    one = builder.constant("constant/one", np.array(1.0, np.float32))
    half = builder.constant("constant/half", np.array(0.5, np.float32))
    with builder.scope("gelu"):
        error = builder.node("Erf", [builder.node("Div", [x, root], x.shape, "div")], x.shape, "erf")
        raised = builder.node("Add", [error, one], x.shape, "add")
        product = builder.node("Mul", [x, raised], x.shape, "mul1")
        return builder.node("Mul", [product, half], x.shape, "mul2")
