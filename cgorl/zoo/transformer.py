"""What transformers are made of: multi-head attention, complete or bare, and GELU as exporters write it."""

import numpy as np

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import ZooError


def check_heads(hidden: int, heads: int) -> None:
    """Raises ZooError unless the heads share the features of a token."""
    if hidden % heads:
        raise ZooError(f"heads must divide hidden, but {heads} does not divide {hidden}.")


def attention(builder: GraphBuilder, x: Value, heads: int, *, gain: float = 1.0) -> Value:
    """Returns the projected self-attention of x_BSD; B batch, S seq, D hidden, H heads, K = D / H.

    Args:
        builder: what the nodes are added to.
        x: tokens.
        heads: a divisor of D.
        gain: mean square of what the output projection gives, relative to what it reads.
    """
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
    return builder.linear(mixed_BSD, int(hidden), "output", gain=gain)


def bare_attention(builder: GraphBuilder, x: Value, heads: int, *, gain: float = 1.0) -> Value:
    """Returns the projected self-attention of x_SD as TASO's examples have it: no batch, bias, scaling or softmax.

    14 operators: 6 matmul, 4 reshape, 4 transpose. Unlike the examples in Python, the keys are transposed (their dims may
    differ) and the output projection reads the attention (theirs reads x, which leaves the attention dead).

    Args:
        builder: what the nodes are added to.
        x: tokens.
        heads: a divisor of D.
        gain: multiplies the mean square of the result, which else stays near 1 / 2 if that of x is there.
    """
    seq, hidden = int(x.shape[0]), int(x.shape[1])
    key = hidden // heads
    split = builder.constant("constant/split_heads", np.array([seq, heads, key], np.int64))
    merge = builder.constant("constant/merge_heads", np.array([seq, hidden], np.int64))
    # Without a softmax a sum over S keys of K features each remains: (S K)^(-1/3) in each of its three factors undoes it,
    # and 20 / S what tokens have in common (a relu leaves a mean), which adds up once more.
    share, common = (seq * key) ** (-1 / 3), 20 / seq

    def project(label: str, perm: tuple[int, ...]) -> Value:
        y_SD = builder.matmul(x, hidden, f"{label}/matmul", gain=share)
        y_SHK = builder.node("Reshape", [y_SD, split], (seq, heads, key), f"{label}/reshape")
        return builder.node("Transpose", [y_SHK], tuple(y_SHK.shape[axis] for axis in perm), f"{label}/transpose", perm=perm)

    q_HSK, k_HKS, v_HSK = project("query", (1, 0, 2)), project("key", (1, 2, 0)), project("value", (1, 0, 2))
    scores_HSS = builder.node("MatMul", [q_HSK, k_HKS], (heads, seq, seq), "scores")
    mixed_HSK = builder.node("MatMul", [scores_HSS, v_HSK], q_HSK.shape, "mix")
    mixed_SHK = builder.node("Transpose", [mixed_HSK], (seq, heads, key), "transpose", perm=(1, 0, 2))
    mixed_SD = builder.node("Reshape", [mixed_SHK, merge], x.shape, "reshape")
    return builder.matmul(mixed_SD, hidden, "output/matmul", gain=gain * common)


def gelu(builder: GraphBuilder, x: Value) -> Value:
    """Returns x * (1 + erf(x / sqrt(2))) / 2 of x in five nodes."""
    root = builder.constant("constant/root_of_2", np.array(np.sqrt(2.0), np.float32))
    one = builder.constant("constant/one", np.array(1.0, np.float32))
    half = builder.constant("constant/half", np.array(0.5, np.float32))
    with builder.scope("gelu"):
        error = builder.node("Erf", [builder.node("Div", [x, root], x.shape, "div")], x.shape, "erf")
        raised = builder.node("Add", [error, one], x.shape, "add")
        product = builder.node("Mul", [x, raised], x.shape, "mul1")
        return builder.node("Mul", [product, half], x.shape, "mul2")
