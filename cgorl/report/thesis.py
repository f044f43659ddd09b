"""Thesis: the page of the experiment that holds the agent against every baseline (see cgorl.evaluation.thesis)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cgorl.report.stats import LEVEL, coverage, interval, iqm, paired

NEAR = 0.001
"""How near to the best cost known counts as reaching it."""
BASELINES = ("backtracking", "lookahead", "beam", "annealing")

_HEAD = """# Does the agent win?

Costs are estimates of the price list, not measured times, and the graphs are not proven here. A change is in % of the cost
before the search; lower is better. Each method that draws runs with several seeds, and every one is told; those that draw
nothing run once. `IQM` is the interquartile mean, with its bootstrap interval. `evaluations to near` are those until within
0.1 % of the best cost that any run of this page found (- : never), the fewest and the most over seeds. The whole tier is what
conf/experiment/ says; the commands tell how much of it was run.
"""


RAN = ("initial_ms", "cost_ms", "evaluations", "cpu_seconds", "curve")
"""Columns of a search that came to its end."""


class Method(NamedTuple):
    """What a method came to on a problem: changes in % by seed, what it spent, and evaluations until near the best known."""

    changes: Mapping[Any, float]
    evaluations: float
    seconds: float
    near: tuple[float, ...]

    @property
    def iqm(self) -> float:
        """The interquartile mean of the changes."""
        return iqm(list(self.changes.values()))


def methods(rows: pd.DataFrame) -> dict[str, Method]:
    """The methods of one problem, in the order of the rows; those that failed are left out."""
    ran = rows[rows["cost_ms"].notna()]
    known = float(ran["cost_ms"].min()) * (1 + NEAR)
    found = {}
    for name, one in ran.groupby("method", sort=False):
        changes = {r["seed"] if pd.notna(r["seed"]) else 0: _change(r) for r in one.to_dict("records")}
        near = tuple(spent_until(str(c), known) for c in one["curve"])
        evaluations, seconds = (float(one[k].astype(float).median()) for k in ("evaluations", "cpu_seconds"))
        found[str(name)] = Method(changes, evaluations, seconds, near)
    return found


def spent_until(curve: str, cost_ms: float) -> float:
    """Evaluations after which a curve `evaluations:ms ...` is at `cost_ms` or below; nan where it never is."""
    for point in curve.split():
        spent, _, ms = point.partition(":")
        if float(ms) <= cost_ms * (1 + 1e-9):
            return float(spent)
    return math.nan


def page(table: pd.DataFrame) -> str:
    """The Markdown page of a table with a row for each problem, method and seed."""
    parts = [_HEAD, *origin(table)]
    table = table.reindex(columns=list(dict.fromkeys([*table, *RAN])))  # where all failed, these are not there
    found = {str(p): methods(rows) for p, rows in table.groupby("problem", sort=False)}
    counts = sorted({len(m.changes) for of in found.values() for m in of.values() if len(m.changes) > 1})
    covers = ", ".join(f"{100 * coverage(n):.0f} % with {n} seeds" for n in counts)
    parts += [
        f"- intervals: {100 * LEVEL:.0f} % in name; of normal values they hold the true one in {covers or '-'}",
        "",
    ]
    parts += ["## The claims", "", *markdown(("claim of the thesis", "problem", "what we found", "holds"), claims(found)), ""]
    for problem, of in found.items():
        parts += _table(problem, of, table[table["problem"] == problem])
    failed = table[table["error"].notna()] if "error" in table else table[:0]
    parts += (
        ["## Failed", "", *(f"- {r['problem']}, {r['method']}: {r['error']}" for r in failed.to_dict("records")), ""] if len(failed) else []
    )
    return "\n".join(parts)


def origin(table: pd.DataFrame) -> list[str]:
    """What a page says of where its rows come from."""
    sources = [f"- {what}: {', '.join(dict.fromkeys(map(str, table[what])))}" for what in ("commit", "machine", "date")]
    return [*(f"- command: `{c}`" for c in dict.fromkeys(table["command"])), *sources]


def claims(found: Mapping[str, Mapping[str, Method]]) -> list[list[str]]:
    """A row for each claim and problem that it can be told of."""
    rows: list[list[str]] = []
    for problem, of in found.items():
        others = {m: of[m] for m in (*BASELINES, "greedy") if m in of}
        if "agent" in of and "backtracking" in of:
            rows.append(["as cheap as the best known with at most half of backtracking's evaluations, zero-shot", problem, *_half(of)])
        for mine in ("agent", "agent alone"):
            if mine not in of:
                continue
            who = "lower than every baseline at equal evaluations" + (", no walk led by gains" if mine != "agent" else "")
            if others:
                rows.append([who, problem, *_lower(of, mine, min(others, key=lambda m: others[m].iqm))])
        for control in ("gain", "untrained"):
            if "agent" in of and control in of:
                rows.append([f"better led by what was learnt than by {_NAMES[control]}", problem, *_lower(of, "agent", control)])
        if "train icm" in of:
            for other in ("train none", "train count"):
                if other in of:
                    rows.append([f"curiosity helps against {_NAMES[other]}", problem, *_lower(of, "train icm", other)])
        for mine, told in (("train icm", "from nothing"), ("train general", "from the general policy")):
            for kind, limit in (("long", "at as many evaluations"), ("seconds", "in as many seconds")):
                rivals = [m for m in of if m.endswith(f" {kind}")]
                if mine in of and rivals:
                    best = min(rivals, key=lambda m: of[m].iqm)
                    claim = f"training on the graph {told} pays against every baseline {limit}"
                    rows.append([claim, problem, *_lower(of, mine, best)])
    return rows


_NAMES = {"gain": "gains alone", "untrained": "an untrained network", "train none": "none", "train count": "counting"}


def _lower(of: Mapping[str, Method], mine: str, other: str) -> list[str]:
    """How one method compares with another: by the interval of paired differences, or each run of it with the other's one."""
    a, b = of[mine].changes, of[other].changes
    apart = paired(dict(a), dict(b)) if len(a) > 1 and len(b) > 1 else [x - y for x in a.values() for y in b.values()]
    low, high = interval(apart) if len(apart) > 1 else (apart[0], apart[0])
    said = f"{mine} {of[mine].iqm:.2f} %, {other} {of[other].iqm:.2f} %; difference {iqm(apart):+.2f} ({low:+.2f} to {high:+.2f})"
    return [said, "yes" if high < -1e-3 else "no: higher" if low > 1e-3 else "equal" if max(map(abs, apart)) < 1e-3 else "not told apart"]


def _half(of: Mapping[str, Method]) -> list[str]:
    """The claim of half the evaluations: each seed of the agent near the best cost known, in at most half of backtracking's."""
    mine, theirs = of["agent"].near, of["backtracking"].near[0]
    said = f"agent {spent(mine)}, backtracking {spent((theirs,))}"
    if any(math.isnan(n) for n in mine):
        return [said, "no: does not come near the best known" + (", nor does backtracking" if math.isnan(theirs) else "")]
    if math.isnan(theirs):
        return [said, "yes: backtracking does not come near the best known"]
    return [said, "yes" if max(mine) <= theirs / 2 else "no"]


def _inf(n: float) -> float:
    return math.inf if math.isnan(n) else n


def _table(problem: str, of: Mapping[str, Method], rows: pd.DataFrame) -> list[str]:
    first = rows.iloc[0]
    cells = []
    for name, m in of.items():
        values = list(m.changes.values())
        low, high = interval(values)
        spread = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        each = ", ".join(f"{v:.3f}" for v in values)
        cells.append([name, f"{m.iqm:.3f}", spread, each, f"{m.evaluations:,.0f}", spent(m.near), f"{m.seconds:.1f}"])
    head = ["method", "IQM %", "interval", "each seed", "evaluations", "evaluations to near", "CPU s"]
    about = (
        f"{first['rules']} rules, device {first['device']}, {first['initial_ms']:.4g} ms before, best known {rows['cost_ms'].min():.6g} ms"
    )
    return [f"## {problem}", "", about, "", *markdown(head, cells), ""]


def _change(row: Mapping[str, Any]) -> float:
    return 100 * (float(row["cost_ms"]) / float(row["initial_ms"]) - 1)


def spent(near: Sequence[float]) -> str:
    """Evaluations in words, the fewest and the most; nan is a dash."""
    words = ["-" if math.isnan(n) else f"{n:,.0f}" for n in sorted(near, key=_inf)]
    return words[0] if len(set(words)) == 1 else f"{words[0]} to {words[-1]}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
