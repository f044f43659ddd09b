"""Pairs: blocks before and after a substitution, of the sizes that networks have, on which the sign of a predicted gain is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import onnx

from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value

Draw = Callable[[Sketch], Value | tuple[Value, ...]]


class Pair(NamedTuple):
    """A substitution by its name, and how to draw the block before and after it."""

    name: str
    before: Draw
    after: Draw


def build(draw: Draw, name: str, seed: int = 0) -> onnx.ModelProto:
    """The block as a model."""
    s = Sketch(name, np.random.default_rng(seed))
    made = draw(s)
    return s.model(*(made if isinstance(made, tuple) and not isinstance(made, Value) else (made,)))


def pairs() -> Iterator[Pair]:
    """All of them."""
    yield from _sums()
    yield from _groups()
    yield from _products()
    yield from _pools()
    yield from _chains()
    yield from _siblings()


def _sums() -> Iterator[Pair]:
    for c, side in ((64, 56), (256, 14)):
        yield Pair(
            f"two 3x3 convs of {c}x{side}x{side} summed -> one",
            lambda s, c=c, side=side: s.apply("Add", s.conv(x := s.input(1, c, side, side), c, 3), s.conv(x, c, 3)),  # type: ignore[misc]
            lambda s, c=c, side=side: s.conv(s.input(1, c, side, side), c, 3),  # type: ignore[misc]
        )
    for c, side in ((48, 56), (96, 28), (192, 14)):

        def repvgg(s: Sketch, c: int = c, side: int = side) -> Value:
            x = s.input(1, c, side, side)
            both = s.apply("Add", s.norm(s.conv(x, c, 3, bias=False)), s.norm(s.conv(x, c, bias=False)))
            return s.apply("Relu", s.apply("Add", both, s.norm(x)))

        yield Pair(
            f"RepVGG block {c}x{side}x{side} -> one conv",
            repvgg,
            lambda s, c=c, side=side: s.apply("Relu", s.conv(s.input(1, c, side, side), c, 3)),  # type: ignore[misc]
        )


def _groups() -> Iterator[Pair]:
    for c, side, ways in ((128, 56, (16, 8, 1)), (256, 28, (16, 4)), (512, 14, (16, 8)), (1024, 7, (16, 8))):
        for g in ways:
            yield Pair(
                f"grouped conv {c}x{side}x{side}, 32 groups -> {g}",
                lambda s, c=c, side=side: s.conv(s.input(1, c, side, side), c, 3, group=32),  # type: ignore[misc]
                lambda s, c=c, side=side, g=g: s.conv(s.input(1, c, side, side), c, 3, group=g),  # type: ignore[misc]
            )


def _products() -> Iterator[Pair]:
    yield Pair(
        "conv1x1 of conv1x1 -> one",
        lambda s: s.conv(s.conv(s.input(1, 128, 28, 28), 128), 128),
        lambda s: s.conv(s.input(1, 128, 28, 28), 128),
    )
    for rows, c in ((128, 512), (16, 256)):
        yield Pair(
            f"(xA)B -> x(AB), {rows}x{c}",
            lambda s, rows=rows, c=c: s.matmul(s.matmul(s.input(rows, c), c), c),  # type: ignore[misc]
            lambda s, rows=rows, c=c: s.matmul(s.input(rows, c), c),  # type: ignore[misc]
        )
        yield Pair(
            f"xW + xV -> x(W + V), {rows}x{c}",
            lambda s, rows=rows, c=c: s.apply("Add", s.matmul(x := s.input(rows, c), c), s.matmul(x, c)),  # type: ignore[misc]
            lambda s, rows=rows, c=c: s.matmul(s.input(rows, c), c),  # type: ignore[misc]
        )
        yield Pair(
            f"LoRA xW + (xA)B -> one, {rows}x{c}",
            lambda s, rows=rows, c=c: s.apply("Add", s.matmul(x := s.input(rows, c), c), s.matmul(s.matmul(x, 8), c)),  # type: ignore[misc]
            lambda s, rows=rows, c=c: s.matmul(s.input(rows, c), c),  # type: ignore[misc]
        )

    def attention(first: bool) -> Draw:
        def draw(s: Sketch) -> Value:
            q, k, v = s.input(8, 256, 32), s.input(8, 32, 256), s.input(8, 256, 32)
            return s.apply("MatMul", s.apply("MatMul", q, k), v) if first else s.apply("MatMul", q, s.apply("MatMul", k, v))

        return draw

    yield Pair("(QK)V -> Q(KV)", attention(True), attention(False))

    def heads(x: Value, s: Sketch, merged: bool, parts: int, c: int) -> tuple[Value, ...]:
        if merged:
            return s.split(s.apply("Add", s.matmul(x, parts * c), s.normal(parts * c)), [c] * parts, axis=-1)
        return tuple(s.apply("Add", s.matmul(x, c), s.normal(c)) for _ in range(parts))

    yield Pair(
        "Q, K, V merged + Split, 128x384",
        lambda s: heads(s.input(1, 128, 384), s, False, 3, 384),
        lambda s: heads(s.input(1, 128, 384), s, True, 3, 384),
    )
    yield Pair(
        "gate and up merged + Split, 64x256",
        lambda s: s.apply("Mul", *heads(s.input(64, 256), s, False, 2, 1024)),
        lambda s: s.apply("Mul", *heads(s.input(64, 256), s, True, 2, 1024)),
    )


def _pools() -> Iterator[Pair]:
    def pool(s: Sketch, x: Value, k: int, op: str = "MaxPool") -> Value:
        more = {"count_include_pad": 1} if op == "AveragePool" else {}
        return s.apply(op, x, kernel_shape=[k, k], pads=[k // 2] * 4, strides=[1, 1], **more)

    for c, side in ((128, 20), (256, 13)):

        def wide(s: Sketch, c: int = c, side: int = side) -> Value:
            x = s.input(1, c, side, side)
            return s.concat(x, *(pool(s, x, k) for k in (5, 9, 13)))

        def chain(s: Sketch, c: int = c, side: int = side) -> Value:
            a = pool(s, x := s.input(1, c, side, side), 5)
            return s.concat(x, a, b := pool(s, a, 5), pool(s, b, 5))

        yield Pair(f"MaxPool 5/9/13 of {c}x{side}x{side} -> chain of 5s", wide, chain)
    depthwise = {"group": 96}
    yield Pair(
        "average pool + depthwise 3x3 -> depthwise 3x3",
        lambda s: s.apply("Add", pool(s, x := s.input(1, 96, 28, 28), 3, "AveragePool"), s.conv(x, 96, 3, **depthwise)),  # type: ignore[arg-type]
        lambda s: s.conv(s.input(1, 96, 28, 28), 96, 3, group=96),
    )
    yield Pair(
        "depthwise 5x5 + 3x3 -> depthwise 5x5",
        lambda s: s.apply("Add", s.conv(x := s.input(1, 96, 28, 28), 96, 5, group=96), s.conv(x, 96, 3, group=96)),
        lambda s: s.conv(s.input(1, 96, 28, 28), 96, 5, group=96),
    )
    for group, what in ((64, "depthwise"), (1, "dense")):
        yield Pair(
            f"average pool 3x3 of 64x28x28 -> {what} conv",
            lambda s: pool(s, s.input(1, 64, 28, 28), 3, "AveragePool"),
            lambda s, group=group: s.conv(s.input(1, 64, 28, 28), 64, 3, group=group, bias=False),  # type: ignore[misc]
        )


def _chains() -> Iterator[Pair]:
    def affine(steps: int) -> Draw:
        def draw(s: Sketch) -> Value:
            x = s.input(1, 64, 56, 56)
            for _ in range(steps):
                x = s.apply("Add", s.apply("Mul", x, s.normal(64, 1, 1)), s.normal(64, 1, 1))
            return x

        return draw

    yield Pair("two affine steps per channel -> one", affine(2), affine(1))

    def parts(s: Sketch) -> Value:
        x = s.input(1, 64, 56, 56)
        return s.apply("Div", s.apply("Mul", x, s.apply("Clip", s.apply("Add", x, 3.0), 0.0, 6.0)), 6.0)

    yield Pair("hardswish from parts -> HardSwish", parts, lambda s: s.apply("HardSwish", s.input(1, 64, 56, 56)))
    yield Pair(
        "batchnorm before a 1x1 conv -> folded",
        lambda s: s.conv(s.norm(s.input(1, 128, 28, 28)), 128),
        lambda s: s.conv(s.input(1, 128, 28, 28), 128),
    )
    yield Pair(
        "conv + batchnorm -> folded",
        lambda s: s.norm(s.conv(s.input(1, 64, 56, 56), 64, 3, bias=False)),
        lambda s: s.conv(s.input(1, 64, 56, 56), 64, 3),
    )
    yield Pair(
        "pad + conv -> padded conv",
        lambda s: s.conv(s.apply("Pad", s.input(1, 64, 28, 28), [0, 0, 1, 1, 0, 0, 1, 1]), 64, 3, pad=0),
        lambda s: s.conv(s.input(1, 64, 28, 28), 64, 3),
    )


def _siblings() -> Iterator[Pair]:
    for c, side, widths in ((192, 28, (64, 96, 16)), (512, 14, (112, 144, 32)), (288, 35, (64, 64, 48))):

        def apart(s: Sketch, c: int = c, side: int = side, widths: tuple[int, ...] = widths) -> tuple[Value, ...]:
            x = s.input(1, c, side, side)
            return tuple(s.apply("Relu", s.conv(x, n)) for n in widths)

        def merged(s: Sketch, c: int = c, side: int = side, widths: tuple[int, ...] = widths) -> tuple[Value, ...]:
            return s.split(s.apply("Relu", s.conv(s.input(1, c, side, side), sum(widths))), widths)

        yield Pair(f"sibling 1x1 convs of {c}x{side}x{side} merged + Split", apart, merged)
    for c, side, wide in ((16, 55, 64), (48, 27, 192)):

        def fire(s: Sketch, c: int = c, side: int = side, wide: int = wide) -> Value:
            x = s.input(1, c, side, side)
            return s.concat(s.apply("Relu", s.conv(x, wide)), s.apply("Relu", s.conv(x, wide, 3)))

        yield Pair(
            f"fire {c}x{side}x{side}: 1x1 enlarged and merged with 3x3",
            fire,
            lambda s, c=c, side=side, wide=wide: s.apply("Relu", s.conv(s.input(1, c, side, side), 2 * wide, 3)),  # type: ignore[misc]
        )
    for c, side in ((128, 28), (64, 56)):

        def joined(s: Sketch, c: int = c, side: int = side) -> Value:
            a, b = s.conv(s.input(1, c, side, side), c, 3), s.conv(s.input(1, c, side, side), c, 3)
            return s.conv(s.concat(a, b), c)

        def summed(s: Sketch, c: int = c, side: int = side) -> Value:
            a, b = s.conv(s.input(1, c, side, side), c, 3), s.conv(s.input(1, c, side, side), c, 3)
            return s.apply("Add", s.conv(a, c), s.conv(b, c, bias=False))

        yield Pair(f"conv1x1 of a concat of {c}x{side}x{side} -> sum of two", joined, summed)

    def separable(s: Sketch) -> Value:
        a, b = (s.conv(s.conv(s.input(1, 64, 28, 28), 64, 3, group=64), 64) for _ in range(2))
        return s.concat(a, b)

    yield Pair(
        "separable pairs -> one over their concat",
        separable,
        lambda s: s.conv(s.conv(s.concat(s.input(1, 64, 28, 28), s.input(1, 64, 28, 28)), 128, 3, group=128), 128, group=2),
    )
