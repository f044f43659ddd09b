"""Landscape: is there anything to search? From what methods found on a graph to the room, the barrier, and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cgorl.search.searcher import LIMITS

NO_ROOM = 0.005
"""Room below which a search is not worth while: half a percent of the initial cost."""
NEAR = 0.001
"""How near to the best cost known counts as reaching it."""

_HEAD = """# Is there anything to search?

What each method makes of each graph, rule set and price list (estimates, not proven). `room` is (greedy - best) / initial,
best being the lowest cost that any run found: this is a lower bound of what search could add. Where it is below 0.5 % there
is **no room**, or none found within the limits of the long run. `moves` are the shares of matches that lower, keep and
raise the cost, at the start, and over graphs on the way to the best. The barrier is that of the way found: `depth` is the
largest number of rewrites between one best-so-far and the next lower cost, `height` the largest rise above the best-so-far
in between, as a share of the initial cost; another way may have a lower one.
"""


class Barrier(NamedTuple):
    """The worst stretch of a way: rewrites from a best-so-far to the next lower cost, and the highest rise in between, in ms."""

    depth: int
    height_ms: float


def barrier(costs_ms: Sequence[float]) -> Barrier:
    """The barrier along costs one after another; what comes after the lowest does not count. 0 and 0 where nothing gets lower."""
    depth, height, at = 0, 0.0, 0
    least = 1e-9 * abs(costs_ms[0])
    for k, cost in enumerate(costs_ms):
        if cost < costs_ms[at] - least:
            depth = max(depth, k - at)
            height = max(height, max(costs_ms[at:k]) - costs_ms[at])
            at = k
    return Barrier(depth, height)


def spent_until(curve: Sequence[Mapping[str, Any]], cost_ms: float) -> float:
    """Evaluations after which an anytime curve is at `cost_ms` or below; nan where it never is."""
    least = 1e-9 * abs(cost_ms)
    return next((float(p["evaluations"]) for p in curve if p["best_ms"] <= cost_ms + least), math.nan)


def best_after(curve: Sequence[Mapping[str, Any]], expansions: int, by_itself: bool) -> float:
    """The best cost of an anytime curve after so many expansions; nan where it was cut off before."""
    if curve[-1]["expansions"] < expansions and not by_itself:
        return math.nan
    return float(min(p["best_ms"] for p in curve if p["expansions"] <= expansions))


def verdict(room: float) -> str:
    """What the room says."""
    return "unknown" if math.isnan(room) else "no room" if room < NO_ROOM else "room"


def page(table: pd.DataFrame, marks: Sequence[int]) -> str:
    """The Markdown page of a table with a row for each problem and method (see cgorl.evaluation.landscape)."""
    methods = [m for m in dict.fromkeys(table["method"]) if m != "best"]
    facts, costs = [], []
    for _, rows in table.groupby("problem", sort=False):
        by = {r["method"]: r for r in rows.to_dict("records")}
        one = next(iter(by.values()))
        cells = []
        for method in methods:
            cells.append(_change(by.get(method), "cost_ms"))
            if method == "backtracking":
                cells[-1:] = [_change(by.get(method), f"at_{n}") for n in marks]
        known = f"{100 * (one['best_ms'] / one['initial_ms'] - 1):.2f} ({one['best_method']})"
        room = "" if math.isnan(one["room"]) else f"{100 * one['room']:.2f}"
        says = _bold(verdict(one["room"])) + (
            "" if one["room"] >= NO_ROOM or by.get("best", {}).get("stopped") not in LIMITS else " found within its limits"
        )
        costs.append([one["problem"], f"{one['initial_ms']:.4g}", *cells, known, _spent(by.get("best")), room, says])
        shares = [_shares(one, ""), _shares(one, "way_")]
        needed = [_needed(by.get(m)) for m in (*methods, "best")]
        facts.append([one["problem"], f"{one['moves']:,.0f}", *shares, f"{one['depth']:.0f}", f"{100 * one['height']:.2f}", *needed])
    names = [n for m in methods for n in ([f"{m} {k}" for k in marks] if m == "backtracking" else [m])]
    first = ["graph, rules, device", "initial ms", *names, "best known", "long run", "room", ""]
    second = ["graph, rules, device", "moves at start", "lower / keep / raise", "on the way", "depth", "height %", *methods, "long run"]
    sources = [f"- {what}: {', '.join(dict.fromkeys(table[what]))}" for what in ("commit", "machine", "date")]
    failed = [f"- {r['problem']}, {r['method']}: {r['error']}" for r in table.to_dict("records") if isinstance(r["error"], str)]
    parts = [
        *(_HEAD, *(f"- command: `{c}`" for c in dict.fromkeys(table["command"])), *sources, ""),
        *("## Cost after the search, change in % of the initial cost", "", *_markdown(first, costs), ""),
        *(
            "backtracking N: after N expansions; a cell is empty where the method was cut off by its time before.",
            "long run: the seconds or distinct graphs that it was given to find the best known; queue empty: there was no more to try.",
            "",
        ),
        *("## Moves, barrier, and evaluations needed", ""),
        *("Evaluations until a method's own best / until within 0.1 % of the best known (- : never).", "", *_markdown(second, facts), ""),
        *(["## Failed", "", *failed, ""] if failed else []),
    ]
    return "\n".join(parts)


def _change(row: Mapping[str, Any] | None, key: str) -> str:
    if row is None or pd.isna(row[key]):
        return ""
    return f"{100 * (row[key] / row['initial_ms'] - 1):.2f}"


def _spent(row: Mapping[str, Any] | None) -> str:
    """What a run had spent when it ended, in the terms of the limit that ended it; what it says of itself where none did."""
    ended = None if row is None else row.get("stopped")
    if row is None or not isinstance(ended, str):
        return ""
    units = {"seconds": "s", "expansions": "graphs", "evaluations": "prices"}
    return f"{row[ended]:,.0f} {units[ended]}" if ended in units else ended


def _shares(row: Mapping[str, Any], prefix: str) -> str:
    shares = [row[f"{prefix}{k}"] for k in ("lower", "keep", "raise")]
    return "" if any(pd.isna(s) for s in shares) else " / ".join(f"{100 * s:.0f}" for s in shares)


def _needed(row: Mapping[str, Any] | None) -> str:
    if row is None or pd.isna(row["evaluations_to_own"]):
        return ""
    known = row["evaluations_to_known"]
    return f"{row['evaluations_to_own']:,.0f} / " + ("-" if pd.isna(known) else f"{known:,.0f}")


def _bold(text: str) -> str:
    return f"**{text}**" if text == "no room" else text


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]
