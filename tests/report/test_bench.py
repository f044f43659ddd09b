"""Benchmarks print; what they measure is what people use."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cgorl import config
from cgorl.report.bench import engine, env

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "bench.py"


def test_the_engine_is_measured_with_the_prices_and_rules_of_the_configuration() -> None:
    cfg = config.load_config("optimize", ["model=none", "device=taso", "rules=taso"])
    device = config.build(cfg.device)
    assert replace(device, source="", free=tuple(device.free)) == engine.DEVICE
    for name in ("default", "taso"):
        options = config.plain(config.load_config("optimize", ["model=none", f"rules={name}"]))
        assert config.rule_set(options["rules"]).digest == engine._rules(name, "").digest


def test_a_small_search_is_measured_whole() -> None:
    found = engine.measure(
        {"model": "squeezenet1_1", "zoo": {"image": 32, "width": 0.25}, "rules": "default", "file": "", "expansions": 5, "seconds": 60}
    )
    assert found["expansions"] == 5 and found["rate"] > 0 and found["cost"] <= found["initial"] and found["peak_mb"] > 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("promise model=bert count=1.5", "count must be a whole number, not '1.5'"),
        ("promise models=there", "stripped of their weights, and there is no restore.py beside them"),
        ("env seconds=abc", "seconds must be a number, not abc"),
        ("kernels nowhere.onnx", "nowhere.onnx"),
        ("kernels unbound=0", "unbound must be a whole number of at least 1, not '0'"),
    ],
)
def test_a_benchmark_that_cannot_be_is_one_sentence(words: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.stripped.onnx").touch()
    done = subprocess.run([sys.executable, SCRIPT, *words.split()], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1


def test_the_agent_is_measured_with_the_prices_of_the_configuration() -> None:
    pytest.importorskip("torch")
    from cgorl.report.bench import train

    device = config.build(config.load_config("optimize", ["model=none", "device=v100"]).device)
    assert replace(device, source="", free=tuple(device.free)) == env.DEVICE
    walked, learnt = env.measure("squeezenet1_1", 0.1), train.measure("squeezenet1_1", 1)
    assert walked["rate"] > learnt["rate"] > 0 and walked["nodes"] > 50
    assert learnt["env"] > 0 and learnt["act"] > 0 and learnt["update"] > 0 and learnt["curiosity"] > 0
