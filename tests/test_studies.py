"""The experiments that train, with next to no budget: what they run, keep and say."""

from __future__ import annotations

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
    assert len(table) == 4 and table["share"].notna().sum() == 3 and "icm.beta must be" in table["error"].dropna().iloc[0]
    assert any(t.startswith("  failed: icm.beta must be") for t in said)
    text = Path("kept/curiosity.md").read_text()
    assert "| icm=count |" in text and "- failed: icm.beta must be" in text and "seeds=1" in text
    said.clear()
    assert study("curiosity", given).run(said.append) == 1 and sum("there already" in t for t in said) == 3


def test_transfer_leaves_each_family_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    common = " ".join(["device=v100", *QUICK, "ppo.total_timesteps=16", "env.horizon=4"])
    given = ["families=tiny", "graphs=1", "seeds=1", "seconds=0.3", "evaluations=60", "output=kept"]
    assert cli.sweep(["experiment=transfer", f"common='{common}'", *given], "") == 0
    assert set(keys(CONF / "experiment" / "transfer.yaml")) <= seen
    table = pd.read_csv("kept/transfer.csv")
    assert set(table["family"]) == {"bert", "inception_e_n"} and table["error"].isna().all()
    assert set(table["method"]) == {"greedy", "backtracking", "gain", "zero-shot", "a minute on it"} and len(table) == 10
    assert all(row["graph"].startswith(row["family"]) and row["change"] <= 0 for row in table.to_dict("records"))
    for folder in Path("runs/train").iterdir():  # the family left out was not trained on
        drawn = set(yaml.safe_load((folder / "config.yaml").read_text())["families"]["draw"])
        assert len(drawn) == 1 and f"without_{next(iter(drawn))}" not in folder.name
    assert "| bert | zero-shot |" in Path("kept/transfer.md").read_text()


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


def test_the_other_script_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.evaluate(["experiment=curiosity"], "") == 1 and "scripts/sweep.py runs it" in capsys.readouterr().err


def test_pages_tell_every_value() -> None:
    origin: dict[str, Any] = {"error": None, "commit": "c", "machine": "m", "date": "d"}
    table = pd.DataFrame([{"training": "icm=none", "seed": k, "share": 0.5 + 0.01 * k, **origin} for k in (1, 2, 3)])
    text = studied.curiosity(table, "the command")
    assert "| icm=none | -48.00 |" in text and "-49.00, -48.00, -47.00" in text and "with 3 values" in text and "`the command`" in text
