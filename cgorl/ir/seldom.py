"""Seldom: garbage collected less often while graphs are made by the thousand."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (100_000, 20, 100)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Python looks for cycles of dead objects less often inside.

    Graphs and matches hold few cycles and are freed by their counts of references; at the usual thresholds the looking
    takes a quarter of a search's time.
    """
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _THRESHOLDS[0]:  # somebody has chosen
        yield
        return
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
