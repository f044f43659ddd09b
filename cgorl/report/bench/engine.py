"""Distinct graphs expanded and matches newly priced in a second of CPU time, next to TASO's figures: backtracking, one thread.

Usage: bench.py engine [rules=taso,default] [file=graph_subst.pb] [models=a,b] [expansions=1000] [seconds=30] [scaling=1]
"""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cgorl import zoo
from cgorl.cost.model import CostModel, Price
from cgorl.cost.roofline import Device, Roofline
from cgorl.ir import key
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Edit, Graph
from cgorl.ir.simplify import simplify
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.taso import taso_rules
from cgorl.rules.text import library
from cgorl.search.backtracking import Backtracking
from cgorl.search.searcher import Budget, Progress
from cgorl.search.state import State

TASO = Path(__file__).parents[3] / "data" / "reference" / "taso_cpu.csv"
DEVICE = Device("taso", 1e11, 1e10, 0.005, additive=True, free=("Split", "Transpose"))  # as conf/device/taso.yaml
_DEFAULTS = {"rules": "taso,default", "file": "", "models": "", "expansions": "1000", "seconds": "30", "scaling": "0"}
_DEPTHS = ((3, 4, 6, 3), (16, 16, 32, 16), (60, 60, 120, 60), (200, 200, 400, 200))


def main(arguments: Sequence[str]) -> None:
    """Prints a row for each model and rule set, each measured in a process of its own; `scaling=1`: ResNets up to 10,000 nodes."""
    given = dict(a.split("=", 1) for a in arguments if "=" in a)
    if wrong := [a for a in arguments if a.split("=")[0] not in _DEFAULTS or "=" not in a]:
        sys.exit(f"bench.py engine knows no '{wrong[0]}'; it takes {', '.join(f'{k}=' for k in _DEFAULTS)}")
    options = {**_DEFAULTS, **given}
    if wrong := [r for r in options["rules"].split(",") if r not in ("taso", "default")]:
        sys.exit(f"bench.py engine knows no rules={wrong[0]}; there are taso and default")
    if wrong := [k for k in ("expansions", "seconds") if not options[k].isdigit() or options[k] == "0"]:
        sys.exit(f"bench.py engine: {wrong[0]} must be a whole number of at least 1, not {options[wrong[0]]}")
    taso = {row["model"]: row for row in csv.DictReader(TASO.open())}
    table = Table(
        "graph", "rules", "nodes", "expanded", "expansions/s", "first graph ms", "new prices/s", "CPU s", "peak MB", "cost ms", "TASO"
    )
    for column in table.columns[2:]:
        column.justify = "right"
    console = Console(width=170)
    for rules in options["rules"].split(","):
        for label, build in _scaling() if options["scaling"] == "1" else _models(options["models"]):
            m = _apart(
                {**build, "rules": rules, "file": options["file"], "expansions": options["expansions"], "seconds": options["seconds"]}
            )
            table.add_row(
                *(
                    label,
                    rules,
                    f"{m['nodes']:,}",
                    f"{m['expansions']:,}" + ("" if m["stopped"] in ("expansions", "seconds") else " (all)"),
                ),
                *(f"{m['rate']:,.0f}", f"{m['first_ms']:,.0f}", f"{m['prices']:,.0f}", f"{m['cpu']:.2f}", f"{m['peak_mb']:,.0f}"),
                *(f"{m['initial']:.3f} -> {m['cost']:.3f}", m["parts"] if options["scaling"] == "1" else _taso(taso.get(label))),
            )
            print(f"{label} rules={rules}: {m['expansions']} graphs, {m['cpu']:.1f} s CPU", file=sys.stderr, flush=True)
    console.print(table)
    print(
        "backtracking, alpha 1.05, device=taso; graphs in TASO's form, cleaned up first. expansions/s leaves the first graph out, whose\n"
        "whole listing and pricing 'first graph' is. new prices: matches priced anew, inherited ones left out. peak: the whole process,\n"
        "weights and libraries too. TASO: its pops, CPU s, peak MB and cost (data/reference/taso_cpu.csv).\n"
        f"this machine: ten million additions in Python take {_speed():.2f} s of CPU time"
    )


def _taso(row: Mapping[str, str] | None) -> str:
    if row is None:
        return ""
    rate = int(row["pops"]) / float(row["cpu_s"]) if row["cpu_s"] else float("nan")
    memory = f", {int(row['peak_rss_mb']):,} MB" if row["peak_rss_mb"] else ""
    return f"{row['pops']} pops, {rate:.1f}/s{memory}, {row['initial_ms']} -> {row['final_ms']}"


def _models(names: str) -> list[tuple[str, dict[str, Any]]]:
    chosen = names.split(",") if names else list(zoo.names())
    forms = {n: {"form": "taso"} if "form" in zoo.defaults(n) else {} for n in chosen}
    return [(n, {"model": n, "zoo": forms[n]}) for n in chosen]


def _scaling() -> list[tuple[str, dict[str, Any]]]:
    small = {"width": 0.125, "image": 32}
    return [(f"resnet50, depth {sum(d)}", {"model": "resnet50", "zoo": {"depth": d, **small}}) for d in _DEPTHS]


def _apart(what: Mapping[str, Any]) -> dict[str, Any]:
    code = "import json, sys; from cgorl.report.bench import engine; print(json.dumps(engine.measure(json.loads(sys.argv[1]))))"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(what)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class _Counted:
    """A price list that counts what it is asked."""

    def __init__(self, inner: CostModel) -> None:
        self._inner, self.asked = inner, 0

    def price(self, graph: Graph, edit: Edit) -> Price:
        self.asked += 1
        return self._inner.price(graph, edit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def measure(what: Mapping[str, Any]) -> dict[str, Any]:
    """One search, measured: `what` holds model, zoo, rules, file, expansions and seconds."""
    rules = _rules(what["rules"], what["file"])
    cost = _Counted(Roofline(DEVICE))
    graph = simplify(from_proto(zoo.build(what["model"], **what["zoo"]))).graph
    parts = _parts()
    begin = time.process_time()
    told: list[tuple[float, int]] = []

    def listen(p: Progress) -> None:
        if not told:
            told.append((time.process_time(), cost.asked))

    found = Backtracking()(graph, rules, cost, Budget(float(what["seconds"]), int(what["expansions"])), listen)
    cpu = time.process_time() - begin
    first, asked = told[0][0] - begin, told[0][1]
    later = max(cpu - first, 1e-9)
    shares = ", ".join(f"{name} {100 * spent / cpu:.0f} %" for name, spent in sorted(parts.items(), key=lambda p: -p[1]))
    return {
        **{"nodes": sum(1 for n in graph.nodes.values() if not n.is_source), "expansions": found.expansions, "stopped": found.stopped},
        **{"rate": (found.expansions - 1) / later, "prices": (cost.asked - asked) / later, "first_ms": 1e3 * first, "cpu": cpu},
        **{"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "initial": found.initial_cost_ms, "cost": found.cost_ms},
        "parts": shares,
    }


def _rules(name: str, file: str) -> RuleSet:
    """As rules=default and rules=taso (conf/rules)."""
    if name == "default":
        return RuleSet(library())
    unfit = {"identity", "disconnected", "unfused"}
    return RuleSet(tuple(r for r in taso_rules(file or None) if not unfit & set(r.tags)))


def _parts() -> dict[str, float]:
    """CPU seconds by part of the engine, counted from now on."""
    spent: dict[str, float] = {}
    for what, owner, name in (
        ("keys", key, "structural_key"),
        ("matches", MatchSet, "after"),
        ("first scan", MatchSet, "__init__"),
        ("prices", State, "_price"),
        ("order", State, "best_first"),
        ("edits", Graph, "replace"),
    ):
        spent[what] = 0.0
        setattr(owner, name, _timed(getattr(owner, name), what, spent))
    return spent


def _timed(work: Callable[..., Any], what: str, spent: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **more: Any) -> Any:
        begin = time.process_time()
        try:
            return work(*args, **more)
        finally:
            spent[what] += time.process_time() - begin

    return timed


def _speed() -> float:
    begin, total = time.process_time(), 0
    for i in range(10_000_000):
        total += i
    return time.process_time() - begin
