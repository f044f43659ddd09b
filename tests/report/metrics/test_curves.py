"""Runs as curves: reading while they are written, grouping by configuration, smoothing, bands and thinning."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgorl.report.metrics.chart import Chart, Line, packed, short, svg, thinned, ticks
from cgorl.report.metrics.curves import Run, chart, groups, smoothed
from cgorl.report.metrics.log import METRICS, Log, RunError, folders
from cgorl.report.stats import iqm
from tests.unpacked import unpacked


def run(root: Path, name: str, lines: list[dict[str, Any]], **about: Any) -> Run:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    log = Log(folder)
    log.read()
    return Run(log, about)


def climbs(slope: float, count: int = 10) -> list[dict[str, Any]]:
    return [{"global_step": 8 * k, "seconds": 0.5 * k, "reward": slope * k} for k in range(count)]


def test_a_file_is_read_on_where_the_last_reading_ended(tmp_path: Path) -> None:
    log = Log(tmp_path)
    assert not log.read() and log.state() == "no metrics yet"
    path = tmp_path / METRICS
    path.write_text('{"a": 1, "rules": {"x": 1}, "word": "w"}\n{"a": 2, "b"')
    assert log.read() and log.names == ["a"] and list(log.column("a")) == [1]
    with path.open("a") as f:
        f.write(": 5}\nnot json\n[3]\n")
    assert log.read() and not log.read()
    assert (log.lines, log.unread) == (2, 2)
    assert list(log.column("a")) == [1, 2] and math.isnan(log.column("b")[0]) and log.column("b")[1] == 5
    path.write_text('{"a": 9}\n')  # begun anew
    assert log.read() and list(log.column("a")) == [9] and log.unread == 0


def test_a_run_says_how_it_is(tmp_path: Path) -> None:
    log = run(tmp_path, "a", climbs(1)).log
    assert log.state() == "running" and not log.over
    hours_ago = time.time() - 7300
    os.utime(log.folder / METRICS, (hours_ago, hours_ago))
    assert log.state() == "silent for 2 h: killed, or stuck"
    (log.folder / "summary.json").write_text('{"stopped": "seconds"}')
    assert log.state() == "ended: seconds" and log.over
    (log.folder / "error.txt").write_text("why")
    assert log.state() == "failed (see error.txt)"


def test_a_path_is_a_run_or_holds_runs(tmp_path: Path) -> None:
    a, b = run(tmp_path / "x", "1", climbs(1)).log.folder, run(tmp_path / "y", "2", climbs(1)).log.folder
    assert list(folders(tmp_path)) == [a, b] and list(folders(a)) == [a]
    with pytest.raises(RunError, match="no folder of a run at"):
        list(folders(tmp_path / "z"))


def test_runs_are_grouped_by_all_but_the_seed(tmp_path: Path) -> None:
    runs = [
        run(
            tmp_path,
            f"{beta}_{seed}",
            climbs(beta),
            **{"icm.beta": beta, "seed": seed, "search.seed": seed, "model": "m", "runs": f"r{seed}"},
        )
        for beta in (0.1, 0.2)
        for seed in (1, 2, 3)
    ]
    found = groups([*runs, run(tmp_path, "alone", climbs(1))])
    assert [(g.label, len(g.runs)) for g in found] == [("icm.beta=0.1 (3 seeds)", 3), ("icm.beta=0.2 (3 seeds)", 3), ("alone", 1)]
    assert [g.label for g in groups(runs[:3])] == ["m (3 seeds)"]


def test_a_choice_is_told_by_its_name_and_its_options_where_others_have_them_too(tmp_path: Path) -> None:
    icm = {"icm._target_": "cgorl.agent.icm.ICM", "icm.beta": 0.1, "icm.eta": 0.1}
    count = {"icm._target_": "cgorl.agent.icm.Count", "icm.eta": 0.1}
    runs = [run(tmp_path, str(k), climbs(1), **about) for k, about in enumerate(({"icm": {}}, icm, count))]
    assert [g.label for g in groups(runs)] == ["icm=none", "icm=ICM", "icm=Count"]
    runs.append(run(tmp_path, "more", climbs(1), **{**icm, "icm.beta": 0.5}))
    assert [g.label for g in groups(runs)] == ["icm=none", "icm=ICM icm.beta=0.1", "icm=Count", "icm=ICM icm.beta=0.5"]


def test_a_band_is_of_all_its_runs_and_ends_with_the_shortest(tmp_path: Path) -> None:
    slopes = {1: 1.0, 2: 2.0, 3: 6.0}
    runs = [run(tmp_path, str(s), climbs(slope, 10 if s != 2 else 6), seed=s) for s, slope in slopes.items()]
    *each, middle = chart(groups(runs), "reward", "global_step").lines
    assert [line.faint for line in each] == [True] * 3 and [len(line.x) for line in each] == [10, 6, 10]
    assert list(middle.x) == [0, 8, 16, 24, 32, 40]
    assert middle.y[-1] == pytest.approx(iqm([5.0, 10.0, 30.0]))
    assert (
        middle.low is not None
        and middle.high is not None
        and np.all(middle.low <= middle.y + 1e-9)
        and np.all(middle.y <= middle.high + 1e-9)
    )
    assert middle.low[-1] >= 5 - 1e-9 and middle.high[-1] <= 30 + 1e-9
    apart = chart(groups(runs), "reward", "global_step", band=False).lines
    assert len(apart) == 3 and not any(line.faint or line.low is not None for line in apart)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0, 0.99))
def test_smoothing_stays_within_the_values(values: list[float], weight: float) -> None:
    y = smoothed(np.array(values), weight)
    assert y[0] == pytest.approx(values[0])
    assert np.all(y >= min(values) - 1e-6) and np.all(y <= max(values) + 1e-6)


def test_smoothing_passes_over_what_is_not_there() -> None:
    y = smoothed(np.array([2.0, np.nan, 4.0]), 0.5)
    assert math.isnan(y[1]) and y[2] == pytest.approx((0.5 * 1 + 2) / 0.75)


@given(st.integers(1, 3000), st.integers(0, 5))
def test_thinning_keeps_ends_and_extremes(count: int, seed: int) -> None:
    y = np.random.default_rng(seed).standard_normal(count)
    x, kept = thinned(np.arange(count, dtype=float), y, 100)
    assert len(x) <= 104 and x[0] == 0 and x[-1] == count - 1
    assert kept.min() == y.min() and kept.max() == y.max() and np.all(np.diff(x) > 0)


def test_a_chart_for_a_browser_and_as_a_picture_holds_what_was_given() -> None:
    x, y = np.array([0.0, 1.0, 2.0]), np.array([3.0, 2.0, 1.0])
    made = Chart([Line("a<b", 0, x, y, y - 1, y + 1), Line("c", 1, x, y * 2, steps=True)], "step", "reward")
    data = unpacked(packed(made, note="n"))
    assert data["lines"] == [["a<b", 0, 0, 3, 1, 0, 0], ["c", 1, 12, 3, 0, 0, 1]] and data["note"] == "n"
    assert list(data["points"][12:]) == [0, 1, 2, 6, 4, 2]
    drawn = svg(made)
    assert "a&lt;b" in drawn and drawn.count("fill-opacity") == 1 and drawn.count("<path") >= 5
    assert "<svg" in svg(Chart([], "x", "y"))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 7e6), (1.0001, 1.0002), (5.0, 5.0)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high, 5)
    assert len(found) <= 6 and all(low - 1e-9 * abs(low) <= t <= high + 1e-9 * abs(high) for t in found)
    assert [short(v) for v in (0.0, 0.25, 1234.0, 2.5e-5, 3e6)] == ["0", "0.25", "1,234", "2.5e-05", "3e+06"]
