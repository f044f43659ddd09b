"""Landscape: the experiment that asks of graphs, rules and prices whether there is anything to search, before any learning."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cgorl import config, jobs
from cgorl.config import ConfigError
from cgorl.cost.model import CostModel
from cgorl.evaluation.plan import Job, expand, fits, job_of, telling
from cgorl.evaluation.run import Done, Listening, run
from cgorl.ir.graph import Graph
from cgorl.report.landscape import NEAR, barrier, best_after, page, spent_until
from cgorl.report.provenance import provenance
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import LIMITS
from cgorl.search.trace import Step
from cgorl.tracking import TrackError

NAME = "landscape"


class Problem(NamedTuple):
    """A graph, rules and prices, with a job for each method; the last is the long run, called `best`."""

    words: str
    jobs: tuple[Job, ...]


class Landscape(NamedTuple):
    """The experiment as configured: its problems, its own keys (conf/experiment/landscape.yaml), and how it was called."""

    problems: tuple[Problem, ...]
    keys: Mapping[str, Any]
    command: str


def landscape(overrides: Sequence[str]) -> Landscape:
    """The experiment with overrides of its own keys (`best.seconds=60`) and of evaluate's (`model=bert`). Raises ConfigError."""
    keys, left = config.experiment(NAME, overrides)
    _check(keys)
    given = {text.partition("=")[0] for text in left}
    for key in ("search", "seed", "expansions", "evaluations"):
        if key in given:
            raise ConfigError(f"'{key}' is for each method to say, as methods.NAME=\"search=beam search.width=16\"")
    swept = {**keys["sweep"], **{k: v for k, _, v in (text.partition("=") for text in left)}}
    models = list(config.several("model", str(swept["model"])))
    unfit = {k for k in keys["sweep"].keys() - given if not any(fits(k, {"model": m}) for m in models)}
    said = [*(f"{k}={v}" for k, v in keys["sweep"].items() if k not in given | unfit), *left]
    methods = {name: dict(word.split("=", 1) for word in words.split() if "=" in word) for name, words in keys["methods"].items()}
    methods["best"] = {k: "null" if v is None else str(v) for k, v in keys["best"].items()}
    memo: config.Memo = {}
    found, number = [], 0
    expanded = expand("evaluate", said)
    for chosen in expanded:
        mine = []
        for name, words in methods.items():
            number += 1
            job = job_of({**chosen, **words}, telling(expanded), memo)._replace(number=number)
            mine.append(job._replace(keys={**{k: v for k, v in job.keys.items() if k not in ("search", "seed")}, "method": name}))
        about = mine[0]._replace(keys={k: v for k, v in mine[0].keys.items() if k != "method"})
        found.append(Problem(about.words, tuple(mine)))
    return Landscape(tuple(found), keys, " ".join(["python scripts/evaluate.py", f"experiment={NAME}", *overrides]))


def _check(keys: Mapping[str, Any]) -> None:
    """Raises ConfigError for what would be found out only after the first problem."""

    def whole(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1

    if not whole(keys["graphs"]):
        raise ConfigError(f"graphs must be a whole number of at least 1, not {keys['graphs']!r}")
    if not isinstance(keys["marks"], list) or not all(whole(n) for n in keys["marks"]):
        raise ConfigError(f"marks must be whole numbers of at least 1, as marks=[100,300], not {keys['marks']!r}")


def explore(what: Landscape, listen: Listening | None = None, tell: Callable[[str], None] = lambda text: None) -> pd.DataFrame:
    """Runs the problems that the output folder does not hold yet, keeping each there as it is done; the whole table.

    A problem is held if its graph, rules and settings are the same and no method failed. An interrupt drops the problem in
    progress. Raises TrackError where the folder cannot be written to.
    """
    folder = Path(what.keys["output"])
    table = kept(folder / f"{NAME}.csv")
    origin = provenance()
    for problem in what.problems:
        settings = [_settings(job, what.keys) for job in problem.jobs]
        held = table[table["problem"] == problem.words] if len(table) else table
        if len(held) and _same(problem, held, settings):
            tell(f"{problem.words}: in {folder / NAME}.csv already")
            continue
        rows = describe(problem, list(_whole(run(problem.jobs, listen), listen)), what.keys)
        fresh = pd.DataFrame([{**r, "settings": s, **origin, "command": what.command} for r, s in zip(rows, settings, strict=True)])
        if len(table):
            table = pd.concat([table[table["problem"] != problem.words], fresh], ignore_index=True)
        else:
            table = fresh
        write(folder, NAME, table, page(table, what.keys["marks"]))
    return table


def describe(problem: Problem, done: Sequence[Done], keys: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each method of a problem, with what is true of the problem in each."""
    ran = [d for d in done if d.found is not None]
    facts: dict[str, Any] = {}
    if ran:
        best = min(ran, key=lambda d: (d.found.cost_ms, d.found.evaluations) if d.found else (math.inf, 0))
        assert best.found is not None and best.start is not None and best.parts is not None
        known, initial = best.found.cost_ms, best.found.initial_cost_ms
        greedy = next((d.found.cost_ms for d in ran if d.found and d.job.keys["method"] == "greedy"), math.nan)
        way = barrier([initial, *(s.after_ms for s in best.found.trace)])
        cost = jobs.cost(best.job.cfg)
        graphs = list(_way(best.start, best.found.trace, int(keys["graphs"])))
        first, along = moves(graphs[:1], best.parts.rules, cost), moves(graphs, best.parts.rules, cost)
        facts = {
            **{"best_ms": known, "best_method": best.job.keys["method"], "room": (greedy - known) / initial if initial else 0.0},
            **{"moves": sum(first), **_shares("", first), **_shares("way_", along), "way_graphs": len(graphs)},
            **{"depth": way.depth, "height": way.height_ms / initial if initial else 0.0},
        }
    rows = []
    for d in done:
        row = {"problem": problem.words, **{k: v for k, v in d.row.items() if k != "job"}, **facts}
        if d.found is not None:
            by_itself = d.found.stopped not in LIMITS
            row |= {f"at_{n}": best_after(d.curve, n, by_itself) for n in keys["marks"]}
            row["evaluations_to_own"] = spent_until(d.curve, d.found.cost_ms)
            row["evaluations_to_known"] = spent_until(d.curve, facts["best_ms"] * (1 + NEAR))
        rows.append(row)
    return rows


def moves(graphs: Iterable[Graph], rules: RuleSet, cost: CostModel) -> tuple[int, int, int]:
    """How many matches in the graphs lower, keep and raise the cost (by more than a billionth of it)."""
    lower = keep = higher = 0
    for graph in graphs:
        least = 1e-9 * cost.cost_ms(graph)
        for match in MatchSet(graph, rules):
            gain = cost.gain(graph, match.edit)
            lower += gain > least
            higher += gain < -least
            keep += abs(gain) <= least
    return lower, keep, higher


def _shares(prefix: str, counts: tuple[int, int, int]) -> dict[str, float]:
    total = sum(counts)
    return {f"{prefix}{k}": n / total if total else math.nan for k, n in zip(("lower", "keep", "raise"), counts, strict=True)}


def _way(start: Graph, trace: Sequence[Step], most: int) -> Iterator[Graph]:
    """The start and further graphs before each rewrite of a trace, at most so many, evenly spread."""
    wanted = {round(k * max(0, len(trace) - 1) / max(1, most - 1)) for k in range(most)}
    graph = start
    for k, step in enumerate(trace):
        if k in wanted:
            yield graph
        graph = graph.replace(step.match.edit)
    if not trace:
        yield start


def _whole(done: Iterable[Done], listen: Listening | None) -> Iterator[Done]:
    """The same; an interrupted search ends it all, since it is not what the settings say."""
    for d in done:
        if listen is not None:
            listen.end(d)
        if d.row["stopped"] == "interrupted":
            raise KeyboardInterrupt
        yield d


def _settings(job: Job, keys: Mapping[str, Any]) -> str:
    """12 hex digits that stand for all that a row depends on but its graph and rules."""
    options = {k: v for k, v in config.plain(job.cfg).items() if k not in ("model", "zoo", "rules", "runs")}
    text = json.dumps([options, keys["marks"], keys["graphs"]], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _same(problem: Problem, held: pd.DataFrame, settings: Sequence[str]) -> bool:
    if list(held["settings"]) != list(settings) or held["error"].notna().any():
        return False
    cfg = problem.jobs[0].cfg
    return bool((held["rules_digest"] == jobs.parts(cfg).rules.digest).all() and (held["graph_key"] == jobs.simplified(cfg).key).all())


def kept(path: Path) -> pd.DataFrame:
    """The table of an earlier run; empty where there is none. Raises TrackError."""
    if not path.exists():
        return pd.DataFrame()
    try:
        table = pd.read_csv(path, dtype={"settings": str, "rules_digest": str, "graph_key": str, "commit": str, "error": str})
    except (OSError, ValueError) as e:
        raise TrackError(f"'{path}' cannot be read as the table of an earlier run: {' '.join(str(e).split())}") from None
    if not {"settings", "error"} <= set(table):
        raise TrackError(f"'{path}' is no table of an earlier run: name another folder as output, or take it away")
    return table


def write(folder: Path, name: str, table: pd.DataFrame, text: str) -> None:
    """Writes `name`.csv and `name`.md, each replaced whole, so that an interrupt leaves the one before. Raises TrackError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in ((f"{name}.csv", table.to_csv(index=False, float_format="%.9g")), (f"{name}.md", text)):
            (folder / f"{file}.part").write_text(content, encoding="utf-8")
            (folder / f"{file}.part").replace(folder / file)
    except OSError as e:
        raise TrackError(f"cannot write into '{folder}': {e.strerror or e}") from None
