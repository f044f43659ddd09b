"""Offline runs of W&B read back, by the reader that wandb comes with (`wandb leet inspect`); no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cgorl.tracking.tracker import TrackError

_OWN = ("_runtime", "_timestamp", "_step", "_wandb")
_PATIENCE = 120


class OfflineRun(NamedTuple):
    """What W&B has of a run: its name and group, its flat configuration, a mapping for each logged step, and its exit code.

    `code` is None where the run has not ended, or was killed: then the last rows may be missing, which W&B writes in blocks.
    """

    name: str
    group: str
    config: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    code: int | None


def files(folder: Path) -> list[Path]:
    """The .wandb files of a run's folder, the oldest first."""
    return sorted(folder.glob("wandb/*run-*/run-*.wandb"), key=lambda p: p.parent.name)


def read(file: Path) -> OfflineRun:
    """The run in a .wandb file. Raises TrackError where wandb is not installed, or cannot read it."""
    name = group = ""
    config: dict[str, Any] = {}
    rows: list[Mapping[str, Any]] = []
    code = None
    for record in _records(file):
        about = record.get(record.get("type", ""), {})
        if record.get("type") == "run":
            name, group = about.get("display_name", name), about.get("run_group", group)
            config.update({k: v for k, v in about.get("config", {}).get("update", {}).items() if k not in _OWN})
        elif record.get("type") == "history":
            item = about.get("item", {})
            media = {k.removesuffix("_type") for k in item if k.endswith("._type")}  # tables and pictures, in a row of their own
            row = {k: v for k, v in item.items() if k not in _OWN and not any(k.startswith(m) for m in media)}
            if row:
                rows.append({**row, "seconds": item.get("_runtime")})
        elif record.get("type") == "exit":
            code = int(about.get("exit_code", 0))
    return OfflineRun(name, group, config, rows, code)


def _records(file: Path) -> Iterator[Mapping[str, Any]]:
    words = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    quiet = {**os.environ, "WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=quiet, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as e:
        raise TrackError(f"W&B's reader cannot be run on '{file}': {e}") from None
    if "No module named wandb" in done.stderr:
        raise TrackError("reading runs of W&B needs wandb: pip install -c constraints.txt -e '.[wandb]'")
    found = 0
    for line in done.stdout.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, Mapping):
            found += 1
            yield record
    if not found:
        why = " ".join(done.stderr.split())[:200] or "it holds no record"
        raise TrackError(f"W&B's reader cannot read '{file}': {why}")
