"""Sweep: several trainings one after another, each with a run of its own; one that fails does not stop the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config
from cgorl.evaluation.plan import expand
from cgorl.tracking import Tracker


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
    group: str | None = None
    for job in what:
        if begin is not None:
            begin(job.number, job.words)
        tracker: Tracker | None = None
        try:
            cfg = config.load_config("sweep", job.overrides)
            from cgorl import training

            config.check(config.plain(cfg))
            tracker = Tracker(cfg.runs, "train", f"{Path(str(cfg.model or 'families')).stem}_{job.words}")
            group = group or tracker.folder.name
            if runs is not None:
                runs[:] = [tracker]
            ended = training.train(cfg, None, tracker, group)
            interrupted = ended.stopped == "interrupted"
            done.append(Done(job, ended.share if ended.rows else None, str(tracker.folder), "interrupted" if interrupted else ""))
            if interrupted:
                break
        except KeyboardInterrupt:
            done.append(Done(job, None, "" if tracker is None else str(tracker.folder), "interrupted"))
            break
        except Exception as e:
            known = isinstance(e, ValueError) and type(e).__module__.startswith("cgorl")
            text = " ".join(str(e).split())
            if tracker is not None:
                tracker.write("error.txt", traceback.format_exc())
            error = text if known else f"a fault of cgorl's: {type(e).__name__}: {text}"
            done.append(Done(job, None, "" if tracker is None else str(tracker.folder), error))
    return done


def rows(done: Sequence[Done]) -> list[Mapping[str, Any]]:
    """The table of a sweep as data."""
    return [{"job": d.job.number, "overrides": d.job.words, "share": d.share, "folder": d.folder, "error": d.error} for d in done]
