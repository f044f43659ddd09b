"""Training: a configuration in (conf/train.yaml), a trained agent out; the run's folder has its metrics, checkpoint and best rewrites."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from cgorl import config, jobs, pipeline
from cgorl.agent import checkpoint
from cgorl.agent.best import Best, Found
from cgorl.agent.encoder import Encoder
from cgorl.agent.icm import Curiosity
from cgorl.agent.policy import fresh_policy, grown
from cgorl.agent.ppo import PPO, Learner
from cgorl.env.rewrite import Episodes, Move, RewriteEnv, Start
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import save
from cgorl.ir.seldom import seldom_collected
from cgorl.ir.simplify import simplify
from cgorl.report.graphs.scene import scene
from cgorl.report.graphs.svg import svg
from cgorl.rules.rule_set import RuleSet
from cgorl.search.trace import Step, to_json
from cgorl.tracking import METRICS, Tracker, Wandb, WandbRun, whole
from cgorl.zoo.families import Drawn, Families

CHECKPOINT, POLICY = "checkpoint.pt", "policy.pt"


class TrainError(ValueError):
    """A training that cannot be; the message says why."""


class Update(NamedTuple):
    """How a training goes, told after each update: steps so far and in all, seconds, best over first cost (a mean), and metrics."""

    steps: int
    total: int
    seconds: float
    share: float
    metrics: Mapping[str, Any]


class Trained(NamedTuple):
    """What a training came to: a row for each graph, what ended it, and the seconds that each part of the loop took."""

    rows: tuple[Mapping[str, Any], ...]
    stopped: str
    steps: int
    seconds: float
    spent: Mapping[str, float]

    @property
    def share(self) -> float:
        """The best costs over the first ones, a mean over the graphs: what a sweep compares."""
        return sum(r["best_ms"] / r["first_ms"] if r["first_ms"] else 1.0 for r in self.rows) / len(self.rows)


Listen = Callable[[Update], None]


class Parts(NamedTuple):
    """What a training is made of."""

    graphs: dict[str, Graph]
    rules: RuleSet
    starts: list[Start]
    best: Best
    learner: Learner
    drawn: frozenset[str]
    """The names of graphs that families gave: models are not kept of them."""


def parts(cfg: Any) -> Parts:
    """The objects that `cfg` names. Raises ConfigError, ModelError and what the parts raise."""
    options: dict[str, Any] = config.plain(cfg)
    config.check(options)
    rules, cost = config.rule_set(options["rules"]), jobs.cost(cfg)
    args: PPO = config.build(cfg.ppo)
    episodes: Episodes = config.build(cfg.env)
    curiosity: Curiosity | None = config.build(cfg.icm) or None
    graphs: dict[str, Graph] = {}
    named = _named(cfg, options)
    for name, (what, zoo, _) in named.items():
        model = pipeline.load_model(what, zoo)
        pipeline.check_model(model, options["dims"])
        graphs[name] = simplify(model).graph if options["simplify"] else model
    if options["initial"]:
        policy = grown(checkpoint.policy(options["initial"], rules)[0], rules, options["seed"])
    else:
        policy = fresh_policy(rules, options["seed"], lambda: config.build(cfg.encoder))
    assert isinstance(policy.encoder, Encoder)
    fewer = {without: _without(options["rules"], without) for _, _, without in named.values() if without}
    starts = [Start.of(graph, rules, cost, offered=fewer.get(named[name].without)) for name, graph in graphs.items()]
    for name, start in zip(graphs, starts, strict=True):
        if not start.priced.prices:
            raise TrainError(f"no rule matches in '{name}': there is nothing to learn")
    if curiosity is not None:
        curiosity.begin(rules, policy.rules.known, options["seed"])
    best = Best()
    envs = [RewriteEnv(starts, episodes, best) for _ in range(args.num_envs)]
    drawn = frozenset(n for n, one in named.items() if n != one.name)
    return Parts(graphs, rules, starts, best, Learner(args, policy, envs, curiosity, options["seed"]), drawn)


def _named(cfg: Any, options: Mapping[str, Any]) -> dict[str, Drawn]:
    """What to train on, by the name that is told."""
    names = list(dict.fromkeys([*([options["model"]] if options["model"] else []), *options["models"]]))
    found = {n: Drawn(n, options["zoo"] if n == options["model"] else {}) for n in names}
    families: Families | None = config.build(cfg.families) or None
    found |= {str(one): one for one in (families.drawn(options["seed"]) if families else [])}
    if not found:
        raise TrainError("there is nothing to train on: model=..., models=[...] or families=... must be given")
    return found


def _without(rules: Mapping[str, Any], tags: Sequence[str]) -> RuleSet:
    return config.rule_set({**rules, "exclude": [*rules["exclude"], *tags]})


def train(cfg: Any, tell: Listen | None = None, tracker: Tracker | None = None, group: str | None = None, name: str = "") -> Trained:
    """Trains as `cfg` says. An interrupt ends it after what is done; a checkpoint is written after each update and at the end.

    With a tracker, metrics go to its folder (and to W&B, as `tracking` says), with the checkpoint, and for each graph the best
    rewrites and the graph that they lead to. `group` is the sweep that the run belongs to, `name` what tells it from the others.
    """
    options: dict[str, Any] = config.plain(cfg)
    made = parts(cfg)
    learner = made.learner
    if options["resume"]:
        checkpoint.restore(options["resume"], learner, made.best, made.rules)
    wandb = _wandb(cfg, options, tracker, group, name)
    if tracker is not None:
        tracker.write("config.yaml", config.yaml(cfg))
    begun, stopped, code = time.monotonic(), "all steps trained", 1
    spent = dict.fromkeys(("env", "act", "update", "curiosity"), 0.0)
    try:
        try:
            while learner.updates < learner.args.num_updates:
                with seldom_collected():
                    metrics = learner.update()
                seconds, share = time.monotonic() - begun, _share(made)
                spent = {k: v + metrics[f"time/{k}"] for k, v in spent.items()}
                if tracker is not None:
                    with whole() as pressed:  # a checkpoint has its line of metrics
                        _log(made, metrics, tracker, wandb, options)
                    if pressed:
                        raise KeyboardInterrupt
                if tell is not None:
                    tell(Update(learner.global_step, learner.args.total_timesteps, seconds, share, metrics))
                if options["seconds"] is not None and seconds >= options["seconds"]:
                    stopped = "seconds"
                    break
        except KeyboardInterrupt:
            stopped = "interrupted"
        rows = [_row(name, made.starts[k], made.best.found[k]) for k, name in enumerate(made.graphs) if k in made.best.found]
        done = Trained(tuple(rows), stopped, learner.global_step, time.monotonic() - begun, spent)
        if tracker is not None:
            with whole():  # the training has ended: there is nothing left to interrupt
                _keep(made, done, tracker, wandb, options)
        code = 0
        return done
    finally:
        if wandb is not None:
            wandb.finish(code)


def _wandb(cfg: Any, options: Mapping[str, Any], tracker: Tracker | None, group: str | None, name: str) -> WandbRun | None:
    chosen: Wandb | None = config.build(cfg.tracking) or None
    if chosen is None or tracker is None:
        return None
    return chosen.open(tracker.folder, options, name or tracker.folder.name, group)


def _share(made: Parts) -> float:
    found = made.best.found
    shares = [found[k].cost_ms / s.priced.cost_ms if k in found and s.priced.cost_ms else 1.0 for k, s in enumerate(made.starts)]
    return sum(shares) / len(shares)


def _numbers(metrics: Mapping[str, Any], made: Parts) -> dict[str, float]:
    told = {k: v for k, v in metrics.items() if isinstance(v, int | float)}
    if metrics["episodes"]:
        ends = metrics["episodes"]
        told["cost/final_share"] = sum(e["cost_ms"] / e["first_ms"] for e in ends) / len(ends)
        told["cost/episode_best_share"] = sum(e["best_ms"] / e["first_ms"] for e in ends) / len(ends)
    now = [env.at.cost_ms / env.starts[env.start].priced.cost_ms for env in made.learner.envs if env.starts[env.start].priced.cost_ms]
    told["cost/current_share"] = sum(now) / len(now) if now else 1.0
    told["cost/best_share"] = _share(made)
    told.update({f"cost/best_ms/{name}": made.best.found[k].cost_ms for k, name in enumerate(made.graphs) if k in made.best.found})
    return told


def _row(name: str, start: Start, found: Found) -> dict[str, Any]:
    first = start.priced.cost_ms
    return {"model": name, "first_ms": first, "best_ms": found.cost_ms, "rewrites": len(found.path), "greedy_rewrites": start.greedy}


def _log(made: Parts, metrics: Mapping[str, Any], tracker: Tracker, wandb: WandbRun | None, options: Mapping[str, Any]) -> None:
    learner = made.learner
    checkpoint.save(tracker.folder / CHECKPOINT, learner, made.best, made.rules, options)
    line = {**_numbers(metrics, made), "global_step": learner.global_step, "updates": learner.updates}
    if not (tracker.folder / METRICS).exists():  # what all others are shares of, said once
        line |= {f"cost/first_ms/{name}": start.priced.cost_ms for name, start in zip(made.graphs, made.starts, strict=True)}
    tracker.log(**line, rules=metrics["rules"])
    if wandb is not None:
        wandb.log({**line, **{f"rules/{k}": v for k, v in metrics["rules"].items()}}, learner.global_step)


def _keep(made: Parts, done: Trained, tracker: Tracker, wandb: WandbRun | None, options: Mapping[str, Any]) -> None:
    checkpoint.save(tracker.folder / POLICY, made.learner, None, made.rules, options)
    files: list[Path] = [p for n in (CHECKPOINT, POLICY) if (p := tracker.folder / n).is_file()]
    for k, name in enumerate(made.graphs):
        if k not in made.best.found:
            continue
        first, found = made.starts[k].priced, made.best.found[k]
        trace = to_json(first.graph, found.graph, _steps(first.graph, first.cost_ms, found.path), made.rules)
        stem = "" if len(made.graphs) == 1 else f"_{k + 1}"
        files.append(tracker.write(f"trace{stem}.json", trace))
        if name not in made.drawn:
            files += save(found.graph, tracker.folder / f"best{stem}.onnx")
            new, gone = (set(a.nodes) - set(b.nodes) for a, b in ((found.graph, first.graph), (first.graph, found.graph)))
            files.append(tracker.write(f"before{stem}.svg", _drawn(first.graph, gone)))
            files.append(tracker.write(f"best{stem}.svg", _drawn(found.graph, new)))
        if wandb is not None:
            rows = [[s["rule"], str(s["names"]), s["before_ms"], s["after_ms"]] for s in trace["steps"]]
            wandb.table(f"rewrites/{name}", ["rule", "nodes", "before_ms", "after_ms"], rows)
    about = {"stopped": done.stopped, "steps": done.steps, "seconds": done.seconds, "spent": dict(done.spent)}
    tracker.write("summary.json", {**about, "graphs": list(done.rows)})
    if wandb is not None:
        wandb.artifact(tracker.folder.name, "agent", files)


def _drawn(graph: Graph, marked: Set[int]) -> str:
    """A picture of a graph, the nodes that a search has changed with a strong rim."""
    drawn = scene(graph)
    places = drawn.places()
    return svg(drawn, loud=[places[i] for i in marked if i in places])


def _steps(graph: Graph, before_ms: float, path: Sequence[Move]) -> list[Step]:
    found = []
    for move in path:
        after = graph.replace(move.match.edit)
        found.append(Step(move.match, tuple(range(graph.next_id, after.next_id)), before_ms, move.cost_ms))
        graph, before_ms = after, move.cost_ms
    return found
