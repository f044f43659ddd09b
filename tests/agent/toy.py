"""A toy with a barrier: to gain much a node must first get dearer twice, and all around are moves that change nothing."""

from __future__ import annotations

from typing import Any

from cgorl.cost.model import Price
from cgorl.env.rewrite import Episodes, RewriteEnv, Start
from cgorl.env.rule_features import rule_digest
from cgorl.ir.graph import Edit, Graph
from cgorl.rules.rule_set import RuleSet
from tests import texts

MS = {"Abs": 3.0, "Sqrt": 3.4, "Exp": 3.8, "Floor": 1.0, "Sin": 2.0, "Cos": 2.0, "Tanh": 0.5}
RULES = texts.rules(
    """
rule up: toy
    Abs(x)
 => Sqrt(x)

rule down-again: toy
    Sqrt(x)
 => Abs(x)

rule further-up: toy
    Sqrt(x)
 => Exp(x)

rule far-down: toy
    Exp(x)
 => Floor(x)

rule this-way: toy
    Sin(x)
 => Cos(x)

rule that-way: toy
    Cos(x)
 => Sin(x)
"""
)


class Prices:
    """So much for each operator."""

    digest = "toy"

    def node_ms(self, view: Any, i: int) -> float:
        return MS.get(view.at(i).op, 0.0)

    def cost_ms(self, graph: Graph) -> float:
        return sum(MS.get(n.op, 0.0) for n in graph.nodes.values())

    def price(self, graph: Graph, edit: Edit) -> Price:
        return Price(sum(MS[graph.nodes[i].op] for i in edit.removed) - sum(MS[n.op] for n in edit.added))

    def gain(self, graph: Graph, edit: Edit) -> float:
        return self.price(graph, edit).gain

    def unknown(self, graph: Graph) -> list[str]:
        return []


def chain(ops: str = "Sin Abs Cos Sin Abs Tanh Cos") -> Graph:
    """These operators one after another."""
    names = ops.split()
    body = " ".join(f"v{k + 1} = {op}(v{k})" for k, op in enumerate(names))
    return texts.graph(f"toy (float[2,3] v0) => (float[2,3] v{len(names)}) {{ {body} }}")


def known(rules: RuleSet = RULES) -> dict[str, str]:
    return {r.name: rule_digest(r) for r in rules}


def start(ops: str = "Sin Abs Cos Sin Abs Tanh Cos") -> Start:
    return Start.of(chain(ops), RULES, Prices())


def envs(count: int, **options: Any) -> list[RewriteEnv]:
    where = [start()]
    return [RewriteEnv(where, Episodes(**options)) for _ in range(count)]
