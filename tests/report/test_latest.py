"""Latest: the newest sweep that compares what one asks about, once it has ended."""

from __future__ import annotations

import json
from pathlib import Path

from cgorl.report.experiment.latest import latest


def sweep(runs: Path, name: str, *values: str, ended: int | None = None) -> Path:
    """A sweep's folder as cgorl.sweep leaves it, `ended` of its jobs done."""
    folder = runs / "sweep" / name
    jobs = [{"number": k, "words": v, "overrides": ["model=bert", v]} for k, v in enumerate(values, 1)]
    for job in jobs:
        place = folder / "jobs" / f"{name}_{job['number']}"
        place.mkdir(parents=True)
        done = ended is None or job["number"] <= ended
        (place / "job.json").write_text(json.dumps({**job, **({"share": 0.9, "error": ""} if done else {})}))
    (folder / "sweep.json").write_text(json.dumps({"command": "", "jobs": jobs}))
    return folder


def test_the_newest_finished_sweep_over_a_key_is_found(tmp_path: Path) -> None:
    assert latest(tmp_path / "nowhere", "icm.beta") is None and latest(tmp_path, "icm.beta") is None
    old = sweep(tmp_path, "2026-01-01_a", "icm.beta=0.1", "icm.beta=0.2")
    sweep(tmp_path, "2026-01-02_b", "seed=1", "seed=2")
    sweep(tmp_path, "2026-01-04_d", "icm.beta=0.1", "icm.beta=0.2", ended=1)
    assert latest(tmp_path, "icm.beta") == old
    new = sweep(tmp_path, "2026-01-05_e", "icm.beta=0.1", "icm.beta=0.5")
    assert latest(tmp_path, "icm.beta") == new == latest(new, "icm.beta") and latest(tmp_path, "ppo.gamma") is None
