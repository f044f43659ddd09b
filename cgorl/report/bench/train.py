"""Steps of a whole training in a second of CPU time, and where the time goes: one thread, hidden 64, 3 layers, with ICM.

Usage: bench.py train [models=inception_v3,nasnet_a] [updates=3]

The rules are the whole library, as rules=default; 8 environments of 32 steps an update, as conf/ppo/default.yaml.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from cgorl import zoo
from cgorl.cost.roofline import Roofline
from cgorl.ir.from_proto import from_proto
from cgorl.ir.seldom import seldom_collected
from cgorl.ir.simplify import simplify
from cgorl.report.bench.env import DEVICE
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library

_DEFAULTS = {"models": "inception_v3,nasnet_a", "updates": "3"}
_PARTS = {"env": "environment", "act": "choosing", "update": "PPO", "curiosity": "ICM"}


def main(arguments: Sequence[str]) -> None:
    """Prints a row for each model."""
    given = dict(a.split("=", 1) for a in arguments if "=" in a)
    if wrong := [a for a in arguments if a.split("=")[0] not in _DEFAULTS or "=" not in a]:
        sys.exit(f"bench.py train knows no '{wrong[0]}'; it takes {', '.join(f'{k}=' for k in _DEFAULTS)}")
    options = {**_DEFAULTS, **given}
    table = Table("graph", "steps/s", *(f"{name} ms" for name in _PARTS.values()))
    for column in table.columns[1:]:
        column.justify = "right"
    for name in options["models"].split(","):
        m = measure(name, int(options["updates"]))
        table.add_row(name, f"{m['rate']:.0f}", *(f"{m[k]:.2f}" for k in _PARTS))
    Console(width=100).print(table)
    print("steps of all environments together by CPU time; the parts are of one step by the clock")


def measure(name: str, updates: int) -> dict[str, Any]:
    """A training on one model of the zoo, in TASO's form where it has that; its first update is not measured."""
    from cgorl.agent.encoder import Encoder
    from cgorl.agent.icm import ICM
    from cgorl.agent.policy import fresh_policy
    from cgorl.agent.ppo import PPO, Learner
    from cgorl.env.rewrite import RewriteEnv, Start

    rules = RuleSet(library())
    parameters: dict[str, Any] = {"form": "taso"} if "form" in zoo.defaults(name) else {}
    start = Start.of(simplify(from_proto(zoo.build(name, **parameters))).graph, rules, Roofline(DEVICE))
    policy, curiosity = fresh_policy(rules, 0, lambda: Encoder("gcn", 64, 3)), ICM()
    curiosity.begin(rules, policy.rules.known, 0)
    learner = Learner(PPO(), policy, [RewriteEnv([start]) for _ in range(8)], curiosity, 0)
    spent = dict.fromkeys(_PARTS, 0.0)
    with seldom_collected():
        learner.update()
        begin, before = time.process_time(), learner.global_step
        for _ in range(updates):
            told = learner.update()
            spent = {k: v + told[f"time/{k}"] for k, v in spent.items()}
        cpu = time.process_time() - begin
    steps = learner.global_step - before
    return {"rate": steps / cpu, **{k: 1e3 * v / steps for k, v in spent.items()}}
