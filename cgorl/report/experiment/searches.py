"""Searches: runs of optimize.py, and tables of evaluate.py -> the tables of an experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cgorl.report.compare import labelled
from cgorl.report.experiment import words
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.kept import configuration, lines, mapping
from cgorl.report.experiment.kinds import EVALUATE, OPTIMIZE, ReportError
from cgorl.report.experiment.trainings import USED, framed, rules_of
from cgorl.report.metrics.log import Log
from cgorl.tracking import METRICS

_NEEDED = ("initial_ms", "cost_ms")
_KEPT = ("job", "seed", "initial_ms", "cost_ms", "evaluations", "expansions", "seconds", "cpu_seconds", "stopped", "status", "error")


def of_evaluations(folders: Sequence[Path]) -> Experiment:
    """The jobs of evaluations: of their tables, or before there is one of the lines that each job left."""
    results: list[pd.DataFrame] = []
    curves, used = [], []
    for folder in folders:
        at = sum(map(len, results))
        rows = _table(folder / "table") if (folder / "table.parquet").is_file() or (folder / "table.csv").is_file() else _rows(folder)
        first = {int(j): at + k for k, j in enumerate(rows["job"], 1)}
        points = _table(folder / "curves") if (folder / "curves.parquet").is_file() or (folder / "curves.csv").is_file() else None
        for told in _traces(folder):
            used += [{"job": first.get(told[0], 0), "rule": rule, "count": n} for rule, n in told[1].items()]
        results.append(rows.assign(job=[first[int(j)] for j in rows["job"]]))
        if points is not None:
            curves.append(points.assign(job=[first[int(j)] for j in points["job"]]))
    return _tables(pd.concat(results, ignore_index=True), pd.concat(curves, ignore_index=True) if curves else pd.DataFrame(), used)


def of_files(files: Sequence[Path]) -> Experiment:
    """The jobs of tables of results, as evaluate.py and its experiments write them. Raises ReportError."""
    rows = pd.concat([_table(f.with_suffix(""), f.suffix) for f in files], ignore_index=True)
    rows["job"] = range(1, len(rows) + 1)
    points = []
    for job, told in zip(rows["job"], rows.get("curve", []), strict=False):
        for point in str(told).split() if pd.notna(told) else ():
            spent, _, ms = point.partition(":")
            points.append({"job": job, "evaluations": float(spent), "best_ms": float(ms)})
    made = _tables(rows.drop(columns=["curve"], errors="ignore"), pd.DataFrame(points), [])
    origin = {k: tuple(dict.fromkeys(str(v) for v in rows[k].dropna())) for k in ("command", "commit", "machine", "date") if k in rows}
    return made._replace(origin=origin)


def of_runs(folders: Sequence[Path]) -> Experiment:
    """Runs of optimize.py, a job each."""
    abouts = [configuration(f / "config.yaml") for f in folders]
    keys = [k for k in words.varied(abouts) if k not in ("gate_seconds", "ledger_seconds")]
    rows, points, used = [], [], []
    for number, (folder, about) in enumerate(zip(folders, abouts, strict=True), 1):
        summary, curve = mapping(folder / "summary.json"), lines(folder / METRICS)
        found = [line for line in curve if "best_ms" in line]
        points += [{"job": number, **{k: line.get(k) for k in ("evaluations", "expansions", "seconds", "best_ms")}} for line in found]
        costs = summary.get("cost_ms") or {}
        first, last = (found[0], found[-1]) if found else ({}, {})
        search = str(about.get("search._target_", "search")).rpartition(".")[0].rpartition(".")[2] or "search"
        log = Log(folder)
        log.read()
        row = {
            **{"job": number, "model": Path(str(about.get("model", folder.name))).name, "search": search},
            **{"seed": about.get("search.seed"), "status": summary.get("status"), "run": folder.name, "folder": str(folder)},
            **{"initial_ms": costs.get("initial", first.get("best_ms")), "cost_ms": costs.get("final", last.get("best_ms"))},
            **{k: last.get(k) for k in ("evaluations", "expansions", "seconds")},
            **{"stopped": (summary.get("search") or {}).get("stopped"), "state": log.state(), "error": summary.get("why")},
        }
        told = words.method(about, [k for k in keys if k not in ("search", "search._target_")])
        row["method"] = " ".join(filter(None, [search, told]))
        row["problem"] = words.problem(about, keys, str(row["model"]))
        rows.append(row)
        used += [{"job": number, "rule": rule, "count": n} for rule, n in rules_of(folder).items()]
    made = _tables(pd.DataFrame(rows), pd.DataFrame(points), used)
    return made._replace(kind=OPTIMIZE, varied=tuple(keys))


def _tables(rows: pd.DataFrame, curves: pd.DataFrame, used: Sequence[Mapping[str, Any]]) -> Experiment:
    if missing := [k for k in _NEEDED if k not in rows]:
        raise ReportError(f"the table has no column {', '.join(missing)}: it should be the results of scripts/evaluate.py")
    rows = rows.assign(error=rows.get("error"), stopped=rows.get("stopped"))
    if "method" not in rows or "problem" not in rows:
        ran = labelled(rows)
        rows = rows.join(ran[["problem", "method"]])
        failed = rows["method"].isna()
        rows.loc[failed, "method"] = rows.loc[failed, "search"] if "search" in rows else ""
        rows.loc[failed, "problem"] = rows.loc[failed, "model"] if "model" in rows else ""
    ran = rows[rows["cost_ms"].notna() & rows["initial_ms"].notna()]
    cost, first = ran["cost_ms"].astype(float), ran["initial_ms"].astype(float)
    named = {"run": rows["problem"], "folder": "", "seed": pd.NA}
    jobs = rows.assign(**{k: v for k, v in named.items() if k not in rows})
    jobs["change"] = 100 * (cost / first.where(first > 0) - 1)
    jobs["error"] = jobs["error"].fillna("").astype(str)
    state = jobs["state"] if "state" in jobs else jobs["stopped"].fillna("")
    jobs["state"] = state.astype(str).where(jobs["error"] == "", "failed")
    jobs["steps"] = jobs.get("evaluations")
    method = dict(zip(rows["job"], rows["method"], strict=True))
    told = pd.DataFrame([{**u, "method": method.get(u["job"], "")} for u in used], columns=list(USED))
    columns = ["job", "run", "folder", "problem", "method", "seed", "state", "error", "change", "steps", "seconds"]
    frame = framed(jobs.to_dict("records"), [c for c in columns if c in jobs])
    metrics = curves.merge(rows[["job", "problem", "method"]], on="job") if len(curves) else pd.DataFrame()
    varied = tuple(k for k in rows if k not in _KEPT and k in ("search", "model", "rules", "device") and rows[k].nunique() > 1)
    return Experiment(EVALUATE, frame, metrics, ran.reset_index(drop=True), curves, told, varied, {})


def _table(stem: Path, ending: str = "") -> pd.DataFrame:
    for suffix in (ending,) if ending else (".parquet", ".csv"):
        file = stem.with_name(stem.name + suffix)
        if file.is_file():
            try:
                return pd.read_parquet(file) if suffix == ".parquet" else pd.read_csv(file)
            except (OSError, ValueError) as e:
                raise ReportError(f"the table '{file}' cannot be read: {' '.join(str(e).split())[:200]}") from None
    raise ReportError(f"there is no table '{stem}'")


def _rows(folder: Path) -> pd.DataFrame:
    """What the jobs of an evaluation that was killed left, line by line."""
    found = []
    for told in _objects(folder / METRICS):
        if "job" in told:
            found.append({("seconds" if k == "wall_seconds" else k): v for k, v in told.items() if k != "seconds"})
    if not found:
        raise ReportError(f"no job of the evaluation '{folder}' has ended yet: there is nothing to report")
    return pd.DataFrame(found)


def _traces(folder: Path) -> list[tuple[int, dict[str, int]]]:
    found = []
    for told in _objects(folder / "traces.jsonl"):
        counts: dict[str, int] = {}
        for step in told.get("steps", []):
            counts[step["rule"]] = counts.get(step["rule"], 0) + 1
        found.append((int(told.get("job", 0)), counts))
    return found


def _objects(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            found.append(told)
    return found
