"""Weights put together and cut apart again are the weights they were: Concat and Slice of constants, without detours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cgorl.ir.node import Attrs, Value

if TYPE_CHECKING:
    from cgorl.ir.build import Builder

STACKS = frozenset({"Concat", "Slice"})
"""Operators on constants that are seen through."""


def stacked(builder: Builder, op: str, operands: Sequence[Value | None], attrs: Attrs) -> Value | None:
    """What a Concat or a Slice (along one axis, step 1) of constants comes to without a new node; None where it takes one.

    Without this, rules that merge and split would make a new graph each time round.
    """
    constants = [v for v in operands if v is not None and builder.is_constant(v)]
    if len(constants) < len(operands) or not constants:
        return None
    if op == "Slice":
        starts, ends, axes = attrs.get("starts"), attrs.get("ends"), attrs.get("axes")
        if not all(isinstance(x, tuple) and len(x) == 1 for x in (starts, ends, axes)) or attrs.get("steps", (1,)) != (1,):
            return None
        return _cut(builder, constants[0], axes[0], starts[0], ends[0])  # type: ignore[index, arg-type]
    axis = attrs.get("axis")
    return _joined(builder, constants, axis) if isinstance(axis, int) and axis >= 0 else None


def _length(builder: Builder, value: Value, axis: int) -> int | None:
    kind = builder.type(value)
    d = kind.shape[axis] if kind is not None and kind.shape is not None and 0 <= axis < len(kind.shape) else None
    return d if isinstance(d, int) else None


def _cut(builder: Builder, value: Value, axis: int, start: int, end: int) -> Value | None:
    length, node = _length(builder, value, axis), builder.made(value)
    if length is None or not 0 <= start < end <= length:
        return None
    if end - start == length:
        return value
    if node.op == "Concat" and node.domain == "" and node.attrs.get("axis") == axis:
        at, inside = 0, list[Value]()
        for part in node.reads():
            size = _length(builder, part, axis)
            if size is None:
                return None
            if at <= start and end <= at + size:
                return _cut(builder, part, axis, start - at, end - at) or _sliced(builder, part, axis, start - at, end - at)
            if start <= at and at + size <= end:
                inside.append(part)
            elif start < at + size and at < end:
                return None  # a part is cut in two
            at += size
        return builder.node("Concat", inside, {"axis": axis})
    if (window := _window(builder, value, axis)) is not None:
        source, first, _ = window
        return _sliced(builder, source, axis, first + start, first + end)
    return None


def _sliced(builder: Builder, value: Value, axis: int, start: int, end: int) -> Value:
    return builder.node("Slice", [value], {"starts": (start,), "ends": (end,), "axes": (axis,)})


def _window(builder: Builder, value: Value, axis: int) -> tuple[Value, int, int] | None:
    """(source, start, end) where `value` is a Slice of a constant along `axis` alone."""
    node = builder.made(value)
    if node.op != "Slice" or node.domain != "" or len(node.inputs) < 4 or any(v is None for v in node.inputs):
        return None
    source, *bounds = node.reads()
    numbers = [t.array().reshape(-1).tolist() if (t := builder.tensor(v)) is not None else [] for v in bounds]
    if any(len(n) != 1 for n in numbers) or numbers[2][0] != axis or (len(numbers) > 3 and numbers[3][0] != 1):
        return None
    start, end = numbers[0][0], numbers[1][0]
    return (source, start, end) if 0 <= start < end else None


def _joined(builder: Builder, values: Sequence[Value], axis: int) -> Value | None:
    """The flat form of a Concat: of nested ones their parts, of adjacent slices of one constant the slice of both."""
    flat: list[Value] = []
    for v in values:
        node = builder.made(v)
        nested = node.op == "Concat" and node.domain == "" and node.attrs.get("axis") == axis
        flat.extend(node.reads() if nested else (v,))
    done: list[Value] = []
    k = 0
    while k < len(flat):
        window, n = _window(builder, flat[k], axis), k + 1
        if window is not None:
            source, start, end = window
            while n < len(flat) and (after := _window(builder, flat[n], axis)) is not None and after[:2] == (source, end):
                end, n = after[2], n + 1
            if n > k + 1:
                done.append(_cut(builder, source, axis, start, end) or _sliced(builder, source, axis, start, end))
                k = n
                continue
        done.append(flat[k])
        k += 1
    if len(done) == 1:
        return done[0]
    return None if done == list(values) else builder.node("Concat", done, {"axis": axis})
