"""TASO's rule file (graph_subst.pb), read: a protobuf of operators, pattern variables and outputs that stand for one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cgorl.rules.pattern import RuleError

OPERATORS = {3: "Conv", 8: "Relu", 12: "Concat", 13: "Split", 16: "Add", 17: "Mul", 18: "MatMul"}
"""TASO's operator numbers, those that its rules use, as ONNX operators."""

_PARAMETERS = (
    *("OP_TYPE", "NUM_INPUTS", "NUM_OUTPUTS", "GROUP", "KERNEL_H", "KERNEL_W", "STRIDE_H", "STRIDE_W", "PAD", "ACTI", "NUMDIM", "AXIS"),
    *("PERM", "OUTSHUFFLE", "MERGE_GCONV_COUNT", "AXES", "KEEP_DIMS", "EPSILON"),
)
_NEEDED = {
    "Conv": {"STRIDE_H", "STRIDE_W", "PAD", "ACTI"},
    "Concat": {"AXIS", "NUMDIM"},
    "Split": {"AXIS", "NUM_OUTPUTS"},
    "MatMul": {"ACTI"},
}
_ARITY = {"Relu": 1, "Split": 1}

Operand = tuple[int, int]
"""(operator, its output) of the same side; a negative operator is a pattern variable."""


@dataclass(frozen=True, slots=True)
class TasoOp:
    """One operator of a side: ONNX name, operands, and TASO's parameters by name."""

    op: str
    inputs: tuple[Operand, ...]
    parameters: dict[str, int]


@dataclass(frozen=True, slots=True)
class TasoRule:
    """Both sides of a rule, operands first, and which outputs of the source become which of the target."""

    source: tuple[TasoOp, ...]
    target: tuple[TasoOp, ...]
    mapped: tuple[tuple[Operand, Operand], ...]


def read_rule_file(path: str | Path) -> tuple[TasoRule, ...]:
    """The rules of a file in TASO's format. Raises RuleError."""
    try:
        data = Path(path).read_bytes()
    except OSError as e:
        raise RuleError(f"cannot read the rule file '{path}': {e.strerror}") from None
    try:
        rules = tuple(_rule(body) for key, body in _fields(data) if key == 1 and isinstance(body, bytes))
        if not rules:
            raise ValueError("it holds no rule")
    except ValueError as e:
        raise RuleError(f"'{path}' is not a rule file of TASO, or not all of one: {e}") from None
    return rules


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and contents of a protobuf message: whole numbers, and bytes for what has a length. Raises ValueError."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data):
                raise ValueError("it ends in the middle of a number")
            byte = data[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value - (1 << 64) if value >> 63 else value
            if shift > 63:
                raise ValueError("a number has no end")

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            if length < 0 or at + length > len(data):
                raise ValueError("it ends in the middle of a message")
            yield key >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError(f"it has a field of kind {key & 7}")


def _numbers(data: int | bytes, count: int) -> tuple[int, ...]:
    """Fields 1 to `count`, whole numbers, of a message; one left out is 0."""
    if isinstance(data, int):
        raise ValueError("there is a number where a message should be")
    found = dict(_fields(data))
    values = [found.get(k, 0) for k in range(1, count + 1)]
    if not all(isinstance(v, int) for v in values):
        raise ValueError("there is a message where a number should be")
    return tuple(v for v in values if isinstance(v, int))


def _rule(data: bytes) -> TasoRule:
    sides: dict[int, list[TasoOp]] = {1: [], 2: []}
    mapped: list[tuple[Operand, Operand]] = []
    for key, body in _fields(data):
        if key in sides and isinstance(body, bytes):
            sides[key].append(_operator(body, len(sides[key])))
        elif key == 3:
            a, b, c, d = _numbers(body, 4)
            mapped.append(((a, c), (b, d)))
        else:
            raise ValueError(f"a rule has a field {key}")
    for (a, _), (b, _) in mapped:
        if not (0 <= a < len(sides[1]) and 0 <= b < len(sides[2])):
            raise ValueError("a rule speaks of an operator that it does not have")
    if not mapped:
        raise ValueError("a rule has no result")
    return TasoRule(tuple(sides[1]), tuple(sides[2]), tuple(mapped))


def _operator(data: bytes, place: int) -> TasoOp:
    kind, inputs, parameters = -1, [], {}
    for key, body in _fields(data):
        if key == 1 and isinstance(body, int):
            kind = body
        elif key == 2:
            inputs.append(_numbers(body, 2))
        elif key == 3:
            name, value = _numbers(body, 2)
            if not 0 <= name < len(_PARAMETERS):
                raise ValueError(f"an operator has a parameter {name}")
            parameters[_PARAMETERS[name]] = value
    if kind not in OPERATORS:
        raise ValueError(f"operator {kind} is none of {', '.join(sorted(OPERATORS.values()))}")
    op = OPERATORS[kind]
    if len(inputs) != _ARITY.get(op, 2) or not _NEEDED.get(op, set()) <= parameters.keys():
        raise ValueError(f"a {op} lacks operands or parameters")
    if any(i >= place for i, _ in inputs):
        raise ValueError(f"a {op} stands before its operand")
    return TasoOp(op, tuple((i, port) for i, port in inputs), parameters)
