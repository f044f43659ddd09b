"""A configuration in, a finished job out: builds what the configuration names and keeps the run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cgorl import config, pipeline
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import check_writable
from cgorl.pipeline import Outcome, Stage
from cgorl.report.ledger import ledger, summary
from cgorl.search.searcher import Budget, Progress
from cgorl.tracking import Tracker


def load(options: Mapping[str, Any]) -> Graph:
    """The model that the options name, once it is sure that `output` can be written. Raises ModelError and ZooError."""
    if options["output"]:
        check_writable(Path(options["output"]))
    return pipeline.load_model(options["model"], options["zoo"])


def optimize(cfg: Any, graph: Graph | None = None, tell: Stage | None = None, tracker: Tracker | None = None) -> Outcome:
    """The outcome of the job that `cfg` (conf/optimize.yaml) describes; `graph` stands in for `model`.

    Saves to `output` if that is given. With a tracker, metrics, trace, ledger and summary go to its folder.
    """
    options: Mapping[str, Any] = config.plain(cfg)
    graph = load(options) if graph is None else graph
    rules = config.rule_set(options["rules"])
    cost = config.build(cfg.cost, dims=options["dims"], unbound=options["unbound"])
    search = config.build(cfg.search)
    budget = Budget(options["seconds"], options["expansions"], options["evaluations"])

    def both(stage: str, progress: Progress | float | None) -> None:
        if tell is not None:
            tell(stage, progress)
        if tracker is not None and isinstance(progress, Progress):
            tracker.log(
                expansions=progress.expansions, evaluations=progress.evaluations, best_ms=progress.best_ms, rewrites=progress.rewrites
            )

    if tracker is not None:
        tracker.write("config.yaml", config.yaml(cfg))
    done = pipeline.optimize(
        graph, rules, cost, search, budget, options["simplify"], options["prove"], options["dims"], options["seed"], both
    )
    files = [str(p) for p in done.save(options["output"])] if options["output"] else []
    if tracker is not None:
        tracker.write("trace.json", done.trace_json())
        tracker.write("ledger.json", {"rewrites": ledger(done)})
        tracker.write("summary.json", {**summary(done), "files": files})
    return done
