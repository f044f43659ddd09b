"""Tracker: one folder a run, with its configuration, metrics, trace and summary; never shared, never overwritten. W&B beside it."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class TrackError(ValueError):
    """A run folder that cannot be made or written to; the message says why."""


@contextmanager
def whole() -> Iterator[list[int]]:
    """Ctrl-C is not heard within, so that what belongs together is written whole; the list it gives has each one that came."""
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


class Tracker:
    """The folder of one run; metrics are appended as JSON lines, each flushed, so that a killed run keeps them."""

    def __init__(self, root: str | Path, kind: str, label: str) -> None:
        """Makes `root/kind/<time>_<label>`, with a number behind it if that is there. Raises TrackError."""
        stem = time.strftime("%Y-%m-%d_%H-%M-%S") + "_" + (re.sub(r"[^\w.-]+", "_", label)[:60] or "run")
        for k in range(1000):
            folder = Path(root) / kind / (stem if k == 0 else f"{stem}_{k}")
            try:
                folder.mkdir(parents=True)
                break
            except FileExistsError:
                if not folder.is_dir():
                    raise TrackError(f"cannot make the run folder '{folder}': a file is in the way") from None
            except OSError as e:
                raise TrackError(f"cannot make the run folder '{folder}': {e.strerror or e}") from None
        else:
            raise TrackError(f"too many runs called '{stem}' in '{root}'")
        self.folder = folder
        self._start = time.monotonic()

    def log(self, **metrics: Any) -> None:
        """Appends one line to metrics.jsonl, with the seconds since the run began unless they are given. Raises TrackError."""
        line = json.dumps({"seconds": round(time.monotonic() - self._start, 6), **metrics}, allow_nan=True)
        self._put("metrics.jsonl", line + "\n", "a")

    def append(self, name: str, data: Mapping[str, Any]) -> Path:
        """Appends a mapping as a line of JSON to the file `name` of the folder. Raises TrackError."""
        return self._put(name, json.dumps(data, default=str) + "\n", "a")

    def write(self, name: str, data: Mapping[str, Any] | str) -> Path:
        """Writes a mapping as JSON, or text as it is, to the file `name` of the folder. Raises TrackError."""
        return self._put(name, data if isinstance(data, str) else json.dumps(data, indent=1, default=str) + "\n", "w")

    def _put(self, name: str, text: str, mode: str) -> Path:
        path = self.folder / name
        try:
            with path.open(mode, encoding="utf-8", errors="surrogateescape") as f:
                f.write(text)
        except OSError as e:
            raise TrackError(f"cannot write '{path}': {e.strerror or e}") from None
        return path


class WandbRun:
    """A run of W&B that gets what a Tracker gets; a fault of W&B's never ends a training, since nothing is kept by it alone."""

    def __init__(self, run: Any) -> None:
        """Speaks to an open run."""
        self._run = run

    def log(self, metrics: Mapping[str, Any], step: int) -> None:
        """Logs numbers at a step."""
        with suppress(Exception):
            self._run.log({k: v for k, v in metrics.items() if isinstance(v, int | float)}, step=step)

    def table(self, name: str, columns: list[str], rows: list[list[Any]]) -> None:
        """Logs a table."""
        import wandb

        with suppress(Exception):
            self._run.log({name: wandb.Table(columns=columns, data=rows)})

    def artifact(self, name: str, kind: str, files: list[Path]) -> None:
        """Keeps files as an artifact."""
        import wandb

        with suppress(Exception):
            made = wandb.Artifact(re.sub(r"[^\w.-]+", "-", name), kind)
            for file in files:
                made.add_file(str(file))
            self._run.log_artifact(made)

    def finish(self, code: int = 0) -> None:
        """Closes the run."""
        with suppress(Exception):
            self._run.finish(exit_code=code)


@dataclass(frozen=True, slots=True)
class Wandb:
    """How W&B is used: `offline` keeps all in the run's folder and uses no network, `online` sends it to where the user is logged in."""

    mode: str = "offline"
    project: str = "cgorl"

    def __post_init__(self) -> None:
        """Raises TrackError."""
        if self.mode not in ("offline", "online"):
            raise TrackError(f"tracking.mode must be offline or online, not {self.mode!r} (tracking=jsonl goes without W&B)")

    def open(self, folder: Path, config: Mapping[str, Any], name: str, group: str | None) -> WandbRun | None:
        """A run beside the Tracker's, None where wandb is not installed. Raises TrackError for `online` without a login."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        os.environ.setdefault("WANDB_SILENT", "true")
        for place in ("DATA", "CACHE", "CONFIG", "ARTIFACT"):
            os.environ.setdefault(f"WANDB_{place}_DIR", str(folder / "wandb"))
        try:
            import wandb
        except ImportError:
            return None
        if self.mode == "online" and not _logged_in():
            raise TrackError("tracking=online needs a login: 'wandb login', or tracking=offline")
        try:
            quiet: dict[str, Any] = {"console": "off", "silent": True, "x_disable_stats": True, "x_disable_machine_info": True}
            settings = wandb.Settings(**quiet, x_save_requirements=False, reinit="finish_previous")
            about: dict[str, Any] = {"project": self.project, "mode": self.mode, "dir": str(folder), "name": name, "group": group}
            made = wandb.init(**about, config=flat(config), settings=settings)
        except Exception as e:
            raise TrackError(f"W&B cannot begin a run: {' '.join(str(e).split())[:200]}; tracking=jsonl goes without it") from None
        return WandbRun(made)


def _logged_in() -> bool:
    import wandb

    try:
        return bool(wandb.Api().api_key)
    except Exception:  # W&B's own word for it
        return False


def flat(config: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by dots."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found.update(flat(value, f"{at}{key}."))
        else:
            found[f"{at}{key}"] = value
    return found
