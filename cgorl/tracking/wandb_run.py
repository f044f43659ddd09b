"""W&B beside a Tracker: a run that gets what the folder gets, offline unless the user is logged in and says so."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgorl.tracking.tracker import TrackError, flat


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
            os.environ.setdefault(f"WANDB_{place}_DIR", str(folder.resolve() / "wandb"))
        try:
            import wandb
        except ImportError:
            return None
        if self.mode == "online" and not logged_in():
            raise TrackError("tracking=online needs a login: 'wandb login', or tracking=offline")
        try:
            quiet: dict[str, Any] = {"console": "off", "silent": True, "x_disable_stats": True, "x_disable_machine_info": True}
            settings = wandb.Settings(**quiet, x_save_requirements=False, reinit="finish_previous")
            about: dict[str, Any] = {"project": self.project, "mode": self.mode, "dir": str(folder.resolve()), "name": name, "group": group}
            made = wandb.init(**about, config=flat(config), settings=settings)
        except Exception as e:
            raise TrackError(f"W&B cannot begin a run: {' '.join(str(e).split())[:200]}; tracking=jsonl goes without it") from None
        return WandbRun(made)


def logged_in() -> bool:
    """Whether W&B has a key to log in with."""
    import wandb

    try:
        return bool(wandb.Api().api_key)
    except Exception:  # W&B's own word for it
        return False
