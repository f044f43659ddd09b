"""report.py: an experiment's folders in, a page and a report of W&B out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from cgorl.cli.guard import ERROR, INTERRUPTED, guarded, say

if TYPE_CHECKING:
    from pathlib import Path

    from cgorl.report.experiment.content import Report


def report(argv: list[str], doc: str) -> int:
    """Writes the report that conf/report.yaml with the overrides `argv` asks for; returns the exit code. `doc` is the script's own help."""
    return guarded(lambda runs: _report(argv, doc))


def _report(argv: list[str], doc: str) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('report')}", flush=True)
        return 0 if argv else ERROR
    options: dict[str, Any] = config.plain(config.load_config("report", argv))
    config.check(options)
    from pathlib import Path

    from rich.console import Console

    try:
        from cgorl.report.experiment import files, read
        from cgorl.report.experiment.compose import compose
    except ImportError as e:  # pandas, matplotlib
        return say(f"error: a report needs {e.name}: pip install -c constraints.txt -e '.[report]'", ERROR)

    console = Console(width=None if sys.stdout.isatty() else 120)
    paths = [Path(p) for p in config.several("sweep", str(options["sweep"]))]
    try:
        of = read(*paths, source=options["source"])
        made = compose(of, options["title"] or "", options["axis"] or "")
        folder = Path(options["output"]) if options["output"] else files.folder(paths)
        files.show(made, console)
        for path in files.write(made, of, folder, options["figures"]):
            console.print(f"written   {path}", highlight=False, markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        return say("interrupted; the report is not whole", INTERRUPTED)
    _to_wandb(made, [Path(str(f)) for f in of.jobs["folder"] if f], folder, options, console)
    return 0


def _to_wandb(made: Report, runs: list[Path], folder: Path, options: dict[str, Any], console: Any) -> None:
    """Keeps the report as W&B would, and pushes it where that was asked for. Raises TrackError."""
    from cgorl.report.experiment.spec import spec
    from cgorl.tracking import workspaces

    if not workspaces.available() and not options["push"]:
        console.print("no report of W&B: wandb-workspaces is not installed (the extra `wandb`)", highlight=False, markup=False)
        return
    text = workspaces.to_json(workspaces.build(made.title, spec(made), options["project"]))
    path = workspaces.keep(text, folder / "report.wandb.json")
    console.print(f"written   {path}", highlight=False, markup=False, soft_wrap=True)
    if options["push"]:
        entity = workspaces.owner(options["entity"] or "")
        if sent := workspaces.sync(runs, options["project"], entity):
            console.print(f"sent      {sent} offline runs to {entity}/{options['project']}", highlight=False, markup=False)
        address = workspaces.push(workspaces.build(made.title, spec(made), options["project"], entity))
        console.print(f"pushed    {address}", highlight=False, markup=False, soft_wrap=True)
