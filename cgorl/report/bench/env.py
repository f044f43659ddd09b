"""Steps of a random policy in a second of CPU time, observations included, and where the time goes: one thread.

Usage: bench.py env [models=inception_v3,nasnet_a] [seconds=5]

The rules are the whole library, as rules=default.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cgorl import zoo
from cgorl.cost.roofline import Device, Roofline
from cgorl.ir.from_proto import from_proto
from cgorl.ir.seldom import seldom_collected
from cgorl.ir.simplify import simplify
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library

_DEFAULTS = {"models": "inception_v3,nasnet_a", "seconds": "5"}
DEVICE = Device("v100", 15.7e12, 900e9, 0.004, 163840)  # as conf/device/v100.yaml


def main(arguments: Sequence[str]) -> None:
    """Prints a row for each model."""
    given = dict(a.split("=", 1) for a in arguments if "=" in a)
    if wrong := [a for a in arguments if a.split("=")[0] not in _DEFAULTS or "=" not in a]:
        sys.exit(f"bench.py env knows no '{wrong[0]}'; it takes {', '.join(f'{k}=' for k in _DEFAULTS)}")
    options = {**_DEFAULTS, **given}
    if not options["seconds"].replace(".", "", 1).isdigit():
        sys.exit(f"bench.py env: seconds must be a number, not {options['seconds']}")
    table = Table("graph", "nodes", "matches", "first graph s", "steps/s", "of that engine ms", "node table ms", "observation ms")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in options["models"].split(","):
        m = measure(name, float(options["seconds"]))
        table.add_row(
            *(name, str(m["nodes"]), f"{m['matches']:.0f}", f"{m['first']:.2f}", f"{m['rate']:.0f}"),
            *(f"{m['engine']:.2f}", f"{m['table']:.2f}", f"{m['look']:.2f}"),
        )
    Console(width=130).print(table)
    print(
        "matches are the mean over the steps. engine: replacing, matching and pricing. episodes of 60 steps at most.\n"
        f"this machine: ten million additions in Python take {_speed():.2f} s of CPU time"
    )


def measure(name: str, seconds: float) -> dict[str, Any]:
    """A random policy on one model of the zoo, in TASO's form where it has that."""
    import numpy as np

    from cgorl.env.match_table import MatchTable
    from cgorl.env.nodes import NodeTable
    from cgorl.env.rewrite import Episodes, RewriteEnv, Start

    rules, cost = RuleSet(library()), Roofline(DEVICE)
    parameters: dict[str, Any] = {"form": "taso"} if "form" in zoo.defaults(name) else {}
    graph = simplify(from_proto(zoo.build(name, **parameters))).graph
    begin = time.process_time()
    env = RewriteEnv([Start.of(graph, rules, cost)], Episodes(horizon=60))
    first = time.process_time() - begin
    spent = {"table": 0.0, "look": 0.0}

    def timed(owner: Any, attribute: str, key: str) -> Any:
        inner = getattr(owner, attribute)

        def outer(*args: Any, **more: Any) -> Any:
            begin = time.process_time()
            found = inner(*args, **more)
            spent[key] += time.process_time() - begin
            return found

        setattr(owner, attribute, outer)
        return inner

    rng = np.random.default_rng(0)
    steps = matches = 0
    parts = (NodeTable, "after", "table"), (MatchTable, "after", "look"), (RewriteEnv, "_look", "look")
    replaced = [(owner, attribute, timed(owner, attribute, key)) for owner, attribute, key in parts]
    try:
        with seldom_collected():  # as a training does
            begin = time.process_time()
            env.reset(seed=0)
            while time.process_time() - begin < seconds:
                count = len(env.matches)
                _, _, terminated, truncated, _ = env.step(int(rng.integers(count)) if count else 0)
                steps, matches = steps + 1, matches + count
                if terminated or truncated:
                    env.reset()
            cpu = time.process_time() - begin
    finally:
        for owner, attribute, inner in replaced:
            setattr(owner, attribute, inner)
    per = {k: 1e3 * v / steps for k, v in spent.items()}
    return {
        **{"nodes": len(env.observation.ids_N), "matches": matches / steps, "first": first, "rate": steps / cpu, **per},
        **{"engine": 1e3 * cpu / steps - sum(per.values())},
    }


def _speed() -> float:
    begin, total = time.process_time(), 0
    for i in range(10_000_000):
        total += i
    return time.process_time() - begin
