"""What widgets are given: a model by name, path or graph, and prices by name or as a cost model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config, jobs, pipeline
from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph


class Source(NamedTuple):
    """A graph, what people call it, and what prices it (None: nothing)."""

    graph: Graph
    name: str
    cost: CostModel | None


def source(
    model: Graph | str | Path, cost: CostModel | str | None, dims: Mapping[str, int] | None, unbound: int | None, zoo: Mapping[str, Any]
) -> Source:
    """The graph and its prices. `cost` may be a choice of conf/cost; `dims`, `unbound` are sizes of symbols, as for `optimize`.

    Raises ModelError, ZooError, ConfigError, and DimsError for a symbol without a size.
    """
    if isinstance(model, Graph):
        graph, name = model, model.frame.model.graph.name or "graph"
    else:
        graph, name = pipeline.load_model(model, zoo), Path(model).name
    return Source(graph, name, prices(cost, graph, dims, unbound))


def prices(
    cost: CostModel | str | None, graph: Graph, dims: Mapping[str, int] | None = None, unbound: int | None = None
) -> CostModel | None:
    """The cost model, or that of a choice of conf/cost, once it is sure that it can price `graph`. Raises ConfigError, DimsError."""
    if isinstance(cost, str):
        values = {"model": "graph", "cost": cost, "dims": dict(dims or {}), "unbound": unbound}
        cost = jobs.cost(config.load_config("optimize", values=values))
    if cost is not None:
        cost.cost_ms(graph)  # a size that is missing is told now, not in the middle of a picture
    return cost
