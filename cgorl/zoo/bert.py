"""The BERT encoder, as published and as TASO evaluates it."""

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder
from cgorl.zoo.parameters import ZooError, choice, dimension, whole
from cgorl.zoo.transformer import attention, bare_attention, check_heads, gelu

# form -> seq, layers, hidden, heads
_SIZES = {"export": (128, 4, 512, 8), "taso": (64, 8, 1024, 16)}


def bert(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    seq: int | str | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    intermediate: int | None = None,
) -> onnx.ModelProto:
    """Returns a BERT encoder (Devlin et al., 2018) on embedded tokens, input (batch, seq, hidden), unmasked.

    Args:
        rng: source of the weights.
        form: "export" is what an exporter writes: projections as MatMul + Add, softmax, GELU by its Erf parts,
            LayerNormalization as one node. "taso" is TASO's examples/bert.py with its attention alive (keys transposed, and
            read by the output projection): a relu, then layers of bare attention without bias, scaling, softmax, layer norm,
            residual or feed-forward; no batch, input (seq, hidden); 14 operators a layer, 113 in all. Such a layer is a
            cubic form of its input, so that after more than about four the result of most inputs vanishes in float32.
        batch: a number, or a symbol for a dynamic batch; 1 in "taso".
        seq: tokens in a sentence, 128 or TASO's 64; a number, or a symbol, which "taso" does not take.
        layers: how many encoder layers, 4 or TASO's 8.
        hidden: features of a token, 512 or TASO's 1024. The default is BERT-small (12.6 M parameters, 50 MB); BERT-base is
            layers=12 hidden=768 heads=12 (85 M, 340 MB).
        heads: attention heads, 8 or TASO's 16; a divisor of hidden.
        intermediate: features inside the feed-forward part, which "taso" lacks; 4 * hidden unless given.
    """
    taso = choice("form", form, tuple(_SIZES)) == "taso"
    usual = _SIZES[form]
    batch, seq = dimension("batch", batch), dimension("seq", usual[0] if seq is None else seq)
    layers, hidden, heads = (whole(*pair) for pair in _given(("layers", layers), ("hidden", hidden), ("heads", heads), usual=usual[1:]))
    intermediate = whole("intermediate", 4 * hidden if intermediate is None else intermediate)
    check_heads(hidden, heads)
    if taso:
        if batch != 1:
            raise ZooError(f"batch must be 1 in form 'taso', which has none, not {batch!r}.")
        return _bare(rng, whole("seq", seq), layers, hidden, heads)
    builder = GraphBuilder("bert", rng)
    x = builder.input("input", (batch, seq, hidden))
    for i in range(layers):
        with builder.scope(f"layer{i}"):
            with builder.scope("attention"):
                attended = builder.add(attention(builder, x, heads), x)
                x = builder.layer_norm(attended, "norm")
            with builder.scope("mlp"):
                y = gelu(builder, builder.linear(x, intermediate, "up", gain=2.0))
                x = builder.layer_norm(builder.add(builder.linear(y, hidden, "down", gain=2.0), x), "norm")
    return builder.model(x)


def _given(*pairs: tuple[str, int | None], usual: tuple[int, ...]) -> list[tuple[str, int]]:
    """Returns the named values, each with what is usual where it is None."""
    return [(name, default if value is None else value) for (name, value), default in zip(pairs, usual, strict=True)]


def _bare(rng: np.random.Generator, seq: int, layers: int, hidden: int, heads: int) -> onnx.ModelProto:
    builder = GraphBuilder("bert", rng)
    x = builder.relu(builder.input("input", (seq, hidden)))
    for i in range(layers):
        with builder.scope(f"layer{i}/attention"):
            x = bare_attention(builder, x, heads)
    return builder.model(x)
