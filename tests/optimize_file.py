"""What `cases.py run --py tests.optimize_file:optimize` and `check.py` of the shared material call."""

from __future__ import annotations

import cgorl


def optimize(source: str, target: str) -> None:
    cgorl.optimize(source, unbound=1, seconds=None).save(target)
