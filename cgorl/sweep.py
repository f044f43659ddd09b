"""Sweep: several trainings in one folder, each with a run of its own; one that fails does not stop the others.

    runs/sweep/<time>_<model>/sweep.json          what was asked for: command, commit, machine, and every job with its overrides
    runs/sweep/<time>_<model>/jobs/<time>_1_.../   the run of job 1; its job.json says which job it is, and how it ended

A job writes into its own folder alone, so that a sweep reads as one whoever ran the jobs, and however far they came.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config
from cgorl.evaluation.plan import expand
from cgorl.report.experiment.kept import mapping
from cgorl.report.provenance import provenance
from cgorl.tracking import Tracker

INTERRUPTED = "interrupted"
SWEEP, JOB, JOBS = "sweep.json", "job.json", "jobs"


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


def begin(what: Sequence[Job], command: str) -> Path:
    """A new folder for these jobs, which says what they are. Raises ConfigError and TrackError."""
    first = what[0].overrides
    root = config.load_config("sweep", [text for text in first if text.startswith("runs=")]).runs
    model = next((text.partition("=")[2] for text in first if text.startswith("model=")), "families")
    place = Tracker(root, "sweep", Path(model).stem)
    jobs = [{"number": job.number, "words": job.words, "overrides": job.overrides} for job in what]
    place.write(SWEEP, {"command": command, **provenance(), "jobs": jobs})
    return place.folder


def run(what: Sequence[Job], place: Path, tell: Callable[[int, str], None] | None = None, runs: list[Tracker] | None = None) -> list[Done]:
    """The jobs as they ended. An interrupt ends the job in progress, which keeps its checkpoint, and leaves the others out."""
    done: list[Done] = []
    for job in what:
        if tell is not None:
            tell(job.number, job.words)
        done.append(one(job, place.name, runs, place=place))
        if done[-1].error == INTERRUPTED:
            break
    return done


def launched(what: Sequence[Job], place: Path, launcher: Sequence[str]) -> list[Done]:
    """The jobs as they ended, run by a launcher of Hydra's: side by side, on other machines. Raises ConfigError where it is not there.

    `launcher` are overrides such as `hydra/launcher=joblib hydra.launcher.n_jobs=2`. Where it is interrupted, or gives up because a
    job was killed, jobs are told by what their folders say of them.
    """
    try:
        ended = config.launch(launcher, _Work(tuple(what), place), len(what), place / "launcher")
    except config.ConfigError:  # nothing has begun
        (place / SWEEP).unlink()
        with suppress(OSError):
            place.rmdir()
        raise
    except KeyboardInterrupt:
        return [_ended(job, place, INTERRUPTED) for job in what]
    except Exception as e:  # which one is the launcher's own affair
        why = " ".join(str(e).split())[:200]
        return [_ended(job, place, f"not ended when the launcher gave up: {type(e).__name__}: {why}") for job in what]
    return [d if isinstance(d, Done) else Done(job, None, "", _told(d)) for job, d in zip(what, ended, strict=True)]


def _ended(job: Job, place: Path, otherwise: str) -> Done:
    """The job as its folder says that it ended, or with the error `otherwise` where it does not."""
    for file in sorted(place.glob(f"{JOBS}/*/{JOB}"), reverse=True):
        told = mapping(file)
        if told.get("number") == job.number:
            return Done(job, told.get("share"), str(file.parent), told.get("error", otherwise))
    return Done(job, None, "", otherwise)


@dataclass(frozen=True, slots=True)
class _Work:
    """Runs the job whose number a configuration holds; goes to another process whole."""

    what: tuple[Job, ...]
    place: Path

    def __call__(self, cfg: Any) -> Done:
        return one(self.what[int(cfg["job"]) - 1], self.place.name, place=self.place)


def one(
    job: Job,
    group: str,
    runs: list[Tracker] | None = None,
    values: Mapping[str, Any] | None = None,
    place: Path | None = None,
    settings: str = "",
) -> Done:
    """One job as it ended, whatever its end; `runs` is given its tracker. `values` are further overrides, as Python objects.

    Its run is in the sweep's folder `place`, or where trainings go by themselves. `settings` stands in its job.json, to be found by.
    """
    tracker: Tracker | None = None
    share, error = None, ""
    known = {"settings": settings} if settings else {}
    try:
        if place is not None:  # whatever is wrong with the job stands in its folder
            tracker = _kept(Tracker(place, JOBS, f"{job.number}_{job.words}"), job, group, **known)
        cfg = config.load_config("sweep", job.overrides, values)
        from cgorl import training

        config.check(config.plain(cfg))
        if tracker is None:
            tracker = _kept(Tracker(cfg.runs, "train", f"{Path(str(cfg.model or 'families')).stem}_{job.words}"), job, group, **known)
        if runs is not None:
            runs[:] = [tracker]
        ended = training.train(cfg, None, tracker, group, job.words)
        share, error = ended.share if ended.rows else None, INTERRUPTED if ended.stopped == INTERRUPTED else ""
    except KeyboardInterrupt:
        error = INTERRUPTED
    except Exception as e:
        error = _told(e)
        if tracker is not None:
            tracker.write("error.txt", traceback.format_exc())
    if tracker is None:
        return Done(job, share, "", error)
    _kept(tracker, job, group, **known, share=share, error=error)
    return Done(job, share, str(tracker.folder), error)


def _kept(tracker: Tracker, job: Job, group: str, **end: Any) -> Tracker:
    """The tracker, once its folder says which job of which sweep it is of, and at its end how it ended."""
    tracker.write(JOB, {"sweep": group, "number": job.number, "words": job.words, "overrides": job.overrides, **end})
    return tracker


def _told(error: Any) -> str:
    text = " ".join(str(error).split())
    known = isinstance(error, ValueError) and type(error).__module__.startswith("cgorl")
    return text if known else f"a fault of cgorl's: {type(error).__name__}: {text}"


def rows(done: Sequence[Done]) -> list[Mapping[str, Any]]:
    """The table of a sweep as data."""
    return [{"job": d.job.number, "overrides": d.job.words, "share": d.share, "folder": d.folder, "error": d.error} for d in done]
