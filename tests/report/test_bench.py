"""Benchmarks print; what they measure is what people use."""

from dataclasses import replace

from cgorl import config
from cgorl.report.bench import engine


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
