"""Pictures say what the tables say: lines, bands, ends; and are files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cgorl.report.compare import labelled
from cgorl.report.figures import anytime, names, progress, save
from cgorl.tracking import TrackError
from tests.report.test_compare import table

TABLES = table(
    ("greedy", None, "no rewrite gains", [(100, 90.0), (200, 85.0)]),
    ("annealing", 1, "evaluations", [(100, 95.0), (1000, 80.0)]),
    ("annealing", 2, "evaluations", [(300, 75.0), (1000, 70.0)]),
)


def test_a_line_a_method_with_a_band_over_seeds_and_a_dot_at_an_end() -> None:
    left, right = anytime(labelled(TABLES[0]), TABLES[1]).axes
    assert (left.get_xscale(), right.get_xscale()) == ("log", "log")
    lines = {str(line.get_label()): line for line in left.get_lines()}
    assert {"greedy", "annealing (2 seeds)"} <= set(lines)
    greedy, annealing = lines["greedy"], lines["annealing (2 seeds)"]
    assert list(greedy.get_ydata()) == [1.0, 0.9, 0.85] and greedy.get_drawstyle() == "steps-post"
    assert list(annealing.get_xdata())[1:] == [100, 300, 1000] and list(annealing.get_ydata()) == [1.0, 0.975, 0.85, 0.75]
    assert list(right.get_lines()[0].get_xdata())[1:] == [1.0, 2.0]
    dots = [line for line in left.get_lines() if line.get_marker() == "o"]
    assert [(d.get_xdata()[0], d.get_ydata()[0]) for d in dots] == [(200, 0.85)], "only greedy ended by itself"
    assert len(left.collections) == 1 and greedy.get_color() != annealing.get_color()


def test_a_row_for_each_problem(tmp_path: Path) -> None:
    results, curves = TABLES
    results = results.assign(rules=["default", "taso", "taso"])
    figure = anytime(labelled(results), curves)
    assert [a.get_title(loc="left") for a in figure.axes] == ["m default taso", "", "m taso taso", ""]
    assert save(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG") and save(figure, tmp_path / "a.svg").stat().st_size
    with pytest.raises(TrackError, match="cannot write the picture"):
        save(figure, tmp_path / "none" / "a.png")


def test_a_search_that_found_nothing_can_be_drawn(tmp_path: Path) -> None:
    save(anytime(*(lambda r, c: (labelled(r), c))(*table(("greedy", None, "no rewrite gains", [(23, 100.0)])))), tmp_path / "a.png")
    save(anytime(*(lambda r, c: (labelled(r), c))(*table(("greedy", None, "no rewrite gains", [(0, 100.0)])))), tmp_path / "b.png")


def test_one_run_from_its_metrics(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    assert progress(metrics, "net", "beam", "seconds") is None
    points = [{"seconds": s, "expansions": e, "evaluations": n, "best_ms": c} for s, e, n, c in ((0.1, 1, 40, 10.0), (0.5, 9, 400, 8.0))]
    metrics.write_text(json.dumps(points[0]) + "\n")
    assert progress(metrics, "net", "beam", "seconds") is None, "a point is no curve"
    metrics.write_text("".join(json.dumps(p) + "\n" for p in points))
    figure = progress(metrics, "net", "beam", "no better graph")
    assert figure is not None and list(figure.axes[0].get_lines()[0].get_ydata()) == [1.0, 0.8]


def test_a_search_cut_off_in_its_first_step_is_a_line_and_no_empty_picture(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(2 * (json.dumps({"seconds": 8.6, "expansions": 1, "evaluations": 19, "best_ms": 10.0}) + "\n"))
    figure = progress(metrics, "net", "greedy", "seconds")
    assert figure is not None
    for axes in figure.axes:
        line = axes.get_lines()[0]
        assert line.get_xdata()[0] < line.get_xdata()[-1] and set(line.get_ydata()) == {1.0}


def test_a_name_for_each_picture() -> None:
    assert names(["bert", "a/m.onnx", "b/m.onnx", "x y.onnx"]) == {
        **{"bert": "anytime_bert", "a/m.onnx": "anytime_m", "b/m.onnx": "anytime_m_2", "x y.onnx": "anytime_x_y"}
    }
