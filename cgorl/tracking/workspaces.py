"""Reports of Weights & Biases: built as JSON without a login or a network, and pushed by one that is logged in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cgorl.tracking.tracker import TrackError
from cgorl.tracking.wandb_run import logged_in

_MISSING = "a report of W&B needs wandb-workspaces: pip install -c constraints.txt -e '.[wandb]'"
ENTITY = "unset"
"""Who owns a report that nobody has pushed."""


class Heading(NamedTuple):
    """A heading."""

    text: str


class Markdown(NamedTuple):
    """Text in Markdown."""

    text: str


class Lines(NamedTuple):
    """Lines as they stand."""

    text: str


class Curves(NamedTuple):
    """Metrics over an axis, drawn by W&B, of the runs of some groups, or else of those with these names."""

    metrics: tuple[str, ...]
    axis: str
    groups: tuple[str, ...]
    runs: tuple[str, ...] = ()


Block = Heading | Markdown | Lines | Curves


def build(title: str, blocks: Sequence[Block], project: str, entity: str = "") -> Any:
    """The report as an object of wandb-workspaces; without an entity its curves are of no project yet. Raises TrackError."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb_workspaces.reports.v2 as wr
    except ImportError:
        raise TrackError(_MISSING) from None
    made: list[Any] = [_block(wr, b, project, entity) for b in blocks]
    return wr.Report(project=project, entity=entity or ENTITY, title=title[:128], blocks=made, width="fixed")


def to_json(report: Any) -> str:
    """The report as W&B keeps it."""
    text: str = report._to_model().model_dump_json(by_alias=True, exclude_none=True)  # the package has no public word for it
    return json.dumps(json.loads(text), indent=1) + "\n"


def keep(text: str, path: Path) -> Path:
    """Writes the report as W&B keeps it. Raises TrackError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise TrackError(f"cannot write '{path}': {e.strerror or e}") from None
    return path


def available() -> bool:
    """Whether reports can be built: wandb-workspaces is installed."""
    from importlib.util import find_spec

    return find_spec("wandb_workspaces") is not None


def owner(entity: str) -> str:
    """Who is to own what is pushed: the entity, or the default one of the login. Raises TrackError without a login."""
    if not available():
        raise TrackError(_MISSING)
    if not logged_in():
        raise TrackError("push=true needs a login to W&B: 'wandb login', then the same command again; the report is kept as JSON meanwhile")
    if entity:
        return entity
    import wandb

    try:
        found = wandb.Api().default_entity
    except Exception as e:  # of W&B's network
        raise TrackError(f"W&B cannot be asked who you are: {_said(e)}") from None
    if not found:
        raise TrackError("this login to W&B has no default entity: name one, as entity=NAME")
    return str(found)


def sync(folders: Sequence[Path], project: str, entity: str) -> int:
    """Sends the offline runs in these folders of runs; how many there were. Raises TrackError."""
    runs = [str(f.parent) for folder in folders for f in sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))]
    if not runs:
        return 0
    words = [sys.executable, "-m", "wandb", "sync", "--project", project, "--entity", entity, *runs]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TrackError(f"W&B cannot send the offline runs: {' '.join((done.stderr or done.stdout).split())[-300:]}")
    return len(runs)


def push(report: Any) -> str:
    """Saves the report on the server that the user is logged in to; returns its address. Raises TrackError."""
    import wandb

    try:
        wandb.Api().create_project(report.project, report.entity)  # as it is, where there is one; else W&B knows no runs to draw
        report.save()
    except Exception as e:
        raise TrackError(f"W&B cannot save the report: {_said(e)}") from None
    return str(report.url)


def _block(wr: Any, block: Block, project: str, entity: str) -> Any:
    if isinstance(block, Heading):
        return wr.H2(block.text)
    if isinstance(block, Markdown):
        return wr.MarkdownBlock(block.text)
    if isinstance(block, Lines):
        return wr.CodeBlock(block.text, language="yaml")  # it knows no shell
    names = ", ".join(f"'{n}'" for n in block.groups or block.runs)
    filters = f"{'Group' if block.groups else 'Name'} in [{names}]"
    runs = wr.Runset(project=project if entity else "", entity=entity, name="runs", filters=filters)
    panels = [wr.LinePlot(title=m, x=block.axis, y=[m]) for m in block.metrics]
    return wr.PanelGrid(runsets=[runs], panels=panels)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
