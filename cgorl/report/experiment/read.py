"""Read: folders of runs -> an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cgorl.report.experiment import kinds, searches, trainings
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.kept import NOT_RUN, Kept, from_folder, from_wandb, mapping
from cgorl.report.experiment.kinds import ReportError

SOURCES = ("jsonl", "wandb")
ORIGIN = ("command", "commit", "machine", "date")


def read(*paths: str | Path, source: str = "jsonl") -> Experiment:
    """The runs at the paths as one experiment: folders of sweeps, of runs, or of an evaluation, or files of results.

    `source="wandb"` reads trainings from the offline runs of W&B instead of metrics.jsonl. What a killed run wrote counts.
    Raises ReportError, TrackError.
    """
    if source not in SOURCES:
        raise ReportError(f"runs are read from {' or '.join(SOURCES)}, not from {source!r}")
    places = [Path(p) for p in paths]
    if not places:
        raise ReportError("the folder of a sweep or of runs must be given")
    if all(map(kinds.tables, places)):
        return _made(places, searches.of_files(places), _origin([]))
    for place in places:
        if not place.is_dir():
            raise ReportError(f"there is no folder '{place}': name that of a sweep, of a run, or one with runs in it")
    if source == "wandb":
        return _trainings(places, _of_wandb(places))
    folders = list(dict.fromkeys(f for p in places for f in kinds.runs(p)))
    if not folders:
        if any(True for p in places for _ in kinds.sweeps(p)):
            return _trainings(places, [])
        raise ReportError(f"there are no runs in '{', '.join(map(str, places))}': scripts/train.py, sweep.py, evaluate.py make them")
    kind = kinds.one_kind(folders)
    if kind == kinds.TRAIN:
        return _trainings(places, [from_folder(f) for f in folders])
    made = searches.of_evaluations(folders) if kind == kinds.EVALUATE else searches.of_runs(folders)
    return _made(places, made, _origin(folders))


def tidy(*paths: str | Path, source: str = "jsonl") -> pd.DataFrame:
    """One tidy frame of the runs at the paths: `Experiment.metrics`. Raises ReportError, TrackError."""
    return read(*paths, source=source).metrics


def _trainings(places: Sequence[Path], runs: Sequence[Kept]) -> Experiment:
    sweeps = [s for p in places for s in kinds.sweeps(p)]
    planned = [(s.name, mapping(s / "sweep.json")) for s in sweeps]
    made = trainings.tables(runs, planned)
    if not len(made.metrics) and not (made.jobs["error"].astype(bool) | (made.jobs["state"] == NOT_RUN)).any():
        first = f"the run '{runs[0].folder}' has" if len(runs) == 1 else f"none of the {len(runs)} runs there have"
        raise ReportError(f"{first} written any metrics yet: there is nothing to report")
    return _made(places, made, _origin([*sweeps, *(r.folder for r in runs)]))


def _made(places: Sequence[Path], made: Experiment, origin: Mapping[str, tuple[str, ...]]) -> Experiment:
    told = {**origin, **{k: v for k, v in made.origin.items() if v}}
    return made._replace(paths=tuple(places), origin=told)


def _of_wandb(places: Sequence[Path]) -> list[Kept]:
    """The runs of which there is one of W&B, by that; those that ended before there was one, by their folder."""
    found: list[Kept] = []
    for place in places:
        files = sorted(place.rglob("run-*.wandb"), key=lambda p: p.parent.name)
        if not files:
            raise ReportError(f"there is no offline run of W&B in '{place}' (tracking=offline keeps one beside each training)")
        found += [from_wandb(f) for f in files]
        there = {run.folder for run in found}
        found += [run for f in kinds.runs(place) if f not in there and not (run := from_folder(f)).lines]
    return found


def _origin(folders: Iterable[Path]) -> dict[str, tuple[str, ...]]:
    told: list[Mapping[str, Any]] = [mapping(f / name) for f in folders for name in ("sweep.json", "run.json")]
    return {key: tuple(dict.fromkeys(str(t[key]) for t in told if t.get(key))) for key in ORIGIN}
