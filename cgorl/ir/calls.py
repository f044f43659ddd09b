"""Calls: how large a model's own functions are once each call is written out, which onnx's inference and onnxruntime do."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from cgorl.ir.graph import GraphError
from cgorl.ir.ops import bodies

MOST = 1_000_000
"""So many nodes a model may come to: functions that each call the next one twice come to any number in a few lines."""

_Key = tuple[str, str]


def check_calls(model: onnx.ModelProto) -> None:
    """Raises GraphError for functions that call themselves, which ONNX forbids, or come to more than `MOST` nodes."""
    functions = {_key(f.domain, f.name): f for f in model.functions}
    sizes: dict[_Key, int] = {}
    for key in functions:
        _measure(key, functions, sizes)
    if functions and _written_out(model.graph.node, sizes) > MOST:
        raise GraphError(f"the model's functions call each other so often that they come to more than {MOST:,} nodes when written out")


def _measure(first: _Key, functions: Mapping[_Key, onnx.FunctionProto], sizes: dict[_Key, int]) -> None:
    """Sizes of a function and of those that it calls; by hand, since a chain of calls may be longer than Python's stack."""
    stack, open_ = [first], set[_Key]()
    while stack:
        key = stack[-1]
        missing = [k for k in _called(functions[key].node) if k in functions and k not in sizes]
        if key in sizes or not missing:
            sizes.setdefault(key, min(_written_out(functions[key].node, sizes), MOST + 1))
            open_.discard(key)
            stack.pop()
            continue
        open_.add(key)
        if any(k in open_ for k in missing):
            raise GraphError(f"function '{key[1]}' calls itself, which ONNX forbids")
        stack.extend(missing)


def _called(nodes: object) -> list[_Key]:
    found = []
    for node in nodes:  # type: ignore[attr-defined]
        found.append(_key(node.domain, node.op_type))
        for body in bodies(node):
            found += _called(body.node)
    return found


def _written_out(nodes: object, sizes: Mapping[_Key, int]) -> int:
    return sum(sizes.get(k, 1) for k in _called(nodes))


def _key(domain: str, name: str) -> _Key:
    return ("" if domain == "ai.onnx" else domain, name)
