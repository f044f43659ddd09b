"""TraceView: an optimization as a film."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import traitlets

from cgorl import config, jobs, pipeline
from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.pipeline import Outcome
from cgorl.report.film import Film
from cgorl.report.graphs.colours import MARKS, Family
from cgorl.report.graphs.scene import Box
from cgorl.report.graphs.svg import svg
from cgorl.report.reel import drawn, measured, step, whole
from cgorl.search.trace import TraceError
from cgorl.widgets.assets import module
from cgorl.widgets.candidates import ByGain, ByPolicy, Candidates
from cgorl.widgets.curve import curve
from cgorl.widgets.source import prices
from cgorl.widgets.widget import Widget, figure, row

_LISTED = 100


class TraceView(Widget):
    """The rewrites of an optimization, one after another: `TraceView(result)`, `TraceView("runs/optimize/2026-...")`.

    `result` is what `cgorl.optimize` returns, or the folder of a run (or its trace.json). With a `cost` (a cost model or a choice
    of conf/cost; of a folder, that of the run) each step shows what else could have been done and what that gains; with a `policy`
    (a file that scripts/train.py wrote) the chances that it gives each. `model` stands in for the run's model.
    Raises ConfigError, ModelError, TraceError and AgentError.
    """

    _esm = module("trace_view.js")
    picture = traitlets.Bytes(b"").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    asks = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        result: Outcome | str | Path,
        cost: CostModel | str | None = None,
        policy: str | Path | None = None,
        model: Graph | str | Path | None = None,
    ) -> None:
        if isinstance(result, Outcome):
            self._film, self._cost = Film.of(result), prices(cost, result.start)
        else:
            self._film, self._cost = _read(Path(result), cost, model)
        if policy is not None and self._cost is None:
            raise TraceError("a policy reads prices too: give the cost model of the run, as cost=...")
        self._candidates: Candidates | None = None
        if self._cost is not None:
            self._candidates = ByGain(self._film, self._cost) if policy is None else ByPolicy(self._film, self._cost, policy)
        super().__init__(picture=whole(self._film, self._cost), asks=self._candidates is not None)
        self.on_msg(self._asked)

    def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        k = content.get("step")
        if not isinstance(k, int) or k not in range(len(self._film.steps)):
            return
        if content.get("kind") == "step":
            about = {"kind": "step", "step": k}
            self.send(about, step(self._film, k, self._cost))
        if content.get("kind") == "candidates" and self._candidates is not None:
            try:
                self.send({"kind": "candidates", "step": k, **self._candidates.at(k)})
            except ValueError as e:  # a step that the policy could not have chosen; the sentence is for people
                self.send({"kind": "candidates", "step": k, "why": str(e)})

    def static(self) -> str:
        """The curve of the cost, the rewrite that gains most before and after it, and the ledger."""
        film = self._film
        if not film.steps:
            return f"<p>{escape(repr(self))}</p>"
        parts = [figure(curve(film.costs_ms, [r["rule"] for r in film.rows]), repr(self))]
        k = max(range(len(film.steps)), key=lambda j: film.steps[j].before_ms - film.steps[j].after_ms)
        pair = [
            figure(svg(drawn(cut, self._cost), partial(_marked, cut.marks), 480), f"{when} step {k + 1}, {film.rows[k]['rule']}")
            for cut, when in zip(film.around(k), ("before", "after"), strict=True)
        ]
        parts.append(f"<table><tr><td>{pair[0]}</td><td>{pair[1]}</td></tr></table>")
        cells = [row(("step", "rule", "where", "gain, ms", "measured share"), (0, 3, 4), "th")]
        for j, r in enumerate(film.rows[:_LISTED]):
            share = measured(r)
            told = "not measured" if share is None else f"{100 * share:.1f} %"
            gain = f"{r['before_ms'] - r['after_ms']:.4g}"
            cells.append(row((str(j + 1), r["rule"], r["names"][0], gain, told), (0, 3, 4)))
        more = f"<p>and {len(film.rows) - _LISTED} more</p>" if len(film.rows) > _LISTED else ""
        return "".join([*parts, "<table>", *cells, "</table>", more])

    def __repr__(self) -> str:
        """One line."""
        costs = self._film.costs_ms
        if not costs:
            return "TraceView(no rewrite)"
        many = "1 rewrite" if len(costs) == 2 else f"{len(costs) - 1} rewrites"
        return f"TraceView({many}, {costs[0]:.4g} -> {costs[-1]:.4g} ms by the prices)"


def _marked(marks: Mapping[int, int], _: int, box: Box) -> Family:
    return MARKS[max((marks.get(i, 0) for i in box.nodes), default=0)]


def _read(path: Path, cost: CostModel | str | None, model: Graph | str | Path | None) -> tuple[Film, CostModel | None]:
    """The film in a run's folder and the prices of that run."""
    folder = path if path.is_dir() else path.parent
    try:
        trace = json.loads((path / "trace.json" if path.is_dir() else path).read_text())
        ledger = folder / "ledger.json"
        rows = json.loads(ledger.read_text())["rewrites"] if ledger.is_file() else None
    except (OSError, ValueError, LookupError) as e:
        raise TraceError(f"there is no trace in '{path}': {e}") from None
    cfg = config.kept(folder / "config.yaml")
    start = jobs.simplified(cfg, pipeline.load_model(model) if isinstance(model, str | Path) else model)
    return Film.read(trace, rows, start, config.rule_set(config.plain(cfg)["rules"])), prices(cost or jobs.cost(cfg), start)
