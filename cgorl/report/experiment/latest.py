"""Latest: the sweep that one has run last, found by what it compares."""

from __future__ import annotations

from pathlib import Path

from cgorl.report.experiment.kept import mapping
from cgorl.report.experiment.kinds import sweeps


def latest(path: str | Path, key: str) -> Path | None:
    """The folder of the newest sweep below `path` whose jobs differ in `key` and have all ended; None where there is none."""
    found = sweeps(Path(path)) if Path(path).is_dir() else ()
    good = [folder for folder in found if _compares(folder, key) and _ended(folder)]
    return max(good, key=lambda folder: folder.name, default=None)


def _compares(folder: Path, key: str) -> bool:
    jobs = mapping(folder / "sweep.json").get("jobs") or ()
    return len({word for job in jobs for word in job["overrides"] if word.startswith(f"{key}=")}) > 1


def _ended(folder: Path) -> bool:
    """Whether each job of the sweep has said how it ended, which it does in its own folder."""
    ended = {told["number"] for file in folder.glob("jobs/*/job.json") if "share" in (told := mapping(file))}
    return len(ended) == len(mapping(folder / "sweep.json")["jobs"])
