"""cgorl: computation graphs optimized by graph substitution, with proof.

import cgorl
result = cgorl.optimize("in.onnx", seconds=30)
result.save("out.onnx")
cgorl.verify("in.onnx", "out.onnx")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgorl.certificate.equivalence import Equivalence
    from cgorl.evaluation.run import Evaluation
    from cgorl.ir.graph import Graph
    from cgorl.pipeline import Outcome
    from cgorl.rules.rule_set import RuleSet

# onnxruntime (from 1.29 on) tells its maker of each process and model unless told not to before it starts; models are private
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__all__ = ["evaluate", "load", "optimize", "save", "verify"]


def load(model: str | Path, **zoo: Any) -> Graph:
    """The graph in an ONNX file, or the zoo's graph of that name with parameters such as `image=128`."""
    from cgorl.pipeline import load_model

    return load_model(model, zoo)


def save(graph: Graph, path: str | Path) -> list[Path]:
    """The files written: an ONNX model, with external data beside it where it needs some."""
    from cgorl.ir import onnx_io

    return onnx_io.save(graph, path)


def optimize(model: str | Path | Graph, dims: dict[str, int] | None = None, rules: str | RuleSet = "default", **choices: Any) -> Outcome:
    """The optimized model with its proof: `.graph .cost_ms .initial_cost_ms .trace .save("out.onnx")`.

    `rules` is a choice of conf/rules or rules of one's own; `choices` are the other keys of conf/optimize.yaml, e.g.
    `search="greedy", cost="roofline", seconds=30`.
    """
    from cgorl import config, jobs

    graph = None if isinstance(model, str | Path) else model
    chosen, own = (rules, None) if isinstance(rules, str) else ("default", rules)
    values = {**choices, "rules": chosen, "dims": dims or {}, "model": model if graph is None else "graph"}
    return jobs.optimize(config.load_config("optimize", values=values), graph, rules=own)


def evaluate(*overrides: str) -> Evaluation:
    """Searches compared: `.results` (a row a job) and `.curves` as pandas frames, of keys with one or several values.

    As on the command line: `evaluate("model=bert,nasrnn", "search=greedy,beam,annealing", "seed=1,2,3", "seconds=10")`.
    """
    from cgorl.evaluation import run

    return run.evaluate(overrides)


def verify(a: str | Path | Graph, b: str | Path | Graph, dims: dict[str, int] | None = None) -> Equivalence:
    """Whether two models agree: same interface, same outputs on random inputs; truthy if they do."""
    from cgorl.certificate.equivalence import compare

    first, second = (load(m) if isinstance(m, str | Path) else m for m in (a, b))
    return compare(first, second, dims)
