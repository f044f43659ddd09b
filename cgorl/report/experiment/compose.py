"""Compose: an experiment -> the content of its report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from cgorl.report.experiment import figures
from cgorl.report.experiment.content import Code, Drawings, Part, Pictures, Report, Table, Text, sections
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.kept import configuration, mapping
from cgorl.report.experiment.picture import Picture
from cgorl.report.experiment.read import ORIGIN
from cgorl.report.experiment.standing import Spread, comparison, differences, ends
from cgorl.report.experiment.words import value
from cgorl.report.exports import digits, words
from cgorl.report.grid import BEST, EQUAL, Cell, Grid

_GRAPHS = 12
_STATES = {"failed": "failed", "not begun": "not begun", "interrupted": "interrupted"}


def compose(of: Experiment, title: str = "", axis: str = "") -> Report:
    """What the report of an experiment says. `axis` is what curves are drawn over. Raises ReportError."""
    train = of.kind == "train"
    grid = comparison(of) if len(of.results) else None
    axes = [axis] if axis or train else [a for a in ("evaluations", "seconds") if a in of.curves and of.curves[a].notna().any()]
    curves = [p for a in axes for p in figures.cost_over_time(of, a)] if len(of.results) else []
    curves.sort(key=lambda p: p.title.rpartition(": cost over")[0])  # the pictures of a problem beside each other
    logged = [m for m in (figures.RETURN, figures.INTRINSIC) if train and m in of.metrics]
    found = sections(
        ("In short", [Text(line) for line in _short(of, grid)]),
        ("What was run", _origin(of)),
        ("Comparison", _comparison(of, grid)),
        ("Returns", [Pictures(tuple(figures.returns(of, axis or "global_step")), tuple(logged), axis or "global_step")] if train else []),
        ("Cost over time", [Pictures(tuple(curves), (figures.BEST,) if train else (), axis or "global_step")]),
        ("Rules", [Pictures(tuple(p for p in (figures.rule_usage(of), *_rules_over_time(of)) if p is not None))]),
        ("Best graphs", [_drawings(of)]),
        ("Failed jobs", [_failed(of)]),
        ("All jobs", [_jobs(of)]),
    )
    groups = tuple(dict.fromkeys(Path(f).parent.parent.name for f in of.jobs["folder"] if Path(str(f)).parent.name == "jobs"))
    runs = tuple(str(r) for r in of.jobs["run"] if r)
    return Report(title or f"{of.kind}: {of.name}", found, groups, () if groups else runs)


def _short(of: Experiment, grid: Grid | None) -> list[str]:
    state = of.jobs["state"].astype(str)
    told = [f"{count} {what}" for key, what in _STATES.items() if (count := int((state == key).sum()))]
    going = int((state == "running").sum())
    lost = int(state.str.startswith(("silent", "no metrics", "not ended")).sum())
    told += [f"{going} still running"] * bool(going) + [f"{lost} killed or stuck"] * bool(lost)
    still = going + lost + int((state == "interrupted").sum())
    if (count := len(of.jobs)) == 1 and not told:
        lines = ["1 job, which ended."]
    else:
        lines = [f"{count} job{'s' * (count != 1)}" + (f", of which {', '.join(told)}." if told else ", all of which ended.")]
    if still:
        lines.append("Those that were cut off, or go on, count with what they have come to so far.")
    for problem, row in zip(grid.problems, grid.cells, strict=True) if grid is not None else ():
        there = [(m, c) for m, c in zip(grid.methods, row, strict=True) if c is not None] if grid is not None else []
        best = [m for m, c in there if c.stands == BEST]
        same = [m for m, c in there if c.stands == EQUAL]
        cell = next(c for _, c in there if c.stands == BEST)
        sentence = f"{problem}: lowest cost by {_named(best)}, {_change(cell)}"
        lines.append(sentence + (f"; not told apart from it: {_named(same)}." if same else "."))
    return lines


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:6])} and {len(names) - 6} more"


def _origin(of: Experiment) -> list[Part]:
    rows = [(k, v) for k in ORIGIN if k != "command" for v in of.origin.get(k, ())]
    rows.append(("folder" if len(of.paths) == 1 else "folders", ", ".join(map(str, of.paths))))
    parts: list[Part] = [Code("command", c) for c in of.origin.get("command", ())]
    parts.append(Table("", ("", ""), tuple(rows)))
    if (differing := _differing(of)) is not None:
        parts.append(differing)
    told = [c for c in map(_configured, of.jobs["folder"]) if c]
    if told and of.kind != "evaluate":
        parts.append(Code("the configuration of the first job", "\n".join(f"{k}: {v}" for k, v in told[0].items()), folded=True))
    return parts


def _configured(folder: object) -> dict[str, object]:
    return configuration(Path(str(folder)) / "config.yaml") if folder else {}


def _differing(of: Experiment) -> Table | None:
    """What the methods differ in, and how many jobs there are of each."""
    if of.kind == "evaluate":
        return None
    rows = []
    for method in of.methods:
        jobs = of.jobs[of.jobs["method"] == method]
        about = _about(jobs)
        seeds = ", ".join(str(s) for s in jobs["seed"].dropna()) if "seed" in jobs else ""
        asked = dict(word.split("=", 1) for word in method.split(" ") if "=" in word)  # of those that never began there is no more
        rows.append((method, str(len(jobs)), seeds, *(asked.get(k) or value(about, k) or "" for k in of.varied)))
    return Table("what the jobs differ in", ("method", "jobs", "seeds", *of.varied), tuple(rows), (1,))


def _about(jobs: pd.DataFrame) -> Mapping[str, object]:
    """The configuration of the first of some jobs: what was asked for, and before that what its folder keeps."""
    for folder in jobs["folder"]:
        if folder and str(folder) != ".":
            asked = mapping(Path(str(folder)) / "job.json").get("overrides", [])
            found = {**_configured(folder), **dict(t.split("=", 1) for t in asked if "=" in t)}
            if found:
                return found
    return {}


def _comparison(of: Experiment, grid: Grid | None) -> list[Part]:
    if grid is None:
        return []
    parts: list[Part] = [Pictures(tuple(p for p in figures.intervals(of) if len(grid.methods) > 1 or len(of.results) > 1))]
    several = len(grid.problems) > 1
    at_end = ends(of) if of.kind == "train" else None
    for k, problem in enumerate(grid.problems):
        parts.append(_methods(of, grid, k, problem, at_end if not several else None))
    if at_end is not None and several:
        parts.append(_ends(at_end))
    parts.append(_differences(of, several))
    parts.append(Text("; ".join(grid.notes) + "."))
    return parts


def _differences(of: Experiment, several: bool) -> Table:
    """Each method less the best; of several problems, each less its own best."""
    apart, rows = differences(of), list[tuple[str, ...]]()
    for r in apart.to_dict("records"):
        told = (f"{r['difference']:+.3f}", _ends_of(r["low"], r["high"]), str(r["n"]), str(r["verdict"]))
        rows.append((r["problem"], r["method"], r["reference"], *told) if several else (r["method"], *told))
    against = "the best" if several or not len(apart) else str(apart["reference"].iloc[0])
    head = (*(("problem", "method", "less") if several else ("method",)), "difference", "interval", "pairs", "so it is")
    note = "of the same seeds, where both methods have them; above 0: a higher cost"
    numbers = tuple(len(head) - k for k in (4, 3, 2))
    return Table(f"differences to {against}, points of % change", head, tuple(rows), numbers, notes=(note,))


def _methods(of: Experiment, grid: Grid, k: int, problem: str, at_end: pd.DataFrame | None) -> Table:
    """The methods on one problem."""
    places, best = digits(grid), list[int]()
    rows: list[tuple[str, ...]] = []
    told = {} if at_end is None else {str(r["method"]): r for r in at_end.to_dict("records")}
    head = ["method", "n", "change, %", "interval", "each run", "stands"]
    more = ["extrinsic return", "intrinsic return"] if told else ["evaluations", "seconds"]
    for method, c in zip(grid.methods, grid.cells[k], strict=True):
        if c is None:
            continue
        if c.stands == BEST:
            best.append(len(rows))
        middle, rest = words(c, places)
        each = ", ".join(f"{v:.{places}f}" for v in c.each)
        last = (
            [_spread(told[method]["extrinsic"]), _spread(told[method]["intrinsic"])] if told else [_whole(c.spent[0]), _seconds(c.spent[1])]
        )
        rows.append((method, str(len(c.each)), middle, rest, each, c.stands, *last))
    title = f"{problem}: {grid.before_ms[k]:.4g} ms before"
    return Table(title, (*head, *more), tuple(rows), (1, 2, 3, 6, 7), tuple(best))


def _ends(at_end: pd.DataFrame) -> Table:
    rows = [
        (str(r["method"]), str(r["jobs"]), *(_spread(r[k]) for k in ("change", "extrinsic", "intrinsic", "steps_per_second")))
        for r in at_end.to_dict("records")
    ]
    head = ("method", "jobs", "change, %, mean over graphs", "extrinsic return", "intrinsic return", "steps/s")
    return Table("at the end of the trainings", head, tuple(rows), (1, 2, 3, 4, 5))


def _rules_over_time(of: Experiment) -> list[Picture | None]:
    there = [str(m) for m in dict.fromkeys(of.metrics["method"])] if of.kind == "train" and len(of.metrics) else []
    return [figures.rule_usage_over_time(of, m) for m in there[:4]]


def _drawings(of: Experiment) -> Drawings:
    """The best graph of each job, each graph once."""
    found: dict[str, tuple[str, list[str]]] = {}
    for job in of.jobs.to_dict("records"):
        folder = Path(str(job["folder"])) if job["folder"] else Path()
        for file in sorted(folder.glob("best*.svg")) if folder != Path() else ():
            key = str(mapping(file.with_name(file.name.replace("best", "trace")).with_suffix(".json")).get("final_key") or file)
            name = f"job {job['job']} ({job['method']}" + ("" if pd.isna(job["seed"]) else f", seed {job['seed']}") + ")"
            if key not in found:
                found[key] = (file.read_text(encoding="utf-8", errors="replace"), [])
            found[key][1].append(name)
    shown = list(found.values())[:_GRAPHS]
    notes = ["Nodes with a strong rim are not in the graph that the job began with.", f"{len(found)} different graphs in all."]
    if len(found) > len(shown):
        notes.append(f"The first {len(shown)} are shown; the others are in the folders of their jobs.")
    return Drawings(tuple((_named(names), svg) for svg, names in shown), " ".join(notes))


def _failed(of: Experiment) -> Table:
    named = "problem" in of.jobs
    rows = []
    for j in of.jobs.to_dict("records"):
        if j["error"]:
            who = (str(j["problem"]), str(j["method"])) if named else (str(j["method"]),)
            rows.append((str(j["job"]), *who, "" if pd.isna(j["seed"]) else str(j["seed"]), str(j["error"])))
    return Table("", ("job", *(("problem",) if named else ()), "method", "seed", "why"), tuple(rows), (0,))


def _jobs(of: Experiment) -> Table:
    rows: list[tuple[str, ...]] = []
    for j in of.jobs.to_dict("records"):
        seed, change = "" if pd.isna(j["seed"]) else str(j["seed"]), "" if pd.isna(j["change"]) else f"{j['change']:.2f}"
        spent = (_whole(j["steps"]), _seconds(j["seconds"]))
        rows.append((str(j["job"]), str(j["method"]), seed, str(j["state"]), change, *spent, str(j["run"])))
    head = ("job", "method", "seed", "state", "change, %", "steps" if of.kind == "train" else "evaluations", "seconds", "run")
    return Table(f"{len(rows)} jobs", head, tuple(rows), (0, 2, 4, 5, 6), folded=len(rows) > 12)


def _change(c: Cell) -> str:
    middle, rest = words(c, 2)
    return f"{middle} %" + (f" {rest}" if rest else "")


def _spread(s: Spread) -> str:
    if math.isnan(s.value):
        return ""
    return f"{s.value:.2f}" + ("" if math.isnan(s.low) or f"{s.low:.2f}" == f"{s.high:.2f}" else f" {_ends_of(s.low, s.high, 2)}")


def _ends_of(low: float, high: float, places: int = 3) -> str:
    return "" if math.isnan(low) else f"[{low:.{places}f}, {high:.{places}f}]"


def _whole(number: object) -> str:
    return "" if pd.isna(number) else f"{float(str(number)):,.0f}"


def _seconds(number: object) -> str:
    return "" if pd.isna(number) else f"{float(str(number)):,.1f}"
