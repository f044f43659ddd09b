"""The steps of a job as a page shows them on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cgorl.web.shown import STAGES

_STEPS = {
    "Read": ("start", "load"),
    "Clean up": ("simplify", "price"),
    "Search": ("search", "versus"),
    "Prove": ("prove", "compare"),
    "Measure": ("gate",),
    "Write": ("save", "draw"),
}


def steps(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each with its `name`, the stages that it is made of (in words, as shown.watched says them), and `at`: done, now, or later."""
    names = [n for n in _STEPS if n != "Measure" or job["options"].get("cost") == "measured"]
    of = {n: [STAGES[s] for s in _STEPS[n]] for n in names}
    now = next((k for k, n in enumerate(names) if job["stage"] in of[n]), -1)
    return [{"name": n, "of": "|".join(of[n]), "at": "done" if k < now else "now" if k == now else "later"} for k, n in enumerate(names)]
