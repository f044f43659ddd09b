"""Studies: experiments that train, one command each: curiosity and transfer (conf/experiment/)."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cgorl import config, sweep
from cgorl.config import ConfigError
from cgorl.evaluation.landscape import kept, write
from cgorl.evaluation.plan import expand, job_of
from cgorl.evaluation.run import run as searched
from cgorl.report import studied
from cgorl.report.experiment.kept import lines, mapping
from cgorl.report.provenance import provenance
from cgorl.tracking import METRICS
from cgorl.training import CHECKPOINT, POLICY
from cgorl.zoo.families import Drawn, Families

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Study:
    """An experiment as configured, and how it was called."""

    name: str
    keys: Mapping[str, Any]
    command: str

    @property
    def output(self) -> str:
        """The folder that the table and the page are kept in."""
        return str(self.keys["output"])

    def run(self, tell: Tell = lambda text: None) -> int:
        """Runs what the folder does not hold yet, keeping each training as it ends; how many failed. Raises KeyboardInterrupt."""
        return _curiosity(self, tell) if self.name == "curiosity" else _transfer(self, tell)


def study(name: str, overrides: Sequence[str]) -> Study:
    """The experiment of that name, with overrides of its keys. Raises ConfigError."""
    if name not in ("curiosity", "transfer"):
        raise ConfigError(f"scripts/sweep.py runs experiment=curiosity and experiment=transfer; {name} is one of scripts/evaluate.py")
    keys, left = config.experiment(name, overrides)
    if left:
        raise ConfigError(f"experiment={name} has no key '{left[0].partition('=')[0]}'; it has {', '.join(keys)}")
    for key in ("seeds", "graphs"):
        if key in keys and (not isinstance(keys[key], int) or isinstance(keys[key], bool) or keys[key] < 1):
            raise ConfigError(f"{key} must be a whole number of at least 1, not {keys[key]!r}")
    return Study(name, keys, shlex.join(["python", "scripts/sweep.py", f"experiment={name}", *overrides]))


class _Table:
    """The rows of a study, each kept as it comes."""

    def __init__(self, what: Study, about: str) -> None:
        self._what, self._folder = what, Path(what.output)
        self.rows = kept(self._folder / f"{what.name}.csv")
        self._origin = {"about": about, **provenance(), "command": what.command}

    def holds(self, settings: str) -> bool:
        """Whether something with these settings is there and did not fail."""
        return len(self.rows) > 0 and bool(((self.rows["settings"] == settings) & self.rows["error"].isna()).any())

    def add(self, rows: Sequence[Mapping[str, Any]], settings: str) -> None:
        """Keeps rows in the place of those with the same settings."""
        fresh = pd.DataFrame([{**r, "settings": settings, **self._origin} for r in rows])
        old = self.rows[self.rows["settings"] != settings] if len(self.rows) else self.rows
        self.rows = pd.concat([old, fresh], ignore_index=True) if len(old) else fresh
        page = studied.curiosity if self._what.name == "curiosity" else studied.transfer
        write(self._folder, self._what.name, self.rows, page(self.rows))


def _settings(*words: object) -> str:
    return hashlib.blake2b(repr(words).encode(), digest_size=6).hexdigest()


def _curiosity(what: Study, tell: Tell) -> int:
    keys, table, failed = what.keys, _Table(what, str(what.keys["common"])), 0
    common = str(keys["common"]).split()
    for seed in range(1, keys["seeds"] + 1):  # seed by seed: what an interrupt leaves compares all
        for words in keys["compared"]:
            for chosen in expand("train", [*str(words).split(), f"seed={seed}"]):
                settings = _settings(common, sorted(chosen.items()))
                told = " ".join(f"{k}={v}" for k, v in chosen.items())
                if table.holds(settings):
                    tell(f"{told}: there already")
                    continue
                tell(told)
                done = _trained(what, sweep.Job(1, told, (*common, *(f"{k}={v}" for k, v in chosen.items()))), settings, tell)
                if done.error == sweep.INTERRUPTED:
                    raise KeyboardInterrupt
                failed += bool(done.error)
                if done.error:
                    tell(f"  failed: {done.error}")
                kind = " ".join(f"{k}={v}" for k, v in chosen.items() if k != "seed")
                learnt = {} if done.error else _learnt(Path(done.folder))
                table.add([{"training": kind, "seed": seed, "share": done.share, **learnt, "error": done.error or None}], settings)
    return failed


def _trained(what: Study, job: sweep.Job, settings: str, tell: Tell, values: Mapping[str, Any] | None = None) -> sweep.Done:
    """A training as it ended, gone on with from its last checkpoint where the study was stopped or killed after that."""
    runs = config.load_config("sweep", [w for w in job.overrides if w.startswith("runs=")]).runs
    for file in sorted(Path(runs).glob(f"train/*/{sweep.JOB}"), reverse=True):
        told = mapping(file)
        if told.get("settings") == settings:  # the newest: where it failed by itself, it would again
            if (file.parent / CHECKPOINT).is_file() and told.get("error", "") in ("", sweep.INTERRUPTED):
                tell(f"  goes on from {file.parent}")
                job = job._replace(overrides=(*job.overrides, f"{_RESUME}{file.parent / CHECKPOINT}"))
            break
    return sweep.one(job, what.name, values=values, settings=settings)


_RESUME = "resume="


def _lines(folder: Path) -> dict[int, dict[str, float]]:
    """Metrics by steps, of the run in the folder and of those that it went on from."""
    overrides = mapping(folder / sweep.JOB)["overrides"]
    before = next((w.removeprefix(_RESUME) for w in overrides if w.startswith(_RESUME)), None)
    found = _lines(Path(before).parent) if before else {}
    return found | {int(t["global_step"]): t for t in lines(folder / METRICS)}


def _learnt(folder: Path) -> dict[str, Any]:
    """Of a training that has ended: its steps, the share of the first cost at which episodes of the last quarter end, the best by steps."""
    told = list(_lines(folder).values())
    steps = told[-1]["global_step"]
    ends = [t["cost/final_share"] for t in told if t["global_step"] > 0.75 * steps and "cost/final_share" in t]
    curve, best = ["0:1"], 1.0
    for t in told:
        if t["cost/best_share"] < best:
            best = t["cost/best_share"]
            curve.append(f"{t['global_step']:.0f}:{best:.7g}")
    return {"final_share": sum(ends) / len(ends) if ends else None, "steps": int(steps), "curve": " ".join(curve)}


def _transfer(what: Study, tell: Tell) -> int:
    keys, failed = what.keys, 0
    families: Families | None = config.build(config.load_config("train", [f"families={keys['families']}"]).families) or None
    if families is None:
        raise ConfigError(f"families must name some, one of which is left out at a time, not '{keys['families']}'")
    if unknown := [f for f in keys["only"] if f not in families.draw]:
        raise ConfigError(f"families={keys['families']} has no family '{unknown[0]}'; it has {', '.join(families.draw)}")
    about = (
        f"{keys['common']} families={keys['families']}; then {keys['evaluations']} evaluations, or {keys['seconds']} seconds of training"
    )
    common, table = str(keys["common"]).split(), _Table(what, about)
    for seed in range(1, keys["seeds"] + 1):
        for family in keys["only"] or families.draw:
            rest = {k: dict(v) for k, v in families.draw.items() if k != family}
            settings = _settings(common, {k: v for k, v in keys.items() if k not in ("output", "seeds", "only")}, family, seed)
            if table.holds(settings):
                tell(f"{family} left out, seed {seed}: there already")
                continue
            tell(f"training without {family}, seed {seed}")
            words = (*common, f"families={keys['families']}", f"seed={seed}")
            done = _trained(what, sweep.Job(1, f"without_{family}", words), settings, tell, {"families.draw": rest})
            if done.error == sweep.INTERRUPTED:
                raise KeyboardInterrupt
            if done.error:
                failed += 1
                tell(f"  failed: {done.error}")
                table.add([{"family": family, "seed": seed, "graph": None, "method": None, "change": None, "error": done.error}], settings)
                continue
            policy = Path(done.folder) / POLICY
            graphs = Families({family: families.draw[family]}, keys["graphs"]).drawn(1000 + seed)
            rows = [r for graph in graphs for r in _tried(what, graph, policy, seed, tell)]
            failed += sum(1 for r in rows if r["error"])
            table.add([{"family": family, "seed": seed, **r} for r in rows], settings)
    return failed


def _tried(what: Study, graph: Drawn, policy: Path, seed: int, tell: Tell) -> list[dict[str, Any]]:
    keys = what.keys
    zoo = {f"zoo.{k}": str(v).replace(" ", "") for k, v in graph.parameters.items()}
    limits = {"evaluations": str(keys["evaluations"]), "seconds": "null"}
    # searched is with the prices and rules of the training
    told = {"device": str(config.defaults("train")["device"])}
    told |= dict(w.split("=", 1) for w in str(keys["common"]).split() if w.startswith(("device", "cost", "rules")))
    methods = {m: {**limits, **_words(words)} for m, words in keys["methods"].items()}
    methods |= {m: {**limits, **_words(words), "search.checkpoint": str(policy)} for m, words in keys["zero_shot"].items()}
    methods |= {
        m: {"seconds": str(keys["seconds"]), **_words(words), "search.checkpoint": str(policy)} for m, words in keys["trained"].items()
    }
    rows = []
    for method, words in methods.items():
        job = job_of({"model": graph.name, **zoo, **told, "seed": str(seed), **words}, [])
        [ended] = list(searched([job]))
        if ended.row["stopped"] == "interrupted":
            raise KeyboardInterrupt
        change = None if ended.found is None else 100 * (ended.found.cost_ms / ended.found.initial_cost_ms - 1)
        spent = {k: ended.row.get(k) for k in ("evaluations", "cpu_seconds", "stopped")}
        rows.append({"graph": str(graph), "method": method, "change": change, **spent, "error": ended.row["error"]})
        tell(f"  {graph}, {method}: " + (f"{change:.2f} %" if change is not None else str(ended.row["error"])))
    return rows


def _words(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())
