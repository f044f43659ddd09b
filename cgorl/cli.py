"""The command line: arguments -> a job on the screen -> an exit code; every error is one clear line."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cgorl.tracking import Tracker

CODES = {"optimized": 0, "already optimal": 0, "nothing found within the budget": 0, "refused": 3, "proof failed": 4}
DETAILED = {"already optimal": 10, "nothing found within the budget": 11}
ERROR, INTERRUPTED = 1, 130
_NOTHING = "interrupted before there was a proven result; nothing was written"


def optimize(argv: list[str], doc: str) -> int:
    """Runs conf/optimize.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _optimize(argv, doc, runs))


def rules(argv: list[str], doc: str) -> int:
    """Runs conf/rules.yaml with the words and overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _rules(argv, doc))


def evaluate(argv: list[str], doc: str) -> int:
    """Runs the jobs of conf/evaluate.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _evaluate(argv, doc, runs))


def train(argv: list[str], doc: str) -> int:
    """Runs conf/train.yaml with the overrides `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _train(argv, doc, runs))


def sweep(argv: list[str], doc: str) -> int:
    """Trains once for each combination of the values in `argv`; returns the exit code. `doc` is the script's own help."""
    return _guarded(lambda runs: _sweep(argv, doc, runs))


def calibrate(what: str, argv: list[str], doc: str) -> int:
    """Fills the table of measured prices (`fill`) or holds it against whole models (`calibrate`); returns the exit code."""
    return _guarded(lambda runs: _calibrate(what, argv, doc))


def _guarded(work: Callable[[list[Tracker]], int]) -> int:
    """The exit code of `work`, with every error in one line. `work` puts the run's tracker into the list it is given."""
    runs: list[Tracker] = []
    pressed: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)
        return work(runs)
    except KeyboardInterrupt:
        return _say(_NOTHING, INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has gone; the job stops as a pipe's writer does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _say("error: nobody reads the output any more", ERROR)
    except MemoryError:
        return _say("error: there is not enough memory for this model", ERROR)
    except ValueError as e:
        if type(e).__module__.startswith("cgorl"):
            return _say(f"error: {e}", ERROR)
        return _fault(runs)
    except Exception as e:
        if pressed and isinstance(e, ImportError):  # what an interrupt becomes inside a compiled module's start
            return _say(_NOTHING, INTERRUPTED)
        return _fault(runs)


def _heed_no_more() -> None:
    """From here on Ctrl-C is not heard: what is there is written whole and said, so that no file appears behind a 'nothing was written'."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _optimize(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('optimize')}", flush=True)
        return 0 if argv else ERROR
    cfg = config.load_config("optimize", argv)
    options: dict[str, Any] = config.plain(cfg)
    config.check(options)
    from pathlib import Path

    from rich.console import Console

    from cgorl import jobs
    from cgorl.pipeline import Refused
    from cgorl.report.screen import Screen, show
    from cgorl.search.searcher import Budget
    from cgorl.tracking import Tracker

    console = Console()
    graph = jobs.load(cfg)
    tracker = Tracker(options["runs"], "optimize", Path(str(options["model"])).stem)
    runs.append(tracker)
    try:
        with Screen(console, Budget(options["seconds"], options["expansions"], options["evaluations"])) as screen:

            def tell(stage: str, progress: Any) -> None:
                if stage == "save":
                    _heed_no_more()
                screen.tell(stage, progress)

            done = jobs.optimize(cfg, graph, tell, tracker)
    except Refused as e:
        tracker.write("summary.json", {"status": "refused", "why": str(e)})
        return _say(f"refused: {e}", CODES["refused"])
    show(done, console, tracker.folder)
    sys.stdout.flush()
    if options["exit_codes"] == "detailed":
        return DETAILED.get(done.status.value, CODES[done.status.value])
    return CODES[done.status.value]


def _rules(argv: list[str], doc: str) -> int:
    from cgorl import config

    if {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('rules')}", flush=True)
        return 0
    words = [a for a in argv if "=" not in a]
    cfg = config.load_config("rules", [a for a in argv if "=" in a])
    options: dict[str, Any] = config.plain(cfg)
    config.check(options)
    command = words.pop(0) if words and words[0] in ("verify", "catalogue") else ""
    chosen = config.narrowed(config.rule_set(options["rules"]), [*words, *([options["rule"]] if options["rule"] else [])])
    from pathlib import Path

    from rich.console import Console

    from cgorl import jobs
    from cgorl.report.rules import listing, places
    from cgorl.report.rules.catalogue import catalogue

    console = Console()
    if command == "verify":
        from cgorl.rules.proof import verify_all

        proofs = verify_all(chosen, options["seed"], options["instances"])
        listing.show_proofs(proofs, console)
        return 0 if all(p.ok for p in proofs) else CODES["proof failed"]
    if command == "catalogue":
        entries = catalogue(jobs.models(cfg), chosen, jobs.cost(cfg), rounds=2)
        listing.show_catalogue(entries, console)
        if options["output"]:
            listing.write_catalogue(entries, Path(options["output"]), " ".join(["python scripts/rules.py", *argv]))
        return 0
    if options["model"]:
        graph, cost = jobs.simplified(cfg), jobs.cost(cfg)
        if options["why"]:
            listing.show_reasons(places.why_not(graph, chosen, str(options["why"])), console)
        else:
            listing.show_places(places.places(graph, chosen, cost), console, options["shown"])
    else:
        listing.show_rules(tuple(chosen), console)
    if options["output"]:
        try:
            written = listing.draw(chosen, Path(options["output"]))
        except OSError as e:
            raise config.ConfigError(f"cannot draw into the folder '{options['output']}': {e.strerror or e}") from None
        console.print(f"drawn     {len(written) - 1} pictures, {written[-1]}", highlight=False, soft_wrap=True)
    return 0


def _evaluate(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('evaluate')}", flush=True)
        return 0 if argv else ERROR
    from pathlib import Path

    from rich.console import Console

    from cgorl.evaluation.plan import plan

    console = Console(width=None if sys.stdout.isatty() else 120)
    if chosen := [text.partition("=")[2] for text in argv if text.startswith("experiment=")]:
        return _experiment(chosen[-1], [text for text in argv if not text.startswith("experiment=")], console)
    todo = plan(argv)
    from cgorl.evaluation.run import evaluate, save  # from here on pandas and matplotlib: what was said is right
    from cgorl.report import tables
    from cgorl.tracking import Tracker

    tracker = Tracker(todo.jobs[0].cfg.runs, "evaluate", "_".join(dict.fromkeys(Path(str(j.keys["model"])).stem for j in todo.jobs)))
    runs.append(tracker)
    tracker.write("config.yaml", "".join(f"--- # job {j.number}: {j.words}\n{config.yaml(j.cfg)}" for j in todo.jobs))
    with tables.Board(console, len(todo.jobs)) as board:
        done = evaluate(todo, _listening(board), tracker)
    _heed_no_more()
    written = save(done, tracker.folder)
    tables.show_comparison(done.results, done.curves, console, todo.once)
    console.print(f"run       {tracker.folder}: {', '.join(p.name for p in written)}", highlight=False, markup=False, soft_wrap=True)
    if done.interrupted:
        console.print(f"interrupted: {len(done.results)} of {len(todo.jobs)} jobs are in the table", highlight=False)
        return INTERRUPTED
    statuses = set(done.results["status"])
    return ERROR if "failed" in statuses else CODES["proof failed"] if "proof failed" in statuses else 0


def _calibrate(what: str, argv: list[str], doc: str) -> int:
    if not argv or {"-h", "--help"} & set(argv):
        print(doc, flush=True)
        return 0 if argv else ERROR
    from rich.console import Console

    from cgorl import calibration

    console = Console(width=None if sys.stdout.isatty() else 170)
    try:
        if what == "fill":
            calibration.fill(argv, console)
        else:
            calibration.calibrate(argv, console)
    except KeyboardInterrupt:
        return _say("interrupted; what was measured is in the table", INTERRUPTED)
    return 0


def _experiment(name: str, overrides: list[str], console: Any) -> int:
    from cgorl import config

    config.experiment(name, overrides)
    if name in ("thesis_main", "optimum"):
        return _thesis(name, overrides, console)
    if name in ("curiosity", "transfer"):
        raise config.ConfigError(f"experiment={name} trains: scripts/sweep.py runs it")
    from cgorl.evaluation.landscape import explore, landscape
    from cgorl.report import tables

    what = landscape(overrides)
    with tables.Board(console, sum(len(p.jobs) for p in what.problems)) as board:
        try:
            table = explore(what, _listening(board), board.say)
        except KeyboardInterrupt:
            return _say(f"interrupted; problems that were done are in {what.keys['output']}", INTERRUPTED)
    tables.show_landscape(table, console)
    console.print(f"written   {what.keys['output']}/{name}.csv, {name}.md", highlight=False, markup=False, soft_wrap=True)
    return ERROR if table["error"].notna().any() else 0


def _thesis(name: str, overrides: list[str], console: Any) -> int:
    from cgorl.evaluation.thesis import explore, thesis
    from cgorl.report import tables

    what = thesis(name, overrides)
    with tables.Board(console, len(what.runs)) as board:
        try:
            table = explore(what, _listening(board), board.say)
        except KeyboardInterrupt:
            return _say(f"interrupted; what was done is in {what.keys['output']}", INTERRUPTED)
    console.print(f"written   {what.keys['output']}/{name}.csv, {name}.md", highlight=False, markup=False, soft_wrap=True)
    return ERROR if table["error"].notna().any() else 0


def _train(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    if not argv or {"-h", "--help"} & set(argv):
        print(f"{doc}\n{config.usage('train')}", flush=True)
        return 0 if argv else ERROR
    from pathlib import Path

    from rich.console import Console

    cfg = config.load_config("train", argv)
    config.check(config.plain(cfg))
    from cgorl import training  # torch
    from cgorl.report import trained
    from cgorl.tracking import Tracker

    console = Console()
    tracker = Tracker(cfg.runs, "train", Path(str(cfg.model or "families")).stem)
    runs.append(tracker)
    with trained.Progress(console) as progress:
        done = training.train(cfg, progress, tracker)
    _heed_no_more()
    trained.show(done, console, tracker.folder)
    return INTERRUPTED if done.stopped == "interrupted" else 0


def _sweep(argv: list[str], doc: str, runs: list[Tracker]) -> int:
    from cgorl import config

    words = [a for a in argv if a not in ("-m", "--multirun")]
    if not words or {"-h", "--help"} & set(words):
        print(f"{doc}\n{config.usage('sweep')}", flush=True)
        return 0 if words else ERROR
    from rich.console import Console

    from cgorl import sweep
    from cgorl.report import trained

    if chosen := [w.partition("=")[2] for w in words if w.startswith("experiment=")]:
        return _study(chosen[-1], [w for w in words if not w.startswith("experiment=")])
    launcher = sorted(w for w in words if w.startswith(("hydra/launcher=", "hydra.launcher.")))[::-1]  # which one, then how
    jobs = sweep.jobs([w for w in words if w not in launcher])
    console = Console(width=None if sys.stdout.isatty() else 120)
    if launcher:
        console.print(f"{len(jobs)} jobs by {' '.join(launcher)}", highlight=False, markup=False)
        done = sweep.launched(jobs, launcher)
    else:
        done = sweep.run(jobs, lambda number, words: console.print(f"{number}/{len(jobs)}  {words}", highlight=False), runs)
    trained.show_sweep(done, console)
    if any(d.error == "interrupted" for d in done):
        return INTERRUPTED
    return ERROR if any(d.error for d in done) else 0


def _study(name: str, overrides: list[str]) -> int:
    from rich.console import Console

    from cgorl import studies

    console = Console(width=None if sys.stdout.isatty() else 120)
    study = studies.study(name, overrides)
    try:
        failed = study.run(lambda text: console.print(text, highlight=False, markup=False, soft_wrap=True))
    except KeyboardInterrupt:
        return _say(f"interrupted; what was done is in {study.output}", INTERRUPTED)
    console.print(f"written   {study.output}/{name}.csv, {name}.md", highlight=False, markup=False, soft_wrap=True)
    return ERROR if failed else 0


def _listening(board: Any) -> Any:
    from cgorl.evaluation.run import Listening
    from cgorl.search.searcher import Budget

    def begin(job: Any) -> None:
        board.begin(job.number, job.words, Budget(job.cfg.seconds, job.cfg.expansions, job.cfg.evaluations))

    return Listening(begin, board.progress, lambda done: board.end(done.row))


def _say(text: str, code: int) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return code


def _fault(runs: list[Tracker]) -> int:
    """An error that is cgorl's own: the traceback goes to the run's folder, the screen gets one line."""
    text = traceback.format_exc()
    said = f"error: a fault of cgorl's: {text.strip().splitlines()[-1]}"
    try:
        return _say(f"{said} (details in {runs[0].write('error.txt', text)})" if runs else said, ERROR)
    except ValueError:  # the folder cannot be written to
        return _say(said, ERROR)
