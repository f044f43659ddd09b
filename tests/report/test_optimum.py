"""The page of gaps: the optimum is that of the search that saw every graph, and only of that."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cgorl.report.optimum import page
from cgorl.search.exhaustive import COMPLETE

ORIGIN: dict[str, Any] = {
    "rules": "default",
    "device": "v100",
    "commit": "c",
    "machine": "m",
    "date": "d",
    "command": "the command",
    "error": None,
}


def row(method: str, ms: float, stopped: str = "evaluations", seed: int | None = None, problem: str = "small") -> dict[str, Any]:
    spent = {"expansions": 70, "evaluations": 4000 if method == "exhaustive" else 90, "cpu_seconds": 1.0}
    told = {"problem": problem, "method": method, "seed": seed, "initial_ms": 2.0, "cost_ms": ms, "stopped": stopped}
    return {**told, **spent, "curve": f"0:2 30:{ms:.7g}", **ORIGIN}


def of(*rows: dict[str, Any]) -> str:
    return page(pd.DataFrame(rows))


def test_gaps_are_to_the_optimum() -> None:
    text = of(
        row("exhaustive", 1.0, COMPLETE), row("greedy", 1.1), *(row("agent", ms, seed=k) for k, ms in enumerate((1.0, 1.0, 1.5, 1.0)))
    )
    assert (
        "| small | yes | 70 | 4,000 | 10.00 | 0.00 | greedy, agent |" in text
        and "optimum 1 ms (-50.00 %)" in text
        and "`the command`" in text
    )
    assert "| greedy | 10.000 |  | 10.000 | 0 of 1 | - | 90 | 1.0 |" in text
    assert "| 50.000 | 3 of 4 | 30 to - | 90 | 1.0 |" in text and "with 4 seeds" in text


def test_a_problem_on_which_all_are_there_says_so() -> None:
    rows = [row("exhaustive", 1 / 3, COMPLETE), row("greedy", 1 / 3), row("beam", 1 / 3 + 1e-9)]
    text = of(*rows, *({**r, "problem": "other", "cost_ms": r["cost_ms"] * (2 if r["method"] == "beam" else 1)} for r in rows))
    assert "| small | yes | 70 | 4,000 | 0.00 | 0.00 | none: it tells no method apart |" in text
    assert "| other | yes | 70 | 4,000 | 0.00 | 100.00 | beam |" in text and "| greedy | 0.000 |  | 0.000 | 1 of 1 | 30 |" in text


@pytest.mark.parametrize("best", [1.0, 0.9])
def test_where_it_did_not_end_the_optimum_is_not_known(best: float) -> None:
    text = of(row("exhaustive", 1.0), row("greedy", best), row("beam", 1.8))
    assert "no: gaps are to the best that any run found" in text and "over 70 | over 4,000" in text and f"best known {best:g} ms" in text
    assert f"| beam | {100 * (1.8 / best - 1):.3f} |" in text and "optimum 1 ms" not in text


def test_what_failed_is_told() -> None:
    text = of(row("exhaustive", 1.0, COMPLETE), {**row("agent", float("nan")), "error": "no such file"})
    assert "- small, agent: no such file" in text and "| agent |" not in text
