"""Blocks that win on onnxruntime, found in networks that hold them: default rules and search, the CPU's price list, judged by structure."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cgorl import config
from cgorl.certificate.equivalence import compare
from cgorl.ir.forms import form
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.search.searcher import Budget
from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value


def pyramid(s: Sketch, x: Value) -> Value:
    """Pools of 5, 9 and 13 beside one another."""
    pools = [s.apply("MaxPool", x, kernel_shape=[k, k], pads=[k // 2] * 4, strides=[1, 1]) for k in (5, 9, 13)]
    return s.conv(s.concat(x, *pools), 64)


def halves(s: Sketch, x: Value) -> Value:
    """A convolution whose result is split."""
    a, b = s.split(s.conv(x, 128), [64, 64])
    return s.apply("Mul", s.apply("Relu", a), b)


def affine_chain(s: Sketch, x: Value) -> Value:
    """Scales and shifts by channel one behind the other, outside a convolution's reach."""
    for op in ("Mul", "Add", "Mul", "Add"):
        x = s.apply(op, x, s.uniform(1, 64, 1, 1))
    return s.apply("Relu", x)


def squeeze(s: Sketch, x: Value) -> Value:
    """A convolution to few channels over what two others give, joined: fire modules in a row."""
    parts = [s.apply("Relu", s.conv(x, 64, kernel)) for kernel in (1, 3)]
    return s.apply("Relu", s.conv(s.apply("Relu", s.conv(s.concat(*parts), 16)), 64))


def plain_attention(s: Sketch, x: Value) -> Value:
    """(Q K) V with nothing between, over all places of a map."""
    rows = s.transpose(s.apply("Reshape", x, [1, 64, 784]), 0, 2, 1)
    query, key, value = (s.matmul(rows, 64) for _ in range(3))
    mixed = s.apply("MatMul", s.apply("MatMul", query, s.transpose(key, 0, 2, 1)), value)
    return s.apply("Reshape", s.transpose(mixed, 0, 2, 1), [1, 64, 28, 28])


BLOCKS: dict[str, Callable[[Sketch, Value], Value]] = {f.__name__: f for f in (pyramid, halves, affine_chain, squeeze, plain_attention)}


def network(*names: str) -> Graph:
    """The blocks one behind the other, each behind a 3x3 convolution and a relu."""
    s = Sketch("_".join(names), np.random.default_rng(0))
    x = s.input(1, 64, 28, 28)
    for name in names:
        x = BLOCKS[name](s, s.apply("Relu", s.conv(x, 64, 3)))
    return simplify(from_proto(s.model(x))).graph


def searched(graph: Graph, *words: str) -> Graph:
    """The best graph that a search finds with default settings."""
    cfg = config.load_config("optimize", ["model=none", "device=cpu", *words])
    options: dict[str, Any] = config.plain(cfg)
    cost = config.build(cfg.cost, dims={}, unbound=None)
    found: Graph = config.build(cfg.search)(graph, config.rule_set(options["rules"]), cost, Budget(expansions=60)).graph
    return found


def ops(graph: Graph) -> Counter[str]:
    return Counter(n.op for n in graph.nodes.values() if not n.is_source and not n.constant)


def won(graph: Graph, name: str) -> bool:
    """Whether the winning form of a block stands in the graph, and the losing one does not."""
    found = ops(graph)
    if name == "pyramid":
        return [form(graph, i).attrs["kernel_shape"] for i, n in graph.nodes.items() if n.op == "MaxPool"] == [(5, 5)] * 3
    if name == "halves":
        return not found["Split"] and not found["Slice"]
    if name == "affine_chain":
        scaled = [n for n in graph.nodes.values() if n.op in ("Mul", "Add") and any(graph.node(v).constant for v in n.reads())]
        return not [n for n in scaled if not n.constant] and found["BatchNormalization"] == 1
    if name == "squeeze":
        joined = [i for i, n in graph.nodes.items() if n.op == "Concat" and not n.constant and len(n.inputs) == 2]
        return all(graph.nodes[u.node].op != "Conv" for i in joined for u in graph.users[i])
    squares = [str(n.types[0]) for n in graph.nodes.values() if n.op == "MatMul" and not n.constant]
    return bool(squares) and "float[1,784,784]" not in squares


@pytest.mark.parametrize("search", ["greedy", "backtracking"])
@pytest.mark.parametrize("name", BLOCKS)
def test_the_winning_form_of_a_block_is_found(name: str, search: str) -> None:
    graph = network(name)
    assert not won(graph, name)
    found = searched(graph, f"search={search}")
    assert won(found, name)
    assert compare(graph, found, seeds=1)


def test_all_of_them_are_found_in_one_network() -> None:
    graph = network(*BLOCKS)
    found = searched(graph, "search=greedy")
    assert [name for name in BLOCKS if not won(found, name)] == []
