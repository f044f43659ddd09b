"""The experiments that train, with next to no budget: what they run, keep and say."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from cgorl import cli, config
from cgorl.config import CONF, ConfigError
from cgorl.report import studied
from cgorl.studies import study
from cgorl.tracking import Tracker
from tests.test_config import Watched, keys
from tests.test_training import QUICK, SMALL

TINY = " ".join(["model=repvgg_a0", *SMALL, *QUICK, "ppo.total_timesteps=16", "env.horizon=4"])


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def watched(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    seen: set[str] = set()
    right = config.experiment
    monkeypatch.setattr(config, "experiment", lambda *words: (Watched(right(*words)[0], seen), right(*words)[1]))
    return seen


def test_curiosity_trains_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    given = [f"common='{TINY}'", "compared=['icm=none,count','icm=default icm.beta=0.1,3']", "seeds=1", "output=kept"]
    said: list[str] = []
    assert study("curiosity", given).run(said.append) == 1  # a beta of 3 cannot be
    assert set(keys(CONF / "experiment" / "curiosity.yaml")) <= seen
    table = pd.read_csv("kept/curiosity.csv")
    assert len(table) == 4 and table["share"].notna().sum() == 3
    assert all(
        c.startswith("0:1") and (s == 1 or c.endswith(f":{s:.7g}")) for c, s in zip(table["curve"], table["share"], strict=True) if s == s
    )
    assert "icm.beta must be" in table["error"].dropna().iloc[0]
    assert any(t.startswith("  failed: icm.beta must be") for t in said)
    text = Path("kept/curiosity.md").read_text()
    assert "| icm=count |" in text and "- failed: icm.beta must be" in text and "seeds=1" in text
    said.clear()
    assert study("curiosity", given).run(said.append) == 1 and sum("there already" in t for t in said) == 3


def test_what_was_killed_goes_on_from_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = TINY.replace("total_timesteps=16", "total_timesteps=64")  # 4 updates
    given = [f"common='{longer}'", "compared=['icm=none']", "seeds=1"]
    assert study("curiosity", [*given, "output=whole"]).run() == 0
    shutil.rmtree("runs")
    right = Tracker.log

    def killed(tracker: Tracker, *words: Any, **more: Any) -> None:
        right(tracker, *words, **more)
        if len((tracker.folder / "metrics.jsonl").read_text().splitlines()) == 2:
            raise SystemExit  # nothing of cgorl's hears it, as with a kill

    monkeypatch.setattr(Tracker, "log", killed)
    with pytest.raises(SystemExit):
        study("curiosity", [*given, "output=cut"]).run()
    monkeypatch.setattr(Tracker, "log", right)
    assert not Path("cut").exists()
    said: list[str] = []
    assert study("curiosity", [*given, "output=cut"]).run(said.append) == 0
    assert "  goes on from runs/train/" in said[1]
    whole, cut = (pd.read_csv(f"{name}/curiosity.csv").drop(columns="command") for name in ("whole", "cut"))
    pd.testing.assert_frame_equal(whole, cut)
    assert sorted(len(f.read_text().splitlines()) for f in Path("runs").glob("train/*/metrics.jsonl")) == [2, 2]


def test_transfer_leaves_each_family_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    common = " ".join(["device=v100", *QUICK, "ppo.total_timesteps=16", "env.horizon=4"])
    given = ["families=tiny", "graphs=1", "seeds=1", "seconds=0.3", "evaluations=60", "output=kept"]
    assert cli.sweep(["experiment=transfer", f"common='{common}'", *given], "") == 0
    assert set(keys(CONF / "experiment" / "transfer.yaml")) <= seen
    table = pd.read_csv("kept/transfer.csv")
    assert set(table["family"]) == {"bert", "inception_e_n"} and table["error"].isna().all()
    learnt = {"zero-shot", "zero-shot alone", "trained on it"}
    assert set(table["method"]) == {"greedy", "backtracking", "gain", "untrained", *learnt} and len(table) == 14
    assert (table["evaluations"] > 0).all() and table["about"].nunique() == 1
    assert all(row["graph"].startswith(row["family"]) and row["change"] <= 0 for row in table.to_dict("records"))
    for folder in Path("runs/train").iterdir():  # the family left out was not trained on
        drawn = set(yaml.safe_load((folder / "config.yaml").read_text())["families"]["draw"])
        assert len(drawn) == 1 and f"without_{next(iter(drawn))}" not in folder.name
    assert "| bert | zero-shot |" in Path("kept/transfer.md").read_text()
    said: list[str] = []
    assert study("transfer", [f"common='{common}'", *given, "only=[bert]"]).run(said.append) == 0  # other families make no other row
    assert said == ["bert left out, seed 1: there already"]


@pytest.mark.parametrize(
    ("name", "argv", "says"),
    [
        ("curiosity", ["seeds=0"], "seeds must be"),
        ("transfer", ["graphs=x"], "graphs must be"),
        ("curiosity", ["model=bert"], "no key 'model'"),
        ("curiosity", ["compared=5"], "compared must be a list"),
        ("curiosity", [f"output={__file__}"], "output must be a folder"),
        ("landscape", [], "is one of scripts/evaluate.py"),
    ],
)
def test_mistakes_are_named(name: str, argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=says):
        study(name, argv)
    assert cli.sweep([f"experiment={name}", *argv], "") == 1 and says in capsys.readouterr().err


def test_families_that_are_none_are_named() -> None:
    with pytest.raises(ConfigError, match="families must name some"):
        study("transfer", ["families=none"]).run()
    with pytest.raises(ConfigError, match="families=tiny has no family 'vgg'; it has bert, inception_e_n"):
        study("transfer", ["families=tiny", "only=[vgg]"]).run()


def test_the_other_script_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.evaluate(["experiment=curiosity"], "") == 1 and "scripts/sweep.py runs it" in capsys.readouterr().err


ORIGIN: dict[str, Any] = {"error": None, "commit": "c", "machine": "m", "date": "d", "command": "the command"}


def test_pages_tell_every_value() -> None:
    shares = {"icm=none": (0.51, 0.52, 0.52, 0.53), "icm=default icm.beta=0.1 icm.eta=1": (0.41, 0.42, 0.42, 0.43)}
    shares["icm=default icm.beta=0.1 icm.eta=2"] = (0.61, 0.42, 0.52, 0.53)
    rows = [
        {"training": t, "seed": k, "share": v, "final_share": 0.9, "curve": f"0:1 {k}00:0.6 {k}000:{v}", "about": a, **ORIGIN}
        for a in ("model=a", "model=b")
        for t, values in shares.items()
        for k, v in enumerate(values, 1)
    ]
    text = studied.curiosity(pd.DataFrame(rows))
    assert "with 4 values" in text and "`the command`" in text and text.count("## model=") == 2
    assert "| icm=none | -48.00 | -49.00 to -47.00 | -49.00, -48.00, -48.00, -47.00 | -10.00 | - |  |  |" in text
    assert "| -10.00 | 1,000 to - | -10.00 (-10.00 to -10.00) | lower |" in text
    assert "not told apart" in text.split("icm.eta=2 |")[1].split("\n")[0]
    assert "| beta 0.1 | -58.00 | -47.50 |" in text  # what is of another experiment stands by itself
    assert "| too few values to tell |" in studied.curiosity(pd.DataFrame([r for r in rows if r["seed"] < 4]))


def test_transfer_compares_on_the_same_graphs() -> None:
    changes = {"gain": (-10.0, -20.0) * 2, "untrained": (-12.0, -20.0) * 2, "zero-shot": (-11.0, -21.0) * 2}
    rows = [
        {"family": "bert", "method": m, "seed": k, "graph": f"bert {k}", "change": v, "evaluations": 7, "about": "a", **ORIGIN}
        for m, values in changes.items()
        for k, v in enumerate(values)
    ]
    text = studied.transfer(pd.DataFrame(rows))
    assert "| bert | -15.00 | -16.00 | -16.00 |" in text and "| bert | gain | -15.00 | -10.00, -20.00, -10.00, -20.00 | 7 |  |" in text
    assert "| -11.00, -21.00, -11.00, -21.00 | 7 | -1.00 (-1.00 to -1.00) lower | +0.00 (-1.00 to +1.00) not told apart |" in text
