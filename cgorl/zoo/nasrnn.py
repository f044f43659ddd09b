"""NasRNN, as TASO evaluates it."""

from itertools import count

import numpy as np
import onnx

from cgorl.zoo.builder import GraphBuilder, Value
from cgorl.zoo.parameters import dimension, whole


def nasrnn(rng: np.random.Generator, *, batch: int | str = 1, length: int = 5, hidden: int = 512) -> onnx.ModelProto:
    """Returns NasRNN (Zoph and Le, 2017) as in TASO's examples/nasrnn.py, `length` inputs (batch, hidden).

    One cell a step, each with 16 weights of its own, since TASO shares none; the state before the first step is a weight
    (1, hidden), so that 8 products of the first cell rest on weights alone. 46 operators a cell.

    Args:
        rng: source of the weights.
        batch: a number or a symbol.
        length: how many steps.
        hidden: features of an input and of the state.
    """
    builder = GraphBuilder("nasrnn", rng)
    batch, length, hidden = dimension("batch", batch), whole("length", length), whole("hidden", hidden)
    inputs = [builder.input(f"input{i}", (batch, hidden)) for i in range(length)]
    state = builder.weight("state", (1, hidden), std=0.12)
    for i, x in enumerate(inputs):
        with builder.scope(f"cell{i}"):
            state = _cell(builder, x, state)
    return builder.model(state)


def _cell(builder: GraphBuilder, x: Value, state: Value) -> Value:
    """Returns the next state (N, hidden)."""
    numbers = count()
    # The gates leave the state a mean square of about 1/70 (at most 1), and both are to count in the sums.
    sides = (("input", x, 2.5), ("state", state, 100.0))

    def sum_of_products(i: int) -> Value:
        products = [builder.matmul(v, int(x.shape[-1]), f"{side}{i}", gain=gain) for side, v, gain in sides]
        return builder.node("Add", products, x.shape, f"sum{i}")

    def unary(op: str, value: Value) -> Value:
        return builder.node(op, [value], x.shape, f"{op.lower()}{next(numbers)}")

    def join(op: str, a: Value, b: Value) -> Value:
        return builder.node(op, [a, b], x.shape, f"{op.lower()}{next(numbers)}")

    t = [sum_of_products(i) for i in range(8)]
    m0 = join("Add", unary("Relu", t[0]), unary("Sigmoid", t[3]))
    m1 = join("Add", unary("Sigmoid", t[1]), unary("Tanh", t[2]))
    m2 = join("Mul", unary("Sigmoid", t[4]), unary("Tanh", t[5]))
    m3 = join("Mul", unary("Sigmoid", t[6]), unary("Relu", t[7]))
    m4 = join("Add", unary("Sigmoid", m1), unary("Tanh", m2))
    m5 = join("Mul", unary("Tanh", m0), unary("Tanh", m3))
    m6 = join("Mul", unary("Tanh", m4), unary("Tanh", m5))
    return unary("Tanh", m6)
