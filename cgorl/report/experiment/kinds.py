"""Kinds: which script a folder of a run is of, and all such folders below a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

TRAIN, OPTIMIZE, EVALUATE, SWEEP = "train", "optimize", "evaluate", "sweep"
SCRIPTS = {TRAIN: "train.py or sweep.py", OPTIMIZE: "optimize.py", EVALUATE: "evaluate.py"}
_MARKS = ("metrics.jsonl", "config.yaml", "error.txt", "job.json", "run.json")
_TABLES = (".parquet", ".csv")
_NO_RUNS = ("wandb", "report", "launcher")


class ReportError(ValueError):
    """Runs that no report can be made of; the message says which, and what would do."""


def runs(path: Path) -> Iterator[Path]:
    """The folders of runs at a path: itself, or those below it, the oldest first."""
    if _is_run(path):
        yield path
        return
    for below in sorted(p for p in path.iterdir() if p.is_dir() and p.name not in _NO_RUNS):
        yield from runs(below)


def sweeps(path: Path) -> Iterator[Path]:
    """The folders of sweeps at a path: itself, the one that a run of it is given of, or those below it."""
    if _is_run(path):
        return
    if (path / "sweep.json").is_file():
        yield path
        return
    for below in sorted(p for p in path.iterdir() if p.is_dir() and p.name not in _NO_RUNS):
        yield from sweeps(below)


def _is_run(path: Path) -> bool:
    return any((path / name).is_file() for name in _MARKS)


def kind(folder: Path) -> str:
    """Which script a run is of, by what it left: the jobs of an evaluation share one file, a training has options of PPO."""
    if (folder / "job.json").is_file():
        return TRAIN
    if any((folder / f"table{ending}").is_file() for ending in _TABLES):
        return EVALUATE
    try:
        text = (folder / "config.yaml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    if text.startswith("--- # job"):
        return EVALUATE
    if not text:
        name = folder.parent.name
        return name if name in SCRIPTS else TRAIN
    return TRAIN if "\nppo:" in f"\n{text}" else OPTIMIZE


def one_kind(folders: Sequence[Path]) -> str:
    """The kind that all of them are. Raises ReportError for a mixture."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        found.setdefault(kind(folder), []).append(folder)
    if len(found) > 1:
        told = ", ".join(f"{len(of)} of {SCRIPTS[k]} (as '{of[0]}')" for k, of in found.items())
        raise ReportError(f"these runs are of different kinds, which one report cannot compare: {told}; name those of one kind")
    return next(iter(found))


def tables(path: Path) -> bool:
    """Whether a path is a file that holds a table of results."""
    return path.is_file() and path.suffix in _TABLES
