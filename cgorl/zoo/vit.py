"""The vision transformer, as published and as X-RLflow evaluates it."""

import numpy as np
import onnx
from numpy.typing import NDArray

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import ZooError, choice, dimension, whole
from cgorl.zoo.transformer import attention, bare_attention, check_heads, gelu

# form -> image, hidden, heads
_SIZES = {"export": (224, 192, 3), "taso": (128, 768, 12)}


def vit(
    rng: np.random.Generator,
    *,
    form: str = "export",
    batch: int | str = 1,
    image: int | None = None,
    patch: int = 16,
    layers: int = 12,
    hidden: int | None = None,
    heads: int | None = None,
    intermediate: int | None = None,
    classes: int = 1000,
) -> onnx.ModelProto:
    """Returns a vision transformer (Dosovitskiy et al., 2021), input (batch, 3, image, image).

    Args:
        rng: source of the weights.
        form: "export" is what an exporter writes of the plain ViT of Beyer et al. (2022): a conv cuts the patches, positions
            are sines, layer norm before each part, softmax, GELU by its Erf parts, the mean over tokens, classifier. "taso"
            is X-RLflow's graph in TASO's operators: embedded patches as input ((image / patch)^2, hidden), a relu, then
            layers of bare attention and two matmuls, each added to what it reads, without batch, bias, softmax or layer
            norm (and nothing between the two matmuls); 18 operators a layer, 217 in all.
        batch: a number or a symbol; 1 in "taso".
        image: side of the input, 224 or X-RLflow's 128; a multiple of patch.
        patch: side of a patch.
        layers: how many encoder layers.
        hidden: features of a token, 192 (ViT-Tiny, 5.7 M parameters) or X-RLflow's 768 (ViT-Base).
        heads: attention heads, 3 or X-RLflow's 12; a divisor of hidden.
        intermediate: features inside the feed-forward part; 4 * hidden unless given.
        classes: outputs of the classifier, which "taso" lacks.
    """
    taso = choice("form", form, tuple(_SIZES)) == "taso"
    usual = _SIZES[form]
    batch, side, patch = dimension("batch", batch), whole("image", usual[0] if image is None else image), whole("patch", patch)
    hidden, heads = whole("hidden", usual[1] if hidden is None else hidden), whole("heads", usual[2] if heads is None else heads)
    intermediate = whole("intermediate", 4 * hidden if intermediate is None else intermediate)
    layers, classes = whole("layers", layers), whole("classes", classes)
    if side % patch:
        raise ZooError(f"image must be a multiple of patch, but {side} is none of {patch}.")
    check_heads(hidden, heads)
    builder, tokens = GraphBuilder("vit", rng), (side // patch) ** 2
    if taso:
        if batch != 1:
            raise ZooError(f"batch must be 1 in form 'taso', which has none, not {batch!r}.")
        x = builder.relu(builder.input("input", (tokens, hidden)))
        for i in range(layers):
            with builder.scope(f"layer{i}"):
                x = _bare(builder, x, heads, intermediate)
        return builder.model(x)
    x = _embedded(builder, builder.input("input", (batch, 3, side, side)), patch, hidden)
    for i in range(layers):
        with builder.scope(f"layer{i}"):
            x = _layer(builder, x, heads, intermediate)
    x = builder.layer_norm(x, "norm", epsilon=1e-6)
    pooled = builder.node("ReduceMean", [x], (batch, hidden), "pool", axes=[1], keepdims=0)
    # A mean over many tokens has lost most of its square: the classifier makes up for it.
    return builder.model(builder.linear(pooled, classes, "head", gain=4.0))


def _embedded(builder: GraphBuilder, image: Value, patch: int, hidden: int) -> Value:
    """Returns the tokens (N, S, hidden) of image (N, 3, H, W), positions added."""
    with builder.scope("embed"):
        x = builder.conv(image, hidden, patch, stride=patch, same=False, normed=False, bias=True)
        batch, _, height, width = x.shape
        tokens = int(height) * int(width)
        shape = builder.constant("constant/flat", np.array([0, hidden, tokens], np.int64))
        x = builder.node("Reshape", [x, shape], (batch, hidden, tokens), "reshape")
        x = builder.node("Transpose", [x], (batch, tokens, hidden), "transpose", perm=(0, 2, 1))
        positions = builder.constant("constant/positions", _positions(int(height), int(width), hidden))
        return builder.node("Add", [x, positions], x.shape, "add")


def _positions(height: int, width: int, hidden: int) -> NDArray[np.float32]:
    """Returns sines and cosines of both coordinates of a patch at falling frequencies, (height * width, hidden)."""
    features = np.arange(hidden)
    frequency = 10000.0 ** -(features // 4 / max(1, (hidden - 1) // 4))
    rows, columns = (a.reshape(-1, 1) for a in np.mgrid[:height, :width])
    angle = np.where(features % 2, rows, columns) * frequency
    return np.asarray(np.where(features % 4 < 2, np.sin(angle), np.cos(angle)), np.float32)


def _layer(builder: GraphBuilder, x: Value, heads: int, intermediate: int) -> Value:
    """Returns one pre-norm encoder layer of x (N, S, D); each part adds little to the mean square."""
    with builder.scope("attention"):
        x = builder.add(attention(builder, builder.layer_norm(x, "norm", epsilon=1e-6), heads, gain=0.5), x)
    with builder.scope("mlp"):
        y = builder.linear(builder.layer_norm(x, "norm", epsilon=1e-6), intermediate, "up", gain=2.0)
        return builder.add(builder.linear(gelu(builder, y), int(x.shape[2]), "down", gain=0.3), x)


def _bare(builder: GraphBuilder, x: Value, heads: int, intermediate: int) -> Value:
    """Returns one of X-RLflow's layers of x (S, D)."""
    with builder.scope("attention"):
        x = builder.add(bare_attention(builder, x, heads, gain=0.01), x)
    with builder.scope("mlp"):
        up = builder.matmul(x, intermediate, "up/matmul")
        return builder.add(builder.matmul(up, int(x.shape[1]), "down/matmul", gain=0.03), x)
