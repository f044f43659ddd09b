"""Small graphs and rules spelled out: `graph(text)` in onnx's text form, rule sets sound and unsound, hand-made rewrites."""

from collections.abc import Callable

import onnx
from onnx import parser

from cgorl import zoo
from cgorl.ir.build import Builder
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import parse_rules

SOUND = """
rule fold-norm: sound
    BatchNormalization(Conv(x, w, [b], **c), s, t, m, v, epsilon=e, momentum=_)
 => Conv(x, w * outward(k, w), ([b] - m) * k + t, **c)
 where k = s / sqrt(v + e)
 if constant(w, b, s, t, m, v), same_dtype(w, s, t, m, v)

rule neg-neg: sound
    Neg(Neg(x))
 => x

rule abs-abs: sound
    Abs(Abs(x))
 => Abs(x)
"""

UNSOUND = """
rule drop-relu: unsound
    Relu(x)
 => x
"""

ZOO = {
    "repvgg_a0": {"image": 32, "width": 0.125, "depth": (1, 1, 1, 1), "classes": 8},
    "resnet50": {"image": 32, "width": 0.125, "depth": (1, 1, 1, 1), "classes": 8},
    "inception_v3": {"image": 107, "width": 0.125, "depth": (1, 1, 1), "classes": 8},
    "bert": {"layers": 2, "hidden": 24, "heads": 3, "seq": 5},
}
"""Every kind of graph in the zoo, as small as it gets."""


def graph(text: str, opset: int = 17, ir: int = 9) -> Graph:
    """The graph of `agraph (...) => (...) {...}` in onnx's text form."""
    return from_proto(model(text, opset, ir))


def model(text: str, opset: int = 17, ir: int = 9) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]>\n{text}')


def small(name: str) -> Graph:
    return from_proto(zoo.build(name, **ZOO[name]))


def rules(text: str = SOUND) -> RuleSet:
    return RuleSet(parse_rules(text))


def rewrite(graph: Graph, node: int, make: Callable[[Builder], Value]) -> Match:
    """A rewrite that no rule made: `make` builds what takes the place of node `node`."""
    builder = Builder(graph)
    return Match(parse_rules(UNSOUND)[0], (node,), {}, builder.edit({Value(node): make(builder)}))
