"""Trainings: runs of train.py and sweep.py -> the tables of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cgorl.report.experiment import words
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.kept import NOT_RUN, Kept, mapping
from cgorl.report.experiment.kinds import TRAIN

MEAN = "mean over the graphs"
_MANY = 12
"""Of more graphs than this, only the mean is compared."""
JOBS = ("job", "run", "folder", "method", "seed", "state", "error", "change", "steps", "seconds")
RESULTS = ("job", "run", "problem", "method", "seed", "initial_ms", "cost_ms", "seconds", "stopped")
USED = ("job", "method", "rule", "count")


def tables(runs: Sequence[Kept], planned: Sequence[tuple[str, Mapping[str, Any]]]) -> Experiment:
    """Trainings in tables; `planned` are sweeps by name with the jobs that they were to run."""
    runs = [*runs, *_missing(runs, planned)]
    runs.sort(key=lambda r: (r.sweep, r.number if r.number is not None else math.inf))
    as_asked = bool(runs) and all(r.overrides for r in runs)
    abouts: list[Mapping[str, Any]] = [r.overrides if as_asked else r.about for r in runs]
    keys = words.varied(abouts)
    jobs, lines, results, used = [], [], [], []
    for number, (run, about) in enumerate(zip(runs, abouts, strict=True), 1):
        last = {k: v for line in run.lines for k, v in line.items()}
        graphs = _graphs(run, last)
        seed = run.about.get("seed", run.overrides.get("seed"))
        told = {
            **{"job": number, "run": run.folder.name, "method": words.method(about, keys) or "as configured"},
            **{"seed": pd.NA if seed is None else int(seed)},
        }
        change = sum(100 * (best / first - 1) for first, best in graphs.values()) / len(graphs) if graphs else math.nan
        spent = {"steps": last.get("global_step", math.nan), "seconds": last.get("seconds", math.nan)}
        jobs.append({**told, "folder": str(run.folder), "state": run.state, "error": run.error, "change": change, **spent})
        config = {f"config.{k}": _cell(v) for k, v in run.about.items()}
        lines += [{**told, **config, **line} for line in run.lines]
        stopped = run.summary.get("stopped") or run.state
        for name, (first, best) in _compared(graphs).items():
            about_it = {"problem": words.problem(about, keys, name), "initial_ms": first, "cost_ms": best}
            results.append({**told, **about_it, "seconds": spent["seconds"], "stopped": stopped})
        for rule, count in rules_of(run.folder).items():
            used.append({"job": number, "method": told["method"], "rule": rule, "count": count})
    rewrites = pd.DataFrame(used, columns=USED)
    lists = framed(jobs, JOBS), _filled(pd.DataFrame(lines)), framed(results, RESULTS)
    return Experiment(TRAIN, *lists, curves=pd.DataFrame(), used=rewrites, varied=tuple(keys), origin={})


def _missing(runs: Sequence[Kept], planned: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterable[Kept]:
    """The jobs of sweeps that have no folder: they never began."""
    there = {(r.sweep, r.number) for r in runs}
    for sweep, told in planned:
        for job in told.get("jobs", []):
            if (sweep, job.get("number")) not in there:
                asked = dict(text.split("=", 1) for text in job.get("overrides", []) if "=" in text)
                yield Kept(Path(), sweep, job.get("number"), asked, {}, (), NOT_RUN, "", {})


def _graphs(run: Kept, last: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """First and best cost of each graph in ms: of the summary, or before there is one of the metrics."""
    rows = run.summary.get("graphs") or []
    found = {str(r["model"]): (float(r["first_ms"]), float(r["best_ms"])) for r in rows}
    if not found:
        best = {k.removeprefix("cost/best_ms/"): v for k, v in last.items() if k.startswith("cost/best_ms/")}
        found = {n: (last[f"cost/first_ms/{n}"], v) for n, v in best.items() if f"cost/first_ms/{n}" in last}
    return {n: pair for n, pair in found.items() if pair[0] > 0}


def _compared(graphs: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    if len(graphs) < 2:
        return dict(graphs)
    first = sum(a for a, _ in graphs.values()) / len(graphs)
    mean = {f"{MEAN} ({len(graphs)})": (first, first * sum(b / a for a, b in graphs.values()) / len(graphs))}
    return mean if len(graphs) > _MANY else {**graphs, **mean}


def rules_of(folder: Path) -> dict[str, int]:
    """How often each rule is in the best rewrites of a run, all its graphs together."""
    found: dict[str, int] = {}
    for file in sorted(folder.glob("trace*.json")) if folder != Path() else ():
        for step in mapping(file).get("steps", []):
            found[str(step["rule"])] = found.get(str(step["rule"]), 0) + 1
    return found


def framed(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows as a frame with these columns, jobs and seeds as whole numbers that may be missing."""
    return pd.DataFrame(rows, columns=list(columns)).astype({"job": "Int64", "seed": "Int64"})


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, whole numbers as such; a rule that a line does not name was not used."""
    counts = [c for c in frame.columns if c.startswith("rules/")]
    frame[counts] = frame[counts].fillna(0).astype("int64")
    whole = [c for c in ("seed", "global_step", "updates", "job") if c in frame]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float | str) or value is None else str(value)
