"""Studied: the pages of the experiments that train (see cgorl.studies)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from cgorl.report.stats import LEVEL, coverage, interval, iqm


def curiosity(table: pd.DataFrame, command: str) -> str:
    """The page of a table with a row for each training."""
    ran = table[table["share"].notna()]
    rows = []
    for training, one in ran.groupby("training", sort=False):
        changes = [100 * (float(s) - 1) for s in one["share"]]
        rows.append([str(training), *_spread(changes)])
    head = "# Does curiosity pay?\n\nThe best cost that each training came to, in % change of the first cost; lower is better."
    return "\n".join([head, "", *_origin(table, command), *_coverage(ran, "training"), "", *_markdown(("training", *_SPREAD), rows), ""])


def transfer(table: pd.DataFrame, command: str) -> str:
    """The page of a table with a row for each family left out, graph, method and seed."""
    ran = table[table["change"].notna()]
    rows = []
    for (family, method), one in ran.groupby(["family", "method"], sort=False):
        rows.append([str(family), str(method), *_spread([float(c) for c in one["change"]])])
    head = (
        "# What does it know of a family that it never saw?\n\nAn agent is trained on all families but one, and searches graphs of "
        "that one: as it is, and after training on each for a while.\nChanges in % of the first cost; lower is better."
    )
    counts = _coverage(ran, ["family", "method"])
    return "\n".join([head, "", *_origin(table, command), *counts, "", *_markdown(("left out", "method", *_SPREAD), rows), ""])


_SPREAD = ("IQM %", "interval", "each")


def _spread(values: Sequence[float]) -> list[str]:
    low, high = interval(values)
    return [f"{iqm(values):.2f}", "" if low != low else f"{low:.2f} to {high:.2f}", ", ".join(f"{v:.2f}" for v in values)]


def _origin(table: pd.DataFrame, command: str) -> list[str]:
    failed = [f"- failed: {e}" for e in dict.fromkeys(table["error"].dropna())]
    return [
        f"- command: `{command}`",
        *(f"- {k}: {', '.join(dict.fromkeys(map(str, table[k])))}" for k in ("commit", "machine", "date")),
        *failed,
    ]


def _coverage(ran: pd.DataFrame, by: str | list[str]) -> list[str]:
    counts = sorted({int(n) for n in ran.groupby(by).size() if n > 1}) if len(ran) else []
    told = ", ".join(f"{100 * coverage(n):.0f} % with {n} values" for n in counts)
    return [f"- intervals: {100 * LEVEL:.0f} % in name; of normal values they hold the true one in {told or '-'}"]


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
