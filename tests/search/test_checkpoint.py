"""A search that was stopped and goes on from its file ends as one that never stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cgorl.search import checkpoint
from cgorl.search.backtracking import Backtracking
from cgorl.search.checkpoint import CheckpointError
from cgorl.search.lookahead import Lookahead
from cgorl.search.searcher import Budget, SearchResult
from tests.search.test_searchers import METHODS, RULES, SMALL, cost
from tests.texts import small

ROOT = Path(__file__).resolve().parents[2]


def spent(file: Path) -> int:
    return int(json.loads(file.read_text().split("\n", 1)[1])["spent"]["expansions"])


def facts(found: SearchResult) -> tuple[Any, ...]:
    steps = [(s.match.rule.name, s.match.nodes, s.added, s.before_ms, s.after_ms) for s in found.trace]
    others = [(way.cost_ms, way.size, [w.nodes for w in way.steps()]) for way in found.runners_up]
    return found.graph.key, found.cost_ms, found.initial_cost_ms, found.expansions, found.evaluations, found.stopped, steps, others


@pytest.mark.parametrize("method", [*METHODS, "forgetful"])
def test_a_resumed_search_equals_an_uninterrupted_one(method: str, tmp_path: Path) -> None:
    """Stopped at every few expansions, wherever in the search that is; "forgetful" keeps two graphs and makes the others again."""
    search = Backtracking(live=2) if method == "forgetful" else METHODS[method]
    graph = SMALL["branches"]() if method == "exhaustive" else small("repvgg_a0")
    most = Budget(expansions=None if method == "exhaustive" else 40)
    whole = search(graph, RULES, cost(), most)
    file = tmp_path / "search.json"
    for n in range(1, whole.expansions, 5):
        part = search(graph, RULES, cost(), Budget(expansions=n), checkpoint=file)
        assert part.expansions <= n or part.stopped not in ("expansions",)
    done = search(graph, RULES, cost(), most, checkpoint=file)
    assert facts(done) == facts(whole)
    assert facts(search(graph, RULES, cost(), most, checkpoint=file)) == facts(whole)  # once ended, it stays so


def test_forgetting_graphs_changes_nothing() -> None:
    graph = small("inception_v3")
    few, all_ = (Backtracking(live=n)(graph, RULES, cost(), Budget(expansions=60)) for n in (1, 1000))
    assert facts(few) == facts(all_)


def test_a_budget_that_ends_inside_a_graph_is_taken_up_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = checkpoint.Checkpoint.__init__
    monkeypatch.setattr(checkpoint.Checkpoint, "__init__", lambda self, path, search: real(self, path, search, 0.0))
    graph, file = small("repvgg_a0"), tmp_path / "search.json"
    for search in (METHODS["backtracking"], Lookahead(), METHODS["beam"]):
        file.unlink(missing_ok=True)
        whole = search(graph, RULES, cost(), Budget(expansions=30))
        for n in range(60, whole.evaluations, 97):
            search(graph, RULES, cost(), Budget(evaluations=n), checkpoint=file)
        assert facts(search(graph, RULES, cost(), Budget(expansions=30), checkpoint=file)) == facts(whole)


KILLED = """
import sys
from pathlib import Path
from cgorl.search import checkpoint
from cgorl.search.searcher import Budget
from tests.search.test_searchers import METHODS, RULES, cost, small
real = checkpoint.Checkpoint.__init__
checkpoint.Checkpoint.__init__ = lambda self, path, search: real(self, path, search, 0.0)
METHODS["backtracking"](small("inception_v3"), RULES, cost(), Budget(expansions=10_000), checkpoint=Path(sys.argv[1]))
"""


def test_a_killed_search_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(file)], cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "5"})
    until = time.monotonic() + 60
    while time.monotonic() < until and not (file.exists() and spent(file) >= 20):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    graph = small("inception_v3")
    n = spent(file) + 20
    done = METHODS["backtracking"](graph, RULES, cost(), Budget(expansions=n), checkpoint=file)
    assert facts(done) == facts(METHODS["backtracking"](graph, RULES, cost(), Budget(expansions=n)))


def test_a_file_of_another_search_is_refused(tmp_path: Path) -> None:
    graph, file = small("repvgg_a0"), tmp_path / "search.json"
    METHODS["greedy"](graph, RULES, cost(), Budget(expansions=3), checkpoint=file)
    with pytest.raises(CheckpointError, match="other settings"):
        METHODS["beam"](graph, RULES, cost(), Budget(), checkpoint=file)
    with pytest.raises(CheckpointError, match="other model"):
        METHODS["greedy"](small("inception_v3"), RULES, cost(), Budget(), checkpoint=file)
    for text in ("", "[]", "{}", '{"about": {}}', file.read_text()[:200], file.read_text().replace(":3,", ":4,", 1)):
        file.write_text(text)
        with pytest.raises(CheckpointError, match=r"search\.json"):
            METHODS["greedy"](graph, RULES, cost(), Budget(), checkpoint=file)
    file.write_bytes(b"\xe2\x00")  # no text at all: a model, say
    with pytest.raises(CheckpointError, match="is no checkpoint of a search"):
        METHODS["greedy"](graph, RULES, cost(), Budget(), checkpoint=file)
    with pytest.raises(CheckpointError, match="cannot write"):
        METHODS["greedy"](graph, RULES, cost(), Budget(expansions=3), checkpoint=Path("/proc/no/search.json"))
