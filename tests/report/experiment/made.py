"""Folders of runs as the scripts leave them, written at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

METRICS = ("charts/episodic_return", "charts/episodic_intrinsic_return", "cost/best_share", "charts/SPS")
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><rect width="10" height="10"/></svg>'


def config(**given: Any) -> dict[str, Any]:
    """A flat configuration of a training, nested as config.yaml has it."""
    nested: dict[str, Any] = {}
    flat = {"model": "net.onnx", "seed": 0, "runs": "runs", "ppo.num_envs": 2, "icm._target_": "cgorl.agent.icm.ICM", "icm.beta": 0.2}
    for key, value in {**flat, **given}.items():
        *above, last = key.split(".")
        at = nested
        for name in above:
            at = at.setdefault(name, {})
        at[last] = value
    return nested


def training(folder: Path, change: float = -10.0, lines: int = 4, about: Mapping[str, Any] | None = None, end: bool = True) -> Path:
    """A training of `lines` updates that came to a change of the cost in %; without its `end` it was killed."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config(**(about or {}))))
    told = []
    for k in range(1, lines + 1):
        share = 1 + change / 100 * k / lines
        line = {"seconds": k / 2, "global_step": 16 * k, "updates": k, "rules": {"fold": k, "merge": 1}, "cost/best_ms/net": 2 * share}
        told.append({**line, **dict(zip(METRICS, (10.0 * k, 3.0 / k, share, 30.0), strict=True))})
    if told:
        told[0]["cost/first_ms/net"] = 2.0
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    if end:
        graphs = [{"model": "net", "first_ms": 2.0, "best_ms": 2.0 * (1 + change / 100), "rewrites": 2, "greedy_rewrites": 1}]
        (folder / "summary.json").write_text(json.dumps({"stopped": "all steps trained", "steps": 16 * lines, "graphs": graphs}))
        (folder / "trace.json").write_text(json.dumps({"final_key": f"{change}", "steps": [{"rule": "fold"}, {"rule": "fold"}]}))
        (folder / "best.svg").write_text(SVG)
    return folder


def sweep(place: Path, jobs: Sequence[tuple[str, Mapping[str, Any]]], command: str = "python scripts/sweep.py -m model=net.onnx") -> Path:
    """A sweep of jobs: the overrides of each, and what `training` is to make of it, or `error`, or `absent` for one never begun."""
    place.mkdir(parents=True)
    planned = []
    for number, (words, how) in enumerate(jobs, 1):
        overrides = ["model=net.onnx", *words.split()]
        planned.append({"number": number, "words": words, "overrides": overrides})
        folder = place / "jobs" / f"2026-01-01_00-00-0{number % 10}_{number}_{words.replace(' ', '_')}"
        about = {k: json.loads(v) if v[0].isdigit() else v for k, v in (w.split("=") for w in words.split())}
        told = {"sweep": place.name, "number": number, "words": words, "overrides": overrides}
        if how.get("absent"):
            continue
        if "error" in how:
            folder.mkdir(parents=True)
            (folder / "error.txt").write_text("Traceback ...\n")
            (folder / "job.json").write_text(json.dumps({**told, "share": None, "error": how["error"]}))
            continue
        training(folder, about=about, **how)
        (folder / "job.json").write_text(json.dumps({**told, **({"error": ""} if how.get("end", True) else {})}))
    origin = {"command": command, "commit": "abc1234", "machine": "a machine, 2 cores", "date": "2026-01-01"}
    (place / "sweep.json").write_text(json.dumps({**origin, "jobs": planned}))
    return place


def two_by_three(place: Path) -> Path:
    """Two values of icm.beta with three seeds each: 0.2 is 2 points better on each seed; and a job that failed."""
    jobs: list[tuple[str, Mapping[str, Any]]] = [
        (f"icm.beta={beta} seed={seed}", {"change": better - seed})
        for beta, better in (("0.1", -10.0), ("0.2", -12.0))
        for seed in (1, 2, 3)
    ]
    return sweep(place, [*jobs, ("icm.beta=7 seed=1", {"error": "icm.beta must be at most 1, not 7"})])
