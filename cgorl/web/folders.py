"""Where files lie: uploads as they came in, one folder a source, and one for each attempt at a job."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from cgorl.web.models import Job, Source
from cgorl.web.names import DRAWN, RUN

KINDS = ("incoming", "sources", "jobs")


def make() -> None:
    """Makes the folders, readable by the service alone."""
    for kind in KINDS:
        (settings.DATA / kind).mkdir(parents=True, exist_ok=True, mode=0o700)


def of_source(source: Source) -> Path:
    """The folder of an upload."""
    return Path(settings.DATA) / "sources" / str(source.pk)


def of_job(job: Job) -> Path:
    """The folder of the job's current attempt."""
    return Path(settings.DATA) / "jobs" / f"{job.pk}-{job.attempt}"


def lay(source: Source, folder: Path) -> None:
    """Makes the folder anew, with the source's files in it: other names of the same files where the disk has such, else copies."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    for name in source.files:
        whence, to = of_source(source) / name, folder / name
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            os.link(whence, to)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(whence, to)


def unlay(folder: Path) -> None:
    """Takes the source's files, and what else is no result, out of the folder again."""
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                if path.name not in (RUN, DRAWN):
                    shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def remove(kind: str, names: set[str]) -> None:
    """Removes folders and files of a kind by name."""
    for name in names:
        shutil.rmtree(Path(settings.DATA) / kind / name, ignore_errors=True)


def remove_job(number: int) -> None:
    """Removes the folders of all attempts at a job."""
    for path in (Path(settings.DATA) / "jobs").glob(f"{number}-*"):
        shutil.rmtree(path, ignore_errors=True)


def used(folder: Path) -> int:
    """Bytes that the files in a folder take, links counted as nothing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found = os.lstat(os.path.join(root, name))
                total += found.st_size if found.st_nlink == 1 else 0
    return total


def older(kind: str, seconds: float) -> list[Path]:
    """What of a kind has not been touched for so long."""
    then, found = time.time() - seconds, []
    for path in (Path(settings.DATA) / kind).glob("*"):
        with suppress(OSError):
            if path.lstat().st_mtime < then:
                found.append(path)
    return found
