"""A configuration in, a finished job out: builds what the configuration names and keeps the run's folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config, pipeline, zoo
from cgorl.cost.measured import Measured
from cgorl.cost.model import CostModel
from cgorl.gate.stage import Gated
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import check_writable
from cgorl.ir.simplify import simplify
from cgorl.pipeline import Outcome, Stage
from cgorl.report.ledger import ledger, summary
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Progress, Searcher, SearchResult
from cgorl.tracking import Tracker, TrackError
from cgorl.zoo import blocks


class Parts(NamedTuple):
    """What a configuration names, built."""

    rules: RuleSet
    cost: CostModel
    search: Searcher
    budget: Budget


def parts(cfg: Any) -> Parts:
    """The objects that `cfg` (conf/optimize.yaml) names. Raises ConfigError."""
    options: Mapping[str, Any] = config.plain(cfg)
    config.check(options)
    return Parts(
        config.rule_set(options["rules"]),
        cost(cfg),
        config.build(cfg.search),
        Budget(options["seconds"], options["expansions"], options["evaluations"]),
    )


def load(cfg: Any) -> Graph:
    """The model that `cfg` names, once it is sure that all else that it names can be had and `output` can be written.

    Raises ConfigError, ModelError and ZooError.
    """
    options: Mapping[str, Any] = config.plain(cfg)
    parts(cfg)
    _rival(options)
    _check_output(options["output"])
    if options["checkpoint"]:
        check_writable(Path(options["checkpoint"]), "checkpoint")
    return pipeline.load_model(options["model"], options["zoo"])


def cost(cfg: Any) -> CostModel:
    """The cost model that `cfg` names, with its sizes of symbols. Raises ConfigError."""
    options: Mapping[str, Any] = config.plain(cfg)
    shipped = options["cost"].get("shipped")  # came along with cgorl, wherever one works
    more = {"shipped": str(config.CONF.parent / shipped)} if isinstance(shipped, str) else {}
    built: CostModel = config.build(cfg.cost, dims=options["dims"], unbound=options["unbound"], **more)
    return built


def simplified(cfg: Any, graph: Graph | None = None) -> Graph:
    """The model that `cfg` names (or `graph` in its place), cleaned up. Raises ConfigError, ModelError and ZooError."""
    options: Mapping[str, Any] = config.plain(cfg)
    graph = pipeline.load_model(options["model"], options["zoo"]) if graph is None else graph
    return simplify(graph).graph if options.get("simplify", True) else graph


def models(cfg: Any) -> Iterator[tuple[str, Graph]]:
    """The zoo's graphs, those in `models` and the zoo's blocks, by name, cleaned up, one after another."""
    for name in (*zoo.names(), *config.plain(cfg)["models"]):
        yield Path(name).name, simplify(pipeline.load_model(name)).graph
    for name in blocks.names():
        yield name, simplify(from_proto(blocks.build(name))).graph


def _kept(search: Searcher, path: Path) -> Searcher:
    """The search, kept in a file and taken up from there."""

    def kept(
        graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None, checkpoint: Path | None = None
    ) -> SearchResult:
        return search(graph, rules, cost, budget, listen, checkpoint or path)

    return kept


def _check_output(output: str | None) -> None:
    if output:
        check_writable(Path(output))


def optimize(
    cfg: Any,
    graph: Graph | None = None,
    tell: Stage | None = None,
    tracker: Tracker | None = None,
    rules: RuleSet | None = None,
    picture: bool = True,
) -> Outcome:
    """The outcome of the job that `cfg` (conf/optimize.yaml) describes; `graph` stands in for `model`, `rules` for those it names.

    Saves to `output` if that is given. The search named by `versus` is run too, and what it comes to is told in `search`. With
    a tracker, metrics, a `picture` of them, trace, ledger and summary go to its folder; the trace also where the model cannot
    be written, and the model also where metrics cannot.
    """
    options: Mapping[str, Any] = config.plain(cfg)
    named, prices, search, budget = parts(cfg)
    rules = named if rules is None else rules
    if options["checkpoint"]:
        search = _kept(search, Path(options["checkpoint"]))
    _check_output(options["output"])
    graph = pipeline.load_model(options["model"], options["zoo"]) if graph is None else graph

    rival = _rival(options)
    told = _Metrics(tracker)

    def both(stage: str, progress: Progress | float | None) -> None:
        if tell is not None:
            tell(stage, progress)
        if stage == "search" and isinstance(progress, Progress):
            told.note(progress)

    if tracker is not None:
        tracker.write("config.yaml", config.yaml(cfg))
    done = pipeline.optimize(
        graph,
        rules,
        prices,
        search,
        budget,
        options["simplify"],
        options["prove"],
        options["dims"],
        options["seed"],
        both,
        _gated(options, prices),
    )
    told.end()
    if isinstance(prices, Measured):
        done = replace(done, notes=tuple(prices.notes(done.start)))
    if rival is not None:
        clock = time.monotonic()
        both("versus", None)
        against = cost(cfg)
        with suppress(KeyboardInterrupt):  # ends the measuring of missing prices, not the job
            against.cost_ms(done.start)
        other = rival(done.start, rules, against, budget, lambda p: both("versus", p))
        facts = {"name": _name(options), "versus": options["versus"], "versus_ms": other.cost_ms, "versus_stopped": other.stopped}
        done = replace(done, search={**done.search, **facts}, seconds={**done.seconds, "versus": time.monotonic() - clock})
    both("save", None)
    try:
        if options["output"]:
            done = replace(done, files=tuple(done.save(options["output"])))
    finally:
        if tracker is not None:
            tracker.write("trace.json", done.trace_json())
            tracker.write("ledger.json", {"rewrites": ledger(done)})
    if tracker is not None:
        tracker.write("summary.json", {**summary(done), "files": [str(p) for p in done.files]})
        if picture:
            _draw(tracker.folder, Path(str(options["model"])).stem, _name(options), str(done.search["stopped"]))
    return done


def _gated(options: Mapping[str, Any], prices: CostModel) -> Gated | None:
    """How a result is measured; None where it is not: where the prices are not those of this machine, unless asked for."""
    level = prices.level if isinstance(prices, Measured) else None
    how = Gated(options["gate_seconds"], level or "all", options["unbound"], options["ledger_seconds"])
    wanted = options["gate"]
    return how if wanted is True or (wanted == "auto" and level is not None) else None


def _rival(options: Mapping[str, Any]) -> Searcher | None:
    if options["versus"] is None:
        return None
    chosen = config.load_config("optimize", [f"search={options['versus']}", f"seed={options['seed']}", "model=any"])
    built: Searcher = config.build(chosen.search)
    return built


def _name(options: Mapping[str, Any]) -> str:
    return str(options["search"]["_target_"]).split(".")[-2]


def _draw(folder: Path, problem: str, method: str, stopped: str) -> None:
    """Draws the anytime curve, where matplotlib is installed and there is a curve."""
    try:
        from cgorl.report import figures
    except ImportError:
        return
    with suppress(TrackError):  # a full disk has been told by the summary
        if (figure := figures.progress(folder / "metrics.jsonl", problem, method, stopped)) is not None:
            figures.save(figure, folder / "anytime.png")


class _Metrics:
    """Writes how a search goes to the run's metrics: whenever its best changes, ten times a second besides, and its last word."""

    def __init__(self, tracker: Tracker | None) -> None:
        self._tracker = tracker
        self._written: Progress | None = None
        self._last: Progress | None = None

    def note(self, p: Progress) -> None:
        self._last, before = p, self._written
        if before is None or p.best_ms != before.best_ms or p.rewrites != before.rewrites or p.seconds >= before.seconds + 0.1:
            self._write(p)

    def end(self) -> None:
        if self._last is not None and self._last is not self._written:
            self._write(self._last)

    def _write(self, p: Progress) -> None:
        self._written = p
        if self._tracker is not None:
            with suppress(TrackError):  # a full disk shows when the job is done
                self._tracker.log(
                    seconds=p.seconds, expansions=p.expansions, evaluations=p.evaluations, best_ms=p.best_ms, rewrites=p.rewrites
                )
