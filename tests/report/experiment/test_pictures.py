"""Pictures: what they show, that each is well-formed, of the page's colours, and its own among others."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from cgorl.report.experiment import cost_over_time, intervals, learning_curves, read, returns, rule_usage
from cgorl.report.experiment.experiment import Experiment
from cgorl.report.experiment.figures import rule_usage_over_time
from cgorl.report.experiment.kinds import ReportError
from cgorl.report.experiment.picture import Picture
from tests.report.experiment.made import training, two_by_three


@pytest.fixture(name="of", scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return read(two_by_three(tmp_path_factory.mktemp("p") / "s"))


@pytest.fixture(name="searches")
def evaluated(tmp_path: Path) -> Experiment:
    rows = [
        {"problem": p, "method": m, "seed": s, "initial_ms": 2.0, "cost_ms": 1.0 + s / 10, "stopped": "x", "curve": f"0:2 5:{1.0 + s / 10}"}
        for p in ("a", "b")
        for m in ("beam", "annealing")
        for s in (1, 2)
    ]
    pd.DataFrame([{**r, "evaluations": 5} for r in rows]).to_csv(tmp_path / "t.csv")
    return read(tmp_path / "t.csv")


def test_a_learning_curve_is_a_line_and_a_band_for_each_method(of: Experiment) -> None:
    picture = learning_curves(of)
    plot = picture.figure.axes[0]
    strong = {line.get_label(): line for line in plot.get_lines() if not str(line.get_label()).startswith("_")}
    assert set(strong) == {"icm.beta=0.1 (3 seeds)", "icm.beta=0.2 (3 seeds)"} and len(plot.collections) == 2
    assert list(strong["icm.beta=0.1 (3 seeds)"].get_xdata()) == [16, 32, 48, 64]
    assert np.allclose(strong["icm.beta=0.1 (3 seeds)"].get_ydata(), [10, 20, 30, 40])
    assert plot.get_xlabel() == "environment steps" and "% of first cost" in plot.get_ylabel() and "74 % with 3 seeds" in picture.note


def test_one_run_is_a_line_without_a_band(tmp_path: Path) -> None:
    plot = learning_curves(read(training(tmp_path / "r")), axis="seconds").figure.axes[0]
    assert len(plot.get_lines()) == 1 and not plot.collections and list(plot.get_lines()[0].get_xdata()) == [0.5, 1, 1.5, 2]


def test_shares_are_in_percent(of: Experiment) -> None:
    [picture] = cost_over_time(of)
    low = min(min(line.get_ydata()) for line in picture.figure.axes[0].get_lines())
    assert low == pytest.approx(85)  # the best seed of the better method: -15 %


def test_returns_are_of_both_kinds(of: Experiment) -> None:
    assert [p.title.split(" over")[0] for p in returns(of)] == ["extrinsic return", "intrinsic return (curiosity)"]


def test_what_there_is_not_is_named(of: Experiment, searches: Experiment) -> None:
    with pytest.raises(ReportError, match=r"no metric 'loss'; there is charts/SPS, charts/episodic_intrinsic_return"):
        learning_curves(of, "loss")
    with pytest.raises(ReportError, match="they are no trainings"):
        learning_curves(searches)
    with pytest.raises(ReportError, match="no 'seconds'; there is evaluations"):
        cost_over_time(searches, "seconds")
    with pytest.raises(ReportError, match="no method 'x'; there is"):
        rule_usage_over_time(of, "x")


def test_searches_have_a_picture_for_each_problem(searches: Experiment) -> None:
    assert [p.title for p in cost_over_time(searches)] == ["a: cost over evaluations", "b: cost over evaluations"]
    assert len(intervals(searches)) == 2 and rule_usage(searches) is None


def test_many_methods_leave_room_for_the_plot(searches: Experiment) -> None:
    rows = pd.concat([searches.results.assign(method=f"{m} number {k}") for k in range(12) for m in ("a method", "another one")])
    curves = pd.concat([searches.curves.assign(method=f"{m} number {k}") for k in range(12) for m in ("a method", "another one")])
    few, many = (cost_over_time(e)[0] for e in (searches, searches._replace(results=rows, curves=curves)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert many.svg().startswith("<svg") and many.figure.get_figheight() > few.figure.get_figheight()


def test_rules_are_counted_by_job_and_shared_over_time(of: Experiment) -> None:
    best, over = rule_usage(of), rule_usage_over_time(of, "icm.beta=0.2")
    assert best is not None and over is not None
    assert best.figure.axes[0].images[0].get_array().tolist() == [[2.0, 2.0]]  # `fold` twice in the best rewrites of each job
    shares = over.figure.axes[0].images[0].get_array()
    assert np.allclose(shares.sum(axis=0), 100) and np.allclose(shares[0], [50, 200 / 3, 75, 80])


def test_pictures_take_the_colours_of_the_page_and_share_no_names(of: Experiment, searches: Experiment) -> None:
    pictures = [*returns(of), *cost_over_time(of), *intervals(of), *cost_over_time(searches), *intervals(searches)]
    pictures += [p for p in (rule_usage(of), rule_usage_over_time(of)) if p is not None]
    seen: set[str] = set()
    for picture in pictures:
        text = picture.svg()
        ElementTree.fromstring(text)
        ids = set(re.findall(r'\bid="([^"]+)"', text))
        assert not ids & seen and set(re.findall(r'(?:url\(#|href="#)([^")]+)', text)) <= ids
        seen |= ids
        assert "#000000" not in text and "#595959" not in text and "currentColor" in text
        assert not re.search(r'(?:href|src)="(?!#|data:)', text)
    assert "var(--c0, #0072B2)" in pictures[0].svg()


def test_a_picture_is_a_file_and_a_cell_of_a_notebook(of: Experiment, tmp_path: Path) -> None:
    picture = learning_curves(of)
    for ending, begins in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert picture.save(tmp_path / f"p.{ending}").read_bytes().startswith(begins)
    assert "var(" not in (tmp_path / "p.svg").read_text()  # a file knows no page
    assert picture._repr_html_().startswith("<figure") and isinstance(picture, Picture)
