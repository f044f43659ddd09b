"""Thesis: experiments that hold the agent against every baseline at equal evaluations (thesis_main, optimum in conf/experiment/)."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cgorl import config, jobs
from cgorl.config import ConfigError
from cgorl.evaluation.landscape import kept, write
from cgorl.evaluation.plan import Job, job_of
from cgorl.evaluation.run import Done, Listening, run
from cgorl.report.provenance import provenance
from cgorl.report.thesis import page

NAMES = ("thesis_main", "optimum")


class Run(NamedTuple):
    """One search of the experiment: on which problem, by which method, with which seed."""

    problem: str
    method: str
    job: Job


class Thesis(NamedTuple):
    """The experiment as configured and how it was called."""

    name: str
    runs: tuple[Run, ...]
    keys: Mapping[str, Any]
    command: str


def thesis(name: str, overrides: Sequence[str]) -> Thesis:
    """The experiment of that name with overrides of its keys, such as `seeds=3` or `only=[nasnet_a]`. Raises ConfigError."""
    keys, left = config.experiment(name, overrides)
    if left:
        raise ConfigError(f"experiment={name} has no key '{left[0].partition('=')[0]}'; it has {', '.join(keys)}")
    if not isinstance(keys["seeds"], int) or isinstance(keys["seeds"], bool) or keys["seeds"] < 1:
        raise ConfigError(f"seeds must be a whole number of at least 1, not {keys['seeds']!r}")
    if unknown := [p for p in keys["only"] if p not in keys["problems"]]:
        raise ConfigError(f"there is no problem '{unknown[0]}'; there are {', '.join(keys['problems'])}")
    methods = {m: ({"evaluations": str(keys["evaluations"])}, words) for m, words in keys["methods"].items()}
    if keys["learn"]:
        methods |= {m: ({"evaluations": str(keys["trained_evaluations"])}, words) for m, words in keys["trained"].items()}
    memo: config.Memo = {}
    found: list[Run] = []
    for problem, about in keys["problems"].items():
        if keys["only"] and problem not in keys["only"]:
            continue
        for method, (limit, words) in methods.items():
            said = {"device": keys["device"], "seconds": "null", **limit, **_words(about), **_words(words)}
            seeded = config.has("search", said["search"], "seed")
            for seed in range(1, keys["seeds"] + 1) if seeded else [0]:
                job = job_of({**said, "seed": str(seed)}, [], memo)
                told = {"problem": problem, "method": method, **({"seed": seed} if seeded else {})}
                found.append(Run(problem, method, job._replace(number=len(found) + 1, keys={**job.keys, **told})))
    return Thesis(name, tuple(found), keys, shlex.join(["python", "scripts/evaluate.py", f"experiment={name}", *overrides]))


def _words(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def explore(what: Thesis, listen: Listening | None = None, tell: Callable[[str], None] = lambda text: None) -> pd.DataFrame:
    """Runs what the output folder does not hold yet or what failed there, keeping each as it is done; the whole table.

    Raises TrackError.
    """
    folder = Path(what.keys["output"])
    table, origin = kept(folder / f"{what.name}.csv"), provenance()
    table = table[table["error"].isna()] if len(table) else table
    todo = []
    for r in what.runs:
        settings = _settings(r.job)
        if len(table) and ((table["settings"] == settings) & (table["problem"] == r.problem) & (table["method"] == r.method)).any():
            tell(f"{r.problem}, {r.method}: in {folder / what.name}.csv already")
        else:
            todo.append(r)
    of = {r.job.number: r for r in todo}
    for done in run([r.job for r in todo], listen):
        if listen is not None:
            listen.end(done)
        if done.row["stopped"] == "interrupted":
            raise KeyboardInterrupt
        row = {**_row(of[done.job.number], done), "settings": _settings(done.job), **origin, "command": what.command}
        table = pd.concat([table, pd.DataFrame([row])], ignore_index=True)
        write(folder, what.name, table, page(table))
    write(folder, what.name, table, page(table))
    return table


def _row(r: Run, done: Done) -> dict[str, Any]:
    row = {k: v for k, v in done.row.items() if k not in ("job", "search", "status")}
    points = " ".join(f"{p['evaluations']}:{p['best_ms']:.7g}" for p in done.curve)
    return {"problem": r.problem, "method": r.method, **row, "curve": points}


def _settings(job: Job) -> str:
    """12 hex digits that stand for all that a row depends on but the code; of a trained policy also its file."""
    options = {k: v for k, v in config.plain(job.cfg).items() if k != "runs"}
    options["rules"].pop("own", None)  # the digest tells what is in the file
    text = json.dumps([options, jobs.parts(job.cfg).rules.digest], sort_keys=True)
    return hashlib.blake2b(text.encode() + _policy(job), digest_size=6).hexdigest()


def _policy(job: Job) -> bytes:
    if job.keys["search"] != "agent":
        return b""
    from cgorl.search.agent import GENERAL

    path = Path(job.cfg.search.checkpoint or GENERAL)
    return hashlib.blake2b(path.read_bytes()).digest() if path.is_file() else b""
