"""The layout: layers, lines between them, nothing on top of anything else."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cgorl.report.graphs.layout import GAP, ROW, layout


@st.composite
def dags(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(1, 40))
    return [sorted(draw(st.sets(st.integers(0, k - 1), max_size=3))) if k else [] for k in range(count)]


@given(dags())
def test_every_read_is_a_line_down_through_each_layer(reads: list[list[int]]) -> None:
    made = layout([60.0] * len(reads), reads)
    below: dict[int, list[int]] = {}
    for a, b in made.links.tolist():
        assert made.y[b] - made.y[a] == ROW
        below.setdefault(a, []).append(b)
    for k, sources in enumerate(reads):
        for s in sources:
            assert made.y[s] < made.y[k]
            assert k in _ends(s, below, len(reads))
    for s in range(len(reads)):
        assert sorted(_ends(s, below, len(reads))) == [k for k, sources in enumerate(reads) if s in sources]


def _ends(s: int, below: dict[int, list[int]], count: int) -> list[int]:
    found, stack = [], list(below.get(s, []))
    while stack:
        b = stack.pop()
        if b < count:
            found.append(b)
        else:
            stack.extend(below[b])
    return found


@given(dags(), st.data())
def test_boxes_of_a_layer_keep_their_distance(reads: list[list[int]], data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.floats(20, 200), min_size=len(reads), max_size=len(reads)))
    made = layout(widths, reads)
    rows: dict[float, list[int]] = {}
    for k in range(len(reads)):
        rows.setdefault(float(made.y[k]), []).append(k)
    for row in rows.values():
        row.sort(key=lambda k: made.x[k])
        for a, b in pairwise(row):
            assert made.x[b] - made.x[a] >= (widths[a] + widths[b]) / 2 + GAP - 0.1
    assert all(made.x[k] >= widths[k] / 2 for k in range(len(reads)))


def test_a_chain_is_straight_and_a_diamond_even() -> None:
    assert len(set(_x([[], [0], [1], [2]]).tolist())) == 1
    x = _x([[], [0], [0], [1, 2]])
    assert np.isclose(x[0], x[3], atol=0.5)
    assert np.isclose(x[0] - x[1], x[2] - x[0], atol=0.5)


def test_lines_that_can_do_without_do_not_cross() -> None:
    crossed: list[list[int]] = [[], [], [1], [0], [2], [3]]
    x = _x(crossed)
    assert (x[0] < x[1]) == (x[3] < x[2]) == (x[5] < x[4])


def test_a_deep_network_stays_in_the_middle() -> None:
    reads: list[list[int]] = [[]]
    for _ in range(200):  # blocks whose short cut stands to the right
        a = len(reads) - 1
        reads += [[a], [a + 1], [a + 2, a]]
    assert np.ptp(_x(reads)) < 400


def test_no_node_is_no_picture() -> None:
    made = layout([], [])
    assert (len(made.x), len(made.y), made.links.shape) == (0, 0, (0, 2))


def _x(reads: Sequence[Sequence[int]]) -> np.ndarray:
    return layout([60.0] * len(reads), reads).x[: len(reads)]
