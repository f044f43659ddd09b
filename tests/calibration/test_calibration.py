"""Calibration: substitutions that are what they say, random variants, orders and pictures; nothing here is timed."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cgorl import config, gate
from cgorl.calibration import calibrate, models, signs, variants
from cgorl.calibration.pairs import build, pairs
from cgorl.certificate.inputs import feeds
from cgorl.cost.anchor import least_interrupted
from cgorl.ir.from_proto import from_proto
from cgorl.ir.run import Session
from cgorl.report import agreement, figures
from tests.texts import small

PAIRS = list(pairs())


def rules():  # type: ignore[no-untyped-def]
    return config.rule_set(config.plain(config.load_config("optimize", ["model=none"]))["rules"])


def test_there_are_pairs_enough_and_their_names_differ() -> None:
    assert len({p.name for p in PAIRS}) == len(PAIRS) >= 40


@pytest.mark.parametrize("pair", PAIRS[::6], ids=lambda p: p.name)
def test_before_and_after_take_and_give_the_same(pair) -> None:  # type: ignore[no-untyped-def]
    before, after = (from_proto(build(draw, "block")) for draw in (pair.before, pair.after))
    given = feeds(before, {}, np.random.default_rng(0))
    results = [Session(build(draw, "block")).run(given) for draw in (pair.before, pair.after)]
    assert [a.shape for a in results[0].values()] == [a.shape for a in results[1].values()]
    assert before.key != after.key or pair.name.startswith("separable")


def sign(foretold: float, measured: float, counts: bool = True) -> signs.Sign:
    return signs.Sign("a pair", foretold, gate.Ratio(measured, measured - 0.01, measured + 0.01), counts)


@pytest.mark.parametrize(
    ("foretold", "measured", "right"), [(1.2, 1.1, True), (0.8, 0.9, True), (1.2, 0.9, False), (0.8, 1.1, False), (1.2, 1.02, None)]
)
def test_a_sign_is_right_wrong_or_too_close_to_call(foretold: float, measured: float, right: bool | None) -> None:
    assert sign(foretold, measured).right is right


def test_signs_are_counted() -> None:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    signs.show([sign(1.2, 1.1), sign(1.2, 0.9), sign(1.2, 1.0), sign(1.2, 0.9, counts=False)], console)
    assert "1 of 3 right, 1 too close to call; a search would take 3, 1 of them slower" in console.export_text()


def test_variants_are_graphs_some_rewrites_on() -> None:
    g = small("inception_v3")
    a, b = (variants._walk(g, rules(), 4, random.Random(n)) for n in (0, 0))
    assert a.key == b.key != g.key
    assert variants._walk(g, rules(), 4, random.Random(1)).key != a.key


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [([1, 2, 3], [10, 20, 30], 1.0), ([1, 2, 3], [3, 2, 1], -1.0), ([1, 1, 2], [5, 5, 9], 1.0), ([1, 2, 3, 4], [1, 3, 2, 4], 0.8)],
)
def test_rank_correlation(a: list[float], b: list[float], expected: float) -> None:
    assert variants.rank_correlation(a, b) == pytest.approx(expected)


def test_errors_with_and_without_one_factor() -> None:
    row = models.Row("m", 3, 3, 3, 1.1, 1.0, 1.1, 0, 1.0, 0.0, {})
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    models.show([row, replace(row, predicted_ms=2.2, measured_ms=2.0), replace(row, predicted_ms=3.3, measured_ms=3.0, pace=2.0)], console)
    text = " ".join(console.export_text().split())
    assert "run after run: 10.0 %; with one factor from the other models 0.0 %" in text
    assert "the machine ran slower than when the table was filled: m" in text


def test_the_least_interrupted_samples_count() -> None:
    assert list(least_interrupted([0, 2, 1, 5, 0], 3)) == [True, False, True, False, True]
    assert list(least_interrupted([7, 8], 3)) == [True, True]


def test_the_picture_has_a_panel_for_each_part_that_was_run(tmp_path: Path) -> None:
    figure = agreement.agreement([("a", 1.0, 1.1), ("b", 9.0, 8.0)], [(1.2, 1.1)], [], "a", "here")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["models, ms", "substitutions, time before over after"]
    assert figures.save(figure, tmp_path / "calibration.png").stat().st_size > 1000


def test_a_part_that_there_is_not_is_named() -> None:
    with pytest.raises(config.ConfigError, match="no part 'model' of a calibration; there are models, pairs, variants"):
        calibrate(["model"], Console())
