"""Kept: one training as its folder tells it, or as W&B's offline run beside it does, in the same words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cgorl.report.metrics.log import Log
from cgorl.tracking import METRICS, flat, offline

RUNNING, FAILED, NOT_RUN = "running", "failed", "not begun"


class Kept(NamedTuple):
    """A run: `about` is its flat configuration, `overrides` those of its job in a sweep, `lines` its metrics, flat as well.

    `state` says in words how it ended, `error` why it failed; `graphs` are the rows of its summary, none before its end.
    """

    folder: Path
    sweep: str
    number: int | None
    overrides: Mapping[str, str]
    about: Mapping[str, Any]
    lines: Sequence[Mapping[str, float]]
    state: str
    error: str
    summary: Mapping[str, Any]


def from_folder(folder: Path) -> Kept:
    """What the files of a run's folder say; a line or a file that is not whole says nothing."""
    job = mapping(folder / "job.json")
    log = Log(folder)
    log.read()
    state = log.state()
    error = str(job.get("error") or "") or _last_line(folder / "error.txt")
    if error:
        state = "interrupted" if error == "interrupted" else FAILED
    overrides = dict(text.split("=", 1) for text in job.get("overrides", []) if "=" in text)
    number = job.get("number")
    return Kept(
        *(folder, str(job.get("sweep", "")), number if isinstance(number, int) else None, overrides),
        *(configuration(folder / "config.yaml"), lines(folder / METRICS), state, error if state == FAILED else ""),
        mapping(folder / "summary.json"),
    )


def from_wandb(file: Path) -> Kept:
    """What W&B's reader says of a .wandb file. Raises TrackError."""
    run = offline.read(file)
    folder = file.parents[2]
    job = mapping(folder / "job.json")
    overrides = dict(text.split("=", 1) for text in job.get("overrides", []) if "=" in text)
    number = job.get("number")
    state = "not ended, or killed" if run.code is None else "ended" if run.code == 0 else FAILED
    error = f"exit code {run.code}" if state == FAILED else ""
    numbers = [{k: float(v) for k, v in row.items() if _number(v)} for row in run.rows]
    return Kept(folder, run.group, number if isinstance(number, int) else None, overrides, run.config, numbers, state, error, {})


def lines(path: Path) -> list[dict[str, float]]:
    """The numbers of each whole line; those of a mapping within are named `key/inner`, as W&B has them."""
    found = []
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue  # cut off, where the run was killed
        if isinstance(told, Mapping):
            inner = {f"{k}/{n}": v for k, of in told.items() if isinstance(of, Mapping) for n, v in of.items()}
            found.append({k: float(v) for k, v in {**told, **inner}.items() if _number(v)})
    return found


def mapping(path: Path) -> dict[str, Any]:
    """A JSON object; none where there is no whole one."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(told) if isinstance(told, Mapping) else {}


def configuration(path: Path) -> dict[str, Any]:
    """A configuration, flat; none where there is no whole one."""
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, yaml.YAMLError):
        return {}
    return flat(told) if isinstance(told, Mapping) else {}


def _last_line(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    last = text.splitlines()[-1] if text else "it says no reason"
    name, colon, rest = last.partition(": ")
    return rest if colon and name.startswith("cgorl.") else last


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
