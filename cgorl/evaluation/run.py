"""Run: the jobs of a plan one after another, into one table of results and one of anytime curves."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cgorl import config, jobs, pipeline
from cgorl.evaluation.plan import BUDGET, Job, Plan, plan
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Progress, SearchResult
from cgorl.search.trace import to_json
from cgorl.tracking import Tracker

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

PROVEN, UNPROVEN, WRONG, FAILED = "proven", "not proven", "proof failed", "failed"
"""How a job ended, in the column `status`."""


class Done(NamedTuple):
    """A job that ran: its row, the points of its curve, and what it found (None where it failed, with the traceback of a fault)."""

    job: Job
    row: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]]
    start: Graph | None = None
    parts: jobs.Parts | None = None
    found: SearchResult | None = None
    fault: str = ""


class Evaluation(NamedTuple):
    """`results` has a row a job, `curves` a row for each improvement of a job and one for its end; `interrupted` tells of Ctrl-C."""

    results: pd.DataFrame
    curves: pd.DataFrame
    interrupted: bool

    def anytime(self) -> Figure:
        """The best cost so far of each method over what it spent, as a picture: a row a problem (`report.figures.anytime`)."""
        from cgorl.report import compare, figures

        return figures.anytime(compare.labelled(self.results), self.curves)


class Listening(NamedTuple):
    """Who is told how an evaluation goes: of each job as it begins, of its progress, and of its end."""

    begin: Callable[[Job], None] = lambda job: None
    progress: Callable[[Progress], None] = lambda progress: None
    end: Callable[[Done], None] = lambda done: None


def evaluate(what: Plan | Sequence[str], listen: Listening | None = None, tracker: Tracker | None = None) -> Evaluation:
    """The tables of the jobs of a plan, or of overrides such as `["model=bert", "search=greedy,beam"]`.

    A job that fails has its error in its row, and the others run. An interrupt ends the evaluation: the search in progress
    gives its best so far, and the tables hold what is done. With a tracker, each row goes to its metrics and each trace to
    its folder as soon as the job ends. Raises ConfigError before anything runs.
    """
    what = what if isinstance(what, Plan) else plan(what)
    listen = listen or Listening()
    finished: list[Done] = []
    interrupted = False
    try:
        for done in run(what.jobs, listen):
            finished.append(done)
            if tracker is not None:
                _keep(done, tracker)
            listen.end(done)
            interrupted = done.row["stopped"] == "interrupted"
            if interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    return Evaluation(*frames(finished), interrupted)


def run(what: Iterable[Job], listen: Listening | None = None) -> Iterator[Done]:
    """The jobs as they end. Consecutive jobs of one model share its clean graph, so that all begin at the same cost.

    Each job has its own cost model and rules. What the searches of one problem share are the types that onnx infers, which
    are found for the first graph before any clock runs.
    """
    listen = listen or Listening()
    held: tuple[Any, Graph, Graph] | None = None
    warm: set[tuple[str, str]] = set()
    for job in what:
        listen.begin(job)
        options: dict[str, Any] = config.plain(job.cfg)
        try:
            built = jobs.parts(job.cfg)
            if held is None or held[0] != (options["model"], options["zoo"], options["simplify"]):
                held = None  # two large models need not be there at once
                model = pipeline.load_model(options["model"], options["zoo"])
                pipeline.check_model(model, options["dims"])
                start = simplify(model).graph if options["simplify"] else model
                held = (options["model"], options["zoo"], options["simplify"]), model, start
            pipeline.check_model(held[1], options["dims"])
            _warm_up(held[2], job, built.rules, warm)
            done = _search(job, options, built, held[1], held[2], listen)
        except Exception as e:
            known = isinstance(e, MemoryError) or (isinstance(e, ValueError) and type(e).__module__.startswith("cgorl"))
            text = "there is not enough memory" if isinstance(e, MemoryError) else " ".join(str(e).split())
            error = text if known else f"a fault of cgorl's: {type(e).__name__}: {text}"
            row = {**_identity(job), "stopped": None, "status": FAILED, "error": error}
            done = Done(job, row, (), fault="" if known else traceback.format_exc())
        yield done


def _identity(job: Job) -> dict[str, Any]:
    return {"job": job.number, **job.keys, **{f"budget.{k}": job.cfg[k] for k in BUDGET}}


def _warm_up(start: Graph, job: Job, rules: RuleSet, warm: set[tuple[str, str]]) -> None:
    if (start.key, rules.digest) not in warm:
        warm.add((start.key, rules.digest))
        cost = jobs.cost(job.cfg)
        for match in MatchSet(start, rules):
            cost.gain(start, match.edit)


def _search(job: Job, options: Mapping[str, Any], built: jobs.Parts, model: Graph, start: Graph, listen: Listening) -> Done:
    initial_ms = built.cost.cost_ms(start)
    points = [(0, 0, 0.0, initial_ms)]

    def note(p: Progress) -> None:
        if p.best_ms < points[-1][-1]:
            points.append((p.expansions, p.evaluations, p.seconds, p.best_ms))
        listen.progress(p)

    cpu = time.process_time()
    found = built.search(start, built.rules, built.cost, built.budget, note)
    cpu = time.process_time() - cpu
    points.append((found.expansions, found.evaluations, found.seconds, found.cost_ms))
    cost_ms, rewrites, status, error = found.cost_ms, len(found.trace), UNPROVEN, None
    if options["prove"] and found.stopped != "interrupted":
        proven = pipeline.optimize(
            *(model, built.rules, built.cost, lambda *_: found, built.budget),
            clean=options["simplify"],
            dims=options["dims"],
            seed=options["seed"],
        )
        cost_ms, rewrites = proven.cost_ms, len(proven.trace)
        status = PROVEN if proven.proof.ok else WRONG
        error = "; ".join(f"{rule}: {why}" for rule, why in proven.proof.dropped) or None
    row = {
        **_identity(job),
        **{"graph_key": start.key, "rules_digest": built.rules.digest},
        **{"initial_ms": initial_ms, "cost_ms": cost_ms, "improvement": 1 - cost_ms / initial_ms if initial_ms else 0.0},
        **{"rewrites": rewrites, "expansions": found.expansions, "evaluations": found.evaluations},
        **{"seconds": found.seconds, "cpu_seconds": cpu, "stopped": found.stopped, "status": status, "error": error},
    }
    curve = [dict(zip(("expansions", "evaluations", "seconds", "best_ms"), p, strict=True), job=job.number) for p in points]
    return Done(job, row, curve, start, built, found)


def frames(finished: Sequence[Done]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows and the points of jobs as two tidy tables, with the same columns in the same order however the jobs went."""
    import pandas as pd

    ends = [*("graph_key", "rules_digest", "initial_ms", "cost_ms", "improvement", "rewrites", "expansions", "evaluations")]
    ends += [*("seconds", "cpu_seconds", "stopped", "status", "error")]
    names = list(dict.fromkeys(("job", *(k for d in finished for k in _identity(d.job)), *ends)))
    results = pd.DataFrame([d.row for d in finished], columns=names)
    for name in names:
        kinds = {type(d.row.get(name)) for d in finished} - {type(None)}
        if len(kinds) > 1 and not kinds <= {int, float}:
            results[name] = results[name].map(str, na_action="ignore")  # a column of a Parquet file has one type
        elif kinds == {int}:
            results[name] = results[name].astype("Int64")
    curves = pd.DataFrame([p for d in finished for p in d.curve], columns=["job", "expansions", "evaluations", "seconds", "best_ms"])
    whole = dict.fromkeys(("seed", "rewrites", "expansions", "evaluations"), "Int64")
    real = dict.fromkeys(("initial_ms", "cost_ms", "improvement", "seconds", "cpu_seconds"), "float64")
    text = dict.fromkeys(("graph_key", "rules_digest", "stopped", "error"), "string")
    kinds_of = {k: v for k, v in {**whole, **real, **text}.items() if k in names}
    return results.astype(kinds_of), curves.astype({"expansions": "int64", "evaluations": "int64", "seconds": float, "best_ms": float})


def save(done: Evaluation, folder: Path) -> list[Path]:
    """Writes both tables and a picture of the curves for each model into a folder; returns the files. Raises TrackError."""
    from cgorl.report import compare, figures, tables

    files = [*tables.write(done.results, folder / "table"), *tables.write(done.curves, folder / "curves")]
    ran = compare.labelled(done.results)
    for model, name in figures.names(list(dict.fromkeys(ran["model"]))).items():
        files.append(figures.save(figures.anytime(ran[ran["model"] == model], done.curves), folder / f"{name}.png"))
    return files


def _keep(done: Done, tracker: Tracker) -> None:
    tracker.log(**{("wall_seconds" if k == "seconds" else k): v for k, v in done.row.items()})
    if done.fault:
        tracker.write(f"error_{done.job.number}.txt", done.fault)
    if done.found is not None and done.start is not None and done.parts is not None:
        trace = {**done.job.keys, **to_json(done.start, done.found.graph, done.found.trace, done.parts.rules)}
        tracker.append("traces.jsonl", {"job": done.job.number, **trace})
