"""Sweep: several trainings, each with a run of its own; one that fails does not stop the others."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config
from cgorl.evaluation.plan import expand
from cgorl.tracking import Tracker

INTERRUPTED = "interrupted"


class Job(NamedTuple):
    """One training: its number from 1 on, the overrides that tell it from the others, and all its overrides."""

    number: int
    words: str
    overrides: tuple[str, ...]


class Done(NamedTuple):
    """How a job ended: what is compared (best over first cost), its folder, or its error."""

    job: Job
    share: float | None
    folder: str
    error: str = ""


def jobs(overrides: Sequence[str]) -> tuple[Job, ...]:
    """The jobs that overrides with several values come to. Raises ConfigError for what is wrong with all of them."""
    found = expand("train", overrides)
    told = [k for k in found[0] if len({job[k] for job in found if k in job}) > 1]
    return tuple(
        Job(k, " ".join(f"{key}={job[key]}" for key in told if key in job) or "one job", tuple(f"{key}={v}" for key, v in job.items()))
        for k, job in enumerate(found, 1)
    )


def run(what: Sequence[Job], begin: Callable[[int, str], None] | None = None, runs: list[Tracker] | None = None) -> list[Done]:
    """The jobs as they ended. An interrupt ends the job in progress, which keeps its checkpoint, and leaves the others out."""
    done: list[Done] = []
    group = _group()
    for job in what:
        if begin is not None:
            begin(job.number, job.words)
        done.append(one(job, group, runs))
        if done[-1].error == INTERRUPTED:
            break
    return done


def launched(what: Sequence[Job], launcher: Sequence[str]) -> list[Done]:
    """The jobs as they ended, run by a launcher of Hydra's: side by side, on other machines. Raises ConfigError where it is not there.

    `launcher` are overrides such as `hydra/launcher=joblib hydra.launcher.n_jobs=2`.
    """
    group = _group()
    root = Path(config.load_config("sweep", what[0].overrides).runs)
    try:
        ended = config.launch(launcher, _Work(tuple(what), group), len(what), root / "sweep" / group)
    except KeyboardInterrupt:
        return [Done(job, None, "", INTERRUPTED) for job in what]
    return [d if isinstance(d, Done) else Done(job, None, "", _told(d)) for job, d in zip(what, ended, strict=True)]


@dataclass(frozen=True, slots=True)
class _Work:
    """Runs the job whose number a configuration holds; goes to another process whole."""

    what: tuple[Job, ...]
    group: str

    def __call__(self, cfg: Any) -> Done:
        return one(self.what[int(cfg["job"]) - 1], self.group)


def one(job: Job, group: str, runs: list[Tracker] | None = None, values: Mapping[str, Any] | None = None) -> Done:
    """One job as it ended, whatever its end; `runs` is given its tracker. `values` are further overrides, as Python objects."""
    tracker: Tracker | None = None
    try:
        cfg = config.load_config("sweep", job.overrides, values)
        from cgorl import training

        config.check(config.plain(cfg))
        tracker = Tracker(cfg.runs, "train", f"{Path(str(cfg.model or 'families')).stem}_{job.words}")
        if runs is not None:
            runs[:] = [tracker]
        ended = training.train(cfg, None, tracker, group)
        error = INTERRUPTED if ended.stopped == INTERRUPTED else ""
        return Done(job, ended.share if ended.rows else None, str(tracker.folder), error)
    except KeyboardInterrupt:
        return Done(job, None, "" if tracker is None else str(tracker.folder), INTERRUPTED)
    except Exception as e:
        if tracker is not None:
            tracker.write("error.txt", traceback.format_exc())
        return Done(job, None, "" if tracker is None else str(tracker.folder), _told(e))


def _told(error: Any) -> str:
    text = " ".join(str(error).split())
    known = isinstance(error, ValueError) and type(error).__module__.startswith("cgorl")
    return text if known else f"a fault of cgorl's: {type(error).__name__}: {text}"


def _group() -> str:
    return f"sweep_{time.strftime('%Y-%m-%d_%H-%M-%S')}"


def rows(done: Sequence[Done]) -> list[Mapping[str, Any]]:
    """The table of a sweep as data."""
    return [{"job": d.job.number, "overrides": d.job.words, "share": d.share, "folder": d.folder, "error": d.error} for d in done]
