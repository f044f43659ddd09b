"""Plan: the jobs of an evaluation, told apart by the keys that say what each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config, jobs, pipeline, zoo
from cgorl.config import ConfigError

PROBLEM = ("model", "rules", "device", "cost")
"""The keys, with those inside their groups, that say what is to be optimized; all others say how."""
BUDGET = ("seconds", "expansions", "evaluations")


class Job(NamedTuple):
    """One search on one graph: its number from 1 on, the columns that tell it apart, and its configuration (conf/evaluate.yaml)."""

    number: int
    keys: Mapping[str, Any]
    cfg: Any

    @property
    def words(self) -> str:
        """What it is, in a few words."""
        told = {k: v for k, v in self.keys.items() if v is not None and k != "cost"}
        return " ".join(str(v) if k in (*PROBLEM, "search") else f"{k}={v}" for k, v in told.items())


class Plan(NamedTuple):
    """Jobs in the order in which they run, those of one graph together; `once` are the searches that take no seed."""

    jobs: tuple[Job, ...]
    once: tuple[str, ...]


def plan(overrides: Sequence[str]) -> Plan:
    """The jobs that overrides with several values come to, e.g. `model=bert,nasrnn search=greedy,beam seed=1,2,3`.

    A job that differs from an earlier one only in a key that its search does not have, the seed among them, is left out.
    Everything that can be wrong before a model is read is told now: raises ConfigError and what the parts raise.
    """
    first = config.defaults("evaluate")
    found: list[Job] = []
    seen: list[Mapping[str, str]] = []
    once: dict[str, None] = {}
    memo: config.Memo = {}
    expanded = expand("evaluate", overrides)
    columns = telling(expanded)
    for job in expanded:
        search = job.get("search", first["search"])
        same = job if config.has("search", search, "seed") else {k: v for k, v in job.items() if k != "seed"}
        if same in seen:
            once[search] = None
            continue
        seen.append(same)
        found.append(job_of(job, columns, memo))
    models = list(dict.fromkeys(j.keys["model"] for j in found))
    found.sort(key=lambda j: models.index(j.keys["model"]))
    return Plan(tuple(j._replace(number=k) for k, j in enumerate(found, 1)), tuple(once))


def telling(expanded: Sequence[Mapping[str, str]]) -> list[str]:
    """The keys that tell jobs apart or say what their graph is: those that vary, and those inside a group or of the model."""
    keys = dict.fromkeys(k for job in expanded for k in job)
    return [k for k in keys if "." in k or k in ("unbound", "simplify") or len({job.get(k) for job in expanded}) > 1]


def job_of(overrides: Mapping[str, str], columns: Sequence[str], memo: config.Memo | None = None) -> Job:
    """The job that overrides by key describe, numbered 0, told apart also by the keys among `columns`; limits go by `budget.`.

    Raises ConfigError and what the parts raise.
    """
    first = config.defaults("evaluate")
    cfg = config.load_config("evaluate", [f"{k}={v}" for k, v in overrides.items()], memo=memo)
    jobs.parts(cfg)
    pipeline.check_name(cfg.model)
    keys = {k: overrides.get(k, first.get(k, cfg.model)) for k in (*PROBLEM, "search")}
    keys["seed"] = cfg.search.get("seed")
    for key in columns:
        if key not in (*PROBLEM, "search", "seed"):
            value = _plain(overrides.get(key))
            keys[f"budget.{key}" if key in BUDGET else key] = _short(value) if key.endswith((".file", ".own", ".checkpoint")) else value
    return Job(0, keys, cfg)


def expand(name: str, overrides: Sequence[str]) -> list[dict[str, str]]:
    """The overrides of each job, by key: the product of all values, those of the last key next to each other.

    A key inside a group, such as `search.width=4,8`, is for those choices of the group that have it, and a parameter such as
    `zoo.image=64` for those models of the zoo that have it. Raises ConfigError.
    """
    values: dict[str, list[str]] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"'{text}' should read key=value; {config.hint(name, text)}")
        if key in values:
            raise ConfigError(f"'{key}' is given twice: give all its values at once, as {key}=a,b")
        values[key] = [value] if key in ("output", "runs") else list(config.several(key, value))
        if not values[key]:
            raise ConfigError(f"'{text}' stands for no value at all")
    first = config.defaults(name)

    for key in values:
        group = "model" if key.startswith("zoo.") else key.partition(".")[0]
        if not any(fits(key, {**first, group: choice}) for choice in values.get(group, [first.get(group, "")])):
            if group != "model":
                raise ConfigError(f"there is no key '{key}'; {config.hint(name, key)}")
            known = sorted({p for m in values["model"] if m in zoo.names() for p in zoo.defaults(m)})
            raise ConfigError(f"no model here has a parameter '{key[4:]}'; they have {', '.join(known) or 'none, being files'}")
    found = []
    for chosen in product(*values.values()):
        job = dict(zip(values, chosen, strict=True))
        found.append({k: v for k, v in job.items() if fits(k, {**first, **job})})
    return [job for k, job in enumerate(found) if job not in found[:k]]


def fits(key: str, chosen: Mapping[str, str]) -> bool:
    """Whether a key is one of the chosen model or of the choice that was made in its group."""
    group, _, inner = key.partition(".")
    if group == "zoo" and inner:
        return chosen.get("model", "") in zoo.names() and inner in zoo.defaults(chosen["model"])
    return not inner or group not in chosen or group not in config.groups() or config.has(group, chosen[group], inner)


def _short(file: Any) -> Any:
    """A file by its name, and the folder of its run where all runs call theirs alike."""
    if file in (None, "null"):
        return file
    path = Path(str(file))
    return f"{path.parent.name}/{path.name}" if path.suffix == ".pt" and path.parent.name else path.name


def _plain(text: str | None) -> Any:
    """An override's value as a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return text
