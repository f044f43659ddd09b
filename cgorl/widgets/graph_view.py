"""GraphView: a computation graph to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import traitlets

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.report.graphs.blocks import blocks
from cgorl.report.graphs.colours import band
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import Scene, scene
from cgorl.report.graphs.svg import svg
from cgorl.report.ledger import count
from cgorl.widgets.assets import module
from cgorl.widgets.source import source
from cgorl.widgets.widget import Widget, figure

_MANY = 150


class GraphView(Widget):
    """A graph drawn from top to bottom: `GraphView("inception_v3")`, `GraphView("in.onnx", dims={"batch": 1})`.

    `model` is a Graph, a file or a name of the zoo (with its parameters), `cost` a cost model, a choice of conf/cost, or None.
    `folded` shows repeated blocks as one box each, `constants` also what computes on weights alone, `colour` is "operator" or
    "cost". Raises ModelError, ZooError, ConfigError and DimsError.
    """

    _esm = module("graph_view.js")
    picture = traitlets.Bytes(b"").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    blocks = traitlets.Int(0).tag(sync=True)
    folded = traitlets.Bool(False).tag(sync=True)
    constants = traitlets.Bool(False).tag(sync=True)
    colour = traitlets.Enum(["operator", "cost"], "operator").tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)

    def __init__(
        self,
        model: Graph | str | Path,
        cost: CostModel | str | None = "roofline",
        dims: Mapping[str, int] | None = None,
        unbound: int | None = None,
        folded: bool = False,
        constants: bool = False,
        colour: str = "operator",
        height: int = 560,
        **zoo: Any,
    ) -> None:
        self._source = source(model, cost, dims, unbound, zoo)
        self._blocks = blocks(self._source.graph)
        self._closed = set(range(len(self._blocks))) if folded else set()
        title = f"{self._source.name}: {count(self._source.graph)} nodes"
        super().__init__(title=title, blocks=len(self._blocks), folded=folded, constants=constants, colour=colour, height=height)
        self._draw()
        self.observe(self._fold, "folded")
        self.observe(lambda _: self._draw(), "constants")
        self.on_msg(self._asked)

    def scene(self) -> Scene:
        """What is drawn now."""
        graph, _, cost = self._source
        return scene(graph, cost, self._blocks, self._closed, self.constants)

    def _draw(self) -> None:
        self.picture = packed(self.scene())

    def _fold(self, change: Mapping[str, Any]) -> None:
        self._closed = set(range(len(self._blocks))) if change["new"] else set()
        self._draw()

    def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        if content.get("kind") == "fold" and content.get("block") in range(len(self._blocks)):
            self._closed ^= {content["block"]}
            self._draw()

    def static(self) -> str:
        """The graph as a picture, coloured as the live view is; of a large one, its repeated blocks are folded."""
        drawn = self.scene()
        if len(drawn.boxes) > _MANY and self._blocks:
            graph, _, cost = self._source
            drawn = scene(graph, cost, self._blocks, range(len(self._blocks)), self.constants)
        total = f", {drawn.total_ms:.4g} ms by the prices" if self._source.cost is not None else ""
        whole = drawn.total_ms or 1.0
        kind = (lambda _, box: band(box.cost_ms / whole)) if self.colour == "cost" and total else None
        return figure(svg(drawn, kind), f"{self.title}{total}")

    def __repr__(self) -> str:
        """One line."""
        return f"GraphView({self.title})"
