"""The experiment of the thesis on a tiny graph: what it runs, keeps, and claims."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any

import onnx
import pandas as pd
import pytest

from cgorl import cli, config
from cgorl.config import CONF, ConfigError
from cgorl.evaluation.run import Listening
from cgorl.evaluation.thesis import explore, thesis
from cgorl.report.thesis import claims, methods, page, spent_until
from cgorl.tracking import TrackError
from tests.test_config import Watched, keys
from tests.texts import model

TINY = "problems={tiny: 'model=inception_v3 zoo.form=taso zoo.width=0.125 zoo.depth=[1,1,1] zoo.image=75 rules=default'}"
FEW = ["only=[tiny]", "seeds=2", "evaluations=300", "times=2"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_each_method_runs_once_with_each_seed_and_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    right = config.experiment
    monkeypatch.setattr(config, "experiment", lambda *words: (Watched(right(*words)[0], seen), right(*words)[1]))
    what = thesis("thesis_main", [TINY, *FEW, "output=kept"])
    ran: list[str] = []
    table = explore(what, Listening(begin=lambda job: ran.append(job.words)))
    assert set(keys(CONF / "experiment" / "thesis_main.yaml")) <= seen
    counts = table.groupby("method").size()
    assert len(ran) == len(table) and counts["greedy"] == 1 and counts["agent"] == counts["train icm"] == counts["gain"] == 2
    assert table["error"].isna().all() and (table["cost_ms"] <= table["initial_ms"]).all()
    assert (table.loc[table["method"].isin(what.keys["methods"]), "evaluations"] <= 300).all() and table["evaluations"].max() > 300
    timed = table[table["method"].isin(what.keys["as_long"])]
    assert set(timed["method"]) == set(what.keys["as_long"]) and (timed["budget.seconds"] >= 1).all()
    text = Path("kept/thesis_main.md").read_text()
    assert "lower than every baseline at equal evaluations | tiny" in text and "seeds=2" in text and "with 2 seeds" in text
    assert {r.method for r in thesis("thesis_main", [TINY, *FEW, "learn=false"]).runs} == set(what.keys["methods"])
    assert {r.method for r in what.runs} - {r.method for r in thesis("thesis_main", [TINY, *FEW, "without=[annealing long]"]).runs} == {
        "annealing long"
    }
    ran.clear()
    assert "in as many seconds | tiny" in text
    assert len(explore(what, Listening(begin=lambda job: ran.append(job.words)))) == len(table) and not ran


def test_what_failed_is_run_again() -> None:
    what = thesis("thesis_main", ["problems={one: model=m.onnx}", "only=[one]", "learn=false", "output=kept"])
    what = what._replace(runs=tuple(r for r in what.runs if r.method == "greedy"))
    assert list(explore(what)["error"].notna()) == [True]
    onnx.save(model("agraph (float[2] x) => (float[2] y) { y = Relu(x) }"), "m.onnx")
    assert list(explore(what)["error"].notna()) == [False]


def test_a_table_of_something_else_is_named() -> None:
    Path("thesis_main.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TrackError, match="is no table of an earlier run"):
        explore(thesis("thesis_main", [TINY, *FEW, "output=."]))


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["seeds=0"], "seeds must be"),
        (["evaluations=null"], "evaluations must be a whole number of at least 1, not null"),
        (["times=0.5"], "times must be a whole number of at least 1, not 0.5"),
        (["only=[vgg]"], "no problem 'vgg'"),
        (["without=[vgg]"], "no method 'vgg'; there are greedy"),
        (["model=bert"], "no key 'model'"),
        (["evaluationz=3"], "no key 'evaluationz'"),
        (["only=vgg"], r"only must be a list, as \[a,b\], not 'vgg'"),
        (["problems=null"], "problems must be names with values, not None"),
        (["methods.greedy=5"], "methods.greedy must be text, not 5"),
        (["output=null"], "output must be text, not None"),
        (["learn=5"], "learn must be true or false, not 5"),
    ],
)
def test_mistakes_are_named(argv: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        thesis("thesis_main", argv)
    assert cli.evaluate(["experiment=thesis_main", *argv], "") == 1


def row(method: str, ms: float, curve: str, seed: Any = None, problem: str = "p") -> dict[str, Any]:
    about = {"rules": "default", "device": "v100", "commit": "c", "machine": "m", "date": "d", "command": "the command", "error": None}
    spent = {"evaluations": 900, "cpu_seconds": 1.0}
    return {"problem": problem, "method": method, "seed": seed, "initial_ms": 10.0, "cost_ms": ms, "curve": curve, **spent, **about}


def test_claims_by_hand() -> None:
    rows = [
        *(row("greedy", 9.0, "0:10 50:9"), row("backtracking", 8.0, "0:10 50:9 600:8"), row("gain", 8.5, "0:10 70:8.5", 1)),
        *(row("gain", 8.3, "0:10 70:8.3", 2), row("agent", 7.999, "0:10 200:8.001 300:7.999", 1), row("agent", 8.0, "0:10 290:8", 2)),
    ]
    found = {c[0]: c[2:] for c in claims({"p": methods(pd.DataFrame(rows))})}
    half = found["as cheap as the best known with at most half of backtracking's evaluations, zero-shot"]
    assert half == ["agent 200 to 290, backtracking 600", "yes"]
    assert found["lower than every baseline at equal evaluations"][1] == "not told apart"
    assert found["better led by what was learnt than by gains alone"][1] == "yes"
    worse = [row("agent", 8.2, "0:10 290:8.2", k) for k in (1, 2)]
    found = {c[0]: c[2:] for c in claims({"p": methods(pd.DataFrame([*rows[:2], *worse]))})}
    assert found["lower than every baseline at equal evaluations"][1] == "no: higher"
    long = [row("train general", 7.9, "0:10", k) for k in (1, 2)] + [row("backtracking long", 8.0, "0:10"), row("beam long", 8.5, "0:10")]
    told = claims({"p": methods(pd.DataFrame(long))})
    assert [(c[0], c[3]) for c in told] == [
        ("training on the graph from the general policy pays against every baseline at as many evaluations", "yes")
    ]
    assert "backtracking long -20.00 %" in told[0][2]
    assert (
        found["as cheap as the best known with at most half of backtracking's evaluations, zero-shot"][1]
        == "no: does not come near the best known"
    )
    text = page(pd.DataFrame([*rows, row("beam", math.nan, "") | {"error": "out of luck"}]))
    assert (
        "- command: `the command`" in text
        and "## Failed" in text
        and "beam: out of luck" in text
        and "-20.000, -20.010" not in text
        and "-20.010, -20.000" in text
    )


def test_evaluations_until_a_cost() -> None:
    assert spent_until("0:10 50:9 600:8", 9.0) == 50 and math.isnan(spent_until("0:10 50:9", 8.9)) and spent_until("0:10", 10.0) == 0
