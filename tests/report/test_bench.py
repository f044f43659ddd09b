"""Benchmarks print; what they measure is what people use."""

from dataclasses import replace

import pytest

from cgorl import config
from cgorl.report.bench import engine, env


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


def test_the_agent_is_measured_with_the_prices_of_the_configuration() -> None:
    pytest.importorskip("torch")
    from cgorl.report.bench import train

    device = config.build(config.load_config("optimize", ["model=none", "device=v100"]).device)
    assert replace(device, source="", free=tuple(device.free)) == env.DEVICE
    walked, learnt = env.measure("squeezenet1_1", 0.1), train.measure("squeezenet1_1", 1)
    assert walked["rate"] > learnt["rate"] > 0 and walked["nodes"] > 50
    assert learnt["env"] > 0 and learnt["act"] > 0 and learnt["update"] > 0 and learnt["curiosity"] > 0
