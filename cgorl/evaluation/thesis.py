"""Thesis: experiments that hold the agent against every baseline at equal evaluations (thesis_main, optimum in conf/experiment/)."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cgorl import config
from cgorl.config import ConfigError
from cgorl.evaluation.landscape import kept, write
from cgorl.evaluation.plan import Job, job_of
from cgorl.evaluation.run import Done, Listening, run
from cgorl.report import optimum
from cgorl.report import thesis as claimed
from cgorl.report.provenance import provenance

NAMES = ("thesis_main", "optimum")


class Run(NamedTuple):
    """One search of the experiment: on which problem, by which method, with which seed.

    `after` is a method that has to run first: what it took is what this one has, in seconds by the clock. `words` are the job's.
    """

    problem: str
    method: str
    job: Job
    after: str = ""
    words: Mapping[str, str] = {}


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
    for key in ("seeds", "evaluations", "times"):
        if not isinstance(keys[key], int) or isinstance(keys[key], bool) or keys[key] < 1:
            raise ConfigError(f"{key} must be a whole number of at least 1, not {'null' if keys[key] is None else repr(keys[key])}")
    if unknown := [p for p in keys["only"] if p not in keys["problems"]]:
        raise ConfigError(f"there is no problem '{unknown[0]}'; there are {', '.join(keys['problems'])}")
    learn = ("trained", "as_long") if keys["learn"] else ()
    there = [m for group in ("methods", "trained", "as_long") for m in keys[group]]
    if unknown := [m for m in keys["without"] if m not in there]:
        raise ConfigError(f"there is no method '{unknown[0]}'; there are {', '.join(there)}")
    methods = [(group, m, words) for group in ("methods", *learn) for m, words in keys[group].items() if m not in keys["without"]]
    first = next(iter(keys["trained"]), "")
    memo: config.Memo = {}
    found: list[Run] = []
    for problem, about in keys["problems"].items():
        if keys["only"] and problem not in keys["only"]:
            continue
        for group, method, words in methods:
            said = {"device": keys["device"], "seconds": "null", "evaluations": str(keys["evaluations"]), **_words(about)}
            if group != "methods":
                said["evaluations"] = str(int(said["evaluations"]) * keys["times"]) if group == "trained" else "null"
            said |= _words(words)
            seeded = config.has("search", said["search"], "seed")
            base = job_of(said, [], memo)
            for seed in range(1, keys["seeds"] + 1) if seeded else [0]:
                told = {"problem": problem, "method": method, **({"seed": seed} if seeded else {})}
                job = base._replace(number=len(found) + 1, keys={**base.keys, **told}, cfg=_seeded(base.cfg, seed))
                found.append(Run(problem, method, job, first if group == "as_long" else "", said))
    return Thesis(name, tuple(found), keys, shlex.join(["python", "scripts/evaluate.py", f"experiment={name}", *overrides]))


def _seeded(cfg: Any, seed: int) -> Any:
    found = deepcopy(cfg)
    found.seed = seed
    if "seed" in found.search:
        found.search.seed = seed
    return found


def _words(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def explore(what: Thesis, listen: Listening | None = None, tell: Callable[[str], None] = lambda text: None) -> pd.DataFrame:
    """Runs what the output folder does not hold yet or what failed there, keeping each as it is done; the whole table.

    Raises TrackError.
    """
    folder, page = Path(what.keys["output"]), optimum.page if what.name == "optimum" else claimed.page
    table, origin = kept(folder / f"{what.name}.csv"), provenance()
    table = table[table["error"].isna()] if len(table) else table
    todo = []
    settings_of = {r.job.number: _settings(r.job) for r in what.runs}
    for r in what.runs:
        settings = settings_of[r.job.number]
        if len(table) and ((table["settings"] == settings) & (table["problem"] == r.problem) & (table["method"] == r.method)).any():
            tell(f"{r.problem}, {r.method}: in {folder / what.name}.csv already")
        else:
            todo.append(r)
    of = {r.job.number: r for r in todo}

    def due() -> Iterator[Job]:  # each is asked for once those before it are in the table
        for r in todo:
            yield _timed(r, table) if r.after else r.job

    for done in run(due(), listen):
        if listen is not None:
            listen.end(done)
        if done.row["stopped"] == "interrupted":
            raise KeyboardInterrupt
        row = {**_row(of[done.job.number], done), "settings": settings_of[done.job.number], **origin, "command": what.command}
        table = pd.concat([table, pd.DataFrame([row])], ignore_index=True)
        write(folder, what.name, table, page(table))
    write(folder, what.name, table, page(table))
    return table


def _timed(r: Run, table: pd.DataFrame) -> Job:
    """The job with the seconds that the method took after which it comes (the median of its seeds)."""
    ran = table[(table["problem"] == r.problem) & (table["method"] == r.after) & table["cost_ms"].notna()]
    seconds = float(ran["seconds"].astype(float).median()) if len(ran) else 0.0
    job = job_of({**r.words, "seconds": f"{max(1.0, seconds):.0f}"}, [])
    return r.job._replace(cfg=_seeded(job.cfg, r.job.cfg.seed))


def _row(r: Run, done: Done) -> dict[str, Any]:
    row = {k: v for k, v in done.row.items() if k not in ("job", "search", "status")}
    points = " ".join(f"{p['evaluations']}:{p['best_ms']:.7g}" for p in done.curve)
    return {"problem": r.problem, "method": r.method, **row, "curve": points}


def _settings(job: Job) -> str:
    """12 hex digits that stand for all that a row depends on but the code; of a trained policy also its file."""
    options = {k: v for k, v in config.plain(job.cfg).items() if k != "runs"}
    digest = _digest(json.dumps(options["rules"]))
    options["rules"].pop("own", None)  # the digest tells what is in the file
    text = json.dumps([options, digest], sort_keys=True)
    return hashlib.blake2b(text.encode() + _policy(job), digest_size=6).hexdigest()


@cache
def _digest(rules: str) -> str:
    return config.rule_set(json.loads(rules)).digest


def _policy(job: Job) -> bytes:
    from cgorl.search.agent import GENERAL, policy_file

    if job.keys["search"] not in ("agent", "agent_train"):
        return b""
    path = policy_file(job.cfg.search.checkpoint) or (GENERAL if job.keys["search"] == "agent" else None)
    if path is None:
        return b""
    return hashlib.blake2b(path.read_bytes()).digest() if path.is_file() else b""
