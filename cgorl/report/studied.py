"""Studied: the pages of the experiments that train (see cgorl.studies)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from cgorl.report.stats import LEVEL, coverage, interval, iqm, paired
from cgorl.report.thesis import NEAR, markdown, origin, spent, spent_until

_CURIOSITY = """# Does curiosity pay?

Each training is told by the best cost that any of its episodes came upon, in % change of the first cost (lower is better), and by
where its episodes end in the last quarter of its steps: what the policy does, not what it once came upon. `steps to near` are those
until within 0.1 % of the best cost that any training here came upon (- : never), the fewest and the most over seeds. Differences
are to the training of the same words without curiosity, paired by seed.
"""
_TRANSFER = """# What does it know of a family that it never saw?

An agent is trained on all families but one, and searches graphs of that one: as it is, and after training on each for a while.
Changes in % of the first cost; lower is better. Each seed has a policy and graphs of its own, and differences are on the same graphs.
`zero-shot` lets every second walk be led by gains, as search=agent does by default, and `zero-shot alone` none. Something was learnt
that carries over where they come lower than both controls: `gain`, the same walks led by gains alone, and `untrained`, led by a network
that has learnt nothing.
"""
_NONE, _CONTROLS = "icm=none", ("gain", "untrained")


def curiosity(table: pd.DataFrame) -> str:
    """The page of a table with a row for each training."""
    ran = table[table["share"].notna()]
    parts = [_CURIOSITY, *_origin(table), *_coverage(ran, ["about", "training"]), ""]
    for about, of in ran.groupby("about", sort=False):
        parts += [f"## {about}", "", *_trainings(of), *_grids(of)]
    return "\n".join(parts)


def _trainings(of: pd.DataFrame) -> list[str]:
    near = float(of["share"].min()) * (1 + NEAR)
    changes: dict[str, dict[Hashable, float]] = {
        str(t): {int(r["seed"]): _change(r["share"]) for r in one.to_dict("records")} for t, one in of.groupby("training", sort=False)
    }
    rows = []
    for training, one in of.groupby("training", sort=False):
        mine = changes[str(training)]
        plain = changes.get(_plain(str(training)), {}) if _plain(str(training)) != training else {}
        ends = [_change(s) for s in one["final_share"].dropna()]
        near_by = [spent_until(str(c), near) for c in one["curve"]]
        rows.append([str(training), *_spread(list(mine.values())), _number(iqm(ends)), spent(near_by), *_apart(paired(mine, plain))])
    head = ("training", *_SPREAD, "episodes end at %", "steps to near", "difference to none", "differs")
    return [*markdown(head, rows), ""]


def _plain(training: str) -> str:
    """The words of the same training without curiosity."""
    return " ".join(_NONE if w.startswith("icm=") else w for w in training.split() if not w.startswith("icm."))


def _grids(of: pd.DataFrame) -> list[str]:
    """For all that differ only in beta and eta, the interquartile means as a grid."""
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for training, one in of.groupby("training", sort=False):
        words = dict(w.split("=", 1) for w in str(training).split() if "=" in w)
        if {"icm.beta", "icm.eta"} <= words.keys():
            rest = " ".join(f"{k}={v}" for k, v in words.items() if k not in ("icm.beta", "icm.eta"))
            cells.setdefault(rest, {})[words["icm.beta"], words["icm.eta"]] = iqm([_change(s) for s in one["share"]])
    found: list[str] = []
    for rest, grid in cells.items():
        betas, etas = (sorted({pair[k] for pair in grid}, key=float) for k in (0, 1))
        if len(grid) < 2:
            continue
        rows = [[f"beta {b}", *(_number(grid.get((b, e), math.nan)) for e in etas)] for b in betas]
        found += [f"{rest}, IQM of the best in %:", "", *markdown(("", *(f"eta {e}" for e in etas)), rows), ""]
    return found


def transfer(table: pd.DataFrame) -> str:
    """The page of a table with a row for each family left out, graph, method and seed."""
    ran = table[table["change"].notna()]
    parts = [_TRANSFER, *_origin(table), *_coverage(ran, ["about", "family", "method"]), ""]
    for about, of in ran.groupby("about", sort=False):
        methods = list(dict.fromkeys(map(str, of["method"])))
        mean = {(str(f), str(m)): iqm([float(c) for c in one["change"]]) for (f, m), one in of.groupby(["family", "method"], sort=False)}
        families = dict.fromkeys(f for f, _ in mean)
        rows = [[f, *(_number(mean.get((f, m), math.nan)) for m in methods)] for f in families]
        parts += [f"## {about}", "", "Interquartile means in %:", "", *markdown(("left out", *methods), rows), ""]
        parts += ["Every graph, in the same order for each method of a family:", "", *_by_method(of), ""]
    return "\n".join(parts)


def _by_method(of: pd.DataFrame) -> list[str]:
    rows = []
    for family, here in of.groupby("family", sort=False):
        changes: dict[str, dict[Hashable, float]] = {
            str(m): {(r["seed"], r["graph"]): float(r["change"]) for r in one.to_dict("records")}
            for m, one in here.groupby("method", sort=False)
        }
        evaluations = {str(m): float(one["evaluations"].astype(float).median()) for m, one in here.groupby("method", sort=False)}
        for method, mine in changes.items():
            apart = [" ".join(_apart(paired(mine, changes.get(c, {})) if c != method else [])).strip() for c in _CONTROLS]
            each = ", ".join(f"{v:.2f}" for v in mine.values())
            rows.append([str(family), method, _number(iqm(list(mine.values()))), each, f"{evaluations[method]:,.0f}", *apart])
    return markdown(("left out", "method", "IQM %", "each graph", "evaluations", *(f"difference to {c}" for c in _CONTROLS)), rows)


_TRUSTED, _FEW = 0.8, "too few values to tell"
_SPREAD = ("IQM %", "interval", "each")


def _change(share: Any) -> float:
    return 100 * (float(share) - 1)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _apart(differences: Sequence[float]) -> list[str]:
    """The interquartile mean of differences with its interval, and whether they tell two things apart; blank for none.

    Of so few values that their interval means little nothing is concluded.
    """
    if not differences:
        return ["", ""]
    if max(map(abs, differences)) < 1e-3:
        return ["0.00", "equal"]
    low, high = interval(differences)
    if low != low:
        return [f"{differences[0]:+.2f}", _FEW]
    said = f"{iqm(differences):+.2f} ({low:+.2f} to {high:+.2f})"
    if coverage(len(differences)) < _TRUSTED:
        return [said, _FEW]
    return [said, "lower" if high < -1e-3 else "higher" if low > 1e-3 else "not told apart"]


def _spread(values: Sequence[float]) -> list[str]:
    low, high = interval(values)
    return [f"{iqm(values):.2f}", "" if low != low else f"{low:.2f} to {high:.2f}", ", ".join(f"{v:.2f}" for v in values)]


def _origin(table: pd.DataFrame) -> list[str]:
    return [*origin(table), *(f"- failed: {e}" for e in dict.fromkeys(table["error"].dropna()))]


def _coverage(ran: pd.DataFrame, by: list[str]) -> list[str]:
    counts = sorted({int(n) for n in ran.groupby(by).size() if n > 1}) if len(ran) else []
    told = ", ".join(f"{100 * coverage(n):.0f} % with {n} values" for n in counts)
    return [f"- intervals: {100 * LEVEL:.0f} % in name; of normal values they hold the true one in {told or '-'}"]
