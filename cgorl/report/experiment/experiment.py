"""Experiment: runs of one kind that are compared, in tables that pandas users know how to go on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Experiment(NamedTuple):
    """Runs of one kind (`train`, `optimize` or `evaluate`) that are compared.

    `jobs` has a row for each job, those that failed or never ran as well: job, run (its folder's name), folder, method (what
    tells it from the others, but for the seed), seed, state, error, change (best over first cost, %, a mean over graphs).
    `metrics` is tidy and wide: a row for each line of metrics, with job, run, method, seed, the configuration as `config.<key>`
    and each metric under its own name; how often each rule was used is `rules/<rule>`.
    `results` has a row for each job and graph: problem, method, seed, initial_ms, cost_ms, seconds, stopped, and of searches
    evaluations, expansions, status. `curves` has the points of searches: job, evaluations, seconds, best_ms.
    `used` has a row for each rule of the best rewrites of a job: job, method, rule, count.
    `varied` are the keys that tell the jobs apart. `origin` says how it was made: command, commit, machine, date, each once.
    """

    kind: str
    jobs: pd.DataFrame
    metrics: pd.DataFrame
    results: pd.DataFrame
    curves: pd.DataFrame
    used: pd.DataFrame
    varied: tuple[str, ...]
    origin: Mapping[str, tuple[str, ...]]
    paths: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """What to call it."""
        return ", ".join(p.resolve().name for p in self.paths)

    @property
    def methods(self) -> list[str]:
        """The methods in the order of the jobs."""
        return list(dict.fromkeys(str(m) for m in self.jobs["method"]))
