"""CPU time of one rewrite and the matches after it, against the size of the graph, and of a full scan."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from cgorl import zoo
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library

_STEPS = 60
_DEPTHS = ((3, 4, 6, 3), (8, 8, 16, 8), (30, 30, 60, 30), (100, 100, 200, 100))


def main(arguments: Sequence[str]) -> None:
    """Prints a line for ResNets of growing depth, for each graph of the zoo, and the scan of each."""
    rules = RuleSet(library())
    table = Table("graph", "nodes", "matches", "replace µs", "replace + matches µs, median", "90 %", "full scan ms")
    for column in table.columns[1:]:
        column.justify = "right"
    for label, graph in _graphs():
        start = time.thread_time()
        found = MatchSet(graph, rules)
        scan = time.thread_time() - start
        _walk(graph, rules, 0)
        alone, both = _walk(graph, rules, 1)
        nodes = sum(1 for n in graph.nodes.values() if not n.is_source)
        table.add_row(
            label,
            f"{nodes:,}",
            f"{len(found):,}",
            f"{np.median(alone) * 1e6:.0f}",
            f"{np.median(both) * 1e6:.0f}",
            f"{np.quantile(both, 0.9) * 1e6:.0f}",
            f"{scan * 1e3:.0f}",
        )
    Console().print(table)
    print(f"rules=default ({len(rules)} rules), random walks of {_STEPS} rewrites, thread CPU time")


def _graphs() -> list[tuple[str, Graph]]:
    nets = [(f"resnet, depth {sum(d)}", ("resnet50", {"depth": d, "width": 0.25, "image": 64})) for d in _DEPTHS]
    nets += [(name, (name, {})) for name in zoo.names()]
    return [(label, simplify(from_proto(zoo.build(name, **parameters))).graph) for label, (name, parameters) in nets]  # type: ignore[arg-type]


def _walk(graph: Graph, rules: RuleSet, seed: int) -> tuple[list[float], list[float]]:
    """Seconds of each step of a random walk: the replacement alone, and with the matches after it."""
    rng = random.Random(seed)
    found = MatchSet(graph, rules)
    alone, both = [], []
    for _ in range(_STEPS):
        choices = list(found)
        if not choices:
            break
        match = rng.choice(choices)
        start = time.thread_time()
        graph = graph.replace(match.edit)
        middle = time.thread_time()
        found = found.after(graph, match)
        alone.append(middle - start)
        both.append(time.thread_time() - start)
    return alone, both
