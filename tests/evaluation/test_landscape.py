"""The landscape experiment on tiny graphs: what it finds, keeps, and does not run again."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cgorl import config, zoo
from cgorl.config import ConfigError
from cgorl.evaluation.landscape import explore, landscape, moves
from cgorl.evaluation.run import Listening
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library
from cgorl.search.beam import Beam
from tests.search.test_searchers import SMALL
from tests.search.test_trace import cost

TINY = ("model=bert", "zoo.layers=1", "zoo.hidden=8", "zoo.heads=2", "zoo.seq=4", "device=taso", "rules=default,none")
QUICK = (
    "methods.backtracking='search=backtracking expansions=20'",
    "methods.annealing='search=annealing search.steps=20'",
    "methods.lookahead='search=lookahead expansions=20'",
    "methods.beam='search=beam search.patience=2'",
    "best.seconds=0.2",
    "best.expansions=1000",
    "marks=[5,20]",
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_what_is_found_is_kept_and_not_run_again() -> None:
    said: list[str] = []
    ran: list[str] = []
    listen = Listening(begin=lambda job: ran.append(job.words))
    table = explore(landscape([*TINY, *QUICK, "output=kept"]), listen, said.append)
    assert list(table["method"].unique()) == ["greedy", "lookahead", "backtracking", "beam", "annealing", "best"] and len(table) == 12
    assert said == [] and len(ran) == 12 and table["error"].isna().all()
    rows = table[table["rules"] == "default"].set_index("method")
    assert (rows["best_ms"] == rows["cost_ms"].min()).all()
    assert rows["room"].iloc[0] == pytest.approx((rows.loc["greedy", "cost_ms"] - rows["cost_ms"].min()) / rows["initial_ms"].iloc[0])
    assert rows["lower"].iloc[0] + rows["keep"].iloc[0] + rows["raise"].iloc[0] == pytest.approx(1)
    assert rows.loc["greedy", "evaluations_to_own"] <= rows.loc["greedy", "evaluations"]
    assert rows.loc["backtracking", "at_5"] >= rows.loc["backtracking", "at_20"] >= rows.loc["backtracking", "cost_ms"]
    nothing = table[table["rules"] == "none"]
    assert (nothing["room"] == 0).all() and (nothing["moves"] == 0).all() and (nothing["depth"] == 0).all()
    text = Path("kept/landscape.md").read_text()
    assert text.count("| **no room** |") == 2 and "experiment=landscape model=bert" in text

    ran.clear()
    again = explore(landscape([*TINY, *QUICK, "output=kept"]), listen, said.append)
    assert ran == [] and len(said) == 2 and len(again) == 12
    explore(landscape([*TINY[:-1], "rules=none", "seconds=59", *QUICK, "output=kept"]), listen)
    assert len(ran) == 6, "another setting is another result"
    assert len(pd.read_csv("kept/landscape.csv")) == 12


def test_an_interrupted_problem_is_not_kept() -> None:
    def press(job: Any) -> None:
        if job.number == 9:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        explore(landscape([*TINY, *QUICK, "output=kept"]), Listening(begin=press))
    assert set(pd.read_csv("kept/landscape.csv")["rules"]) == {"default"}


def test_a_method_that_fails_is_told_and_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    what = landscape([*TINY[:-1], "rules=none", *QUICK, "output=kept"])
    with monkeypatch.context() as broken:
        broken.setattr(Beam, "__call__", lambda *_: 1 / 0)
        table = explore(what)
    assert list(table.loc[table["error"].notna(), "method"]) == ["beam"] and "ZeroDivisionError" in Path("kept/landscape.md").read_text()
    assert table["room"].notna().all()
    ran: list[int] = []
    table = explore(what, Listening(begin=lambda job: ran.append(job.number)))
    assert len(ran) == 6 and table["error"].isna().all()


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["best.seconds.more=1"], "no key 'best.seconds.more'"),
        (["best.secondz=1"], "no key 'best.secondz'; did you mean 'best.seconds'?"),
        (["search=beam"], "'search' is for each method to say"),
        (["modle=bert"], "no key 'modle'; did you mean 'model'?"),
        (["rules.fiel=x"], "no key 'rules.fiel'"),
        (["methods.beam='search=bean'"], "no search=bean"),
    ],
)
def test_each_mistake_is_one_sentence(overrides: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        landscape(overrides)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_the_experiment_names_what_there_is() -> None:
    keys, left = config.experiment("landscape", [])
    assert left == [] and set(keys["sweep"]["model"].split(",")) <= set(zoo.names())
    for group in ("rules", "device"):
        assert set(keys["sweep"][group].split(",")) <= set(config.groups()[group])
    [problem] = landscape(["model=bert", "rules=taso", "device=taso"]).problems
    assert [j.keys["method"] for j in problem.jobs] == [*keys["methods"], "best"]
    assert (problem.jobs[2].cfg.expansions, problem.jobs[-1].cfg.seconds) == (1000, 600)


def test_moves_are_counted_by_what_they_gain() -> None:
    graph, rules = SMALL["branches"](), RuleSet(library())
    lower, keep, higher = moves([graph], rules, cost())
    gains = [cost().gain(graph, m.edit) for m in MatchSet(graph, rules)]
    assert (lower, keep, higher) == (sum(g > 1e-9 for g in gains), sum(abs(g) <= 1e-9 for g in gains), sum(g < -1e-9 for g in gains))
    assert lower and higher


@pytest.mark.parametrize(
    ("word", "said"), [("graphs=-3", "graphs must be"), ("marks=[abc]", "marks must be"), ("output=file", "output must be")]
)
def test_what_it_cannot_do_is_said_before_the_first_problem(word: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    with pytest.raises(ConfigError, match=said):
        landscape([*TINY, *QUICK, word])
