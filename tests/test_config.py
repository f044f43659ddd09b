"""Configuration: every key has a reader, every mistake one clear error, every path is taken as it stands."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cgorl import config, jobs
from cgorl.config import CONF, ConfigError, load_config, plain
from cgorl.search.searcher import Budget

BASE = ["model=m.onnx"]


def options(*overrides: str) -> dict[str, Any]:
    found = plain(load_config("optimize", [*BASE, *overrides]))
    config.check(found)
    return found


# ---------------------------------------------------------------- keys have readers
class Watched(dict[str, Any]):
    """A mapping that remembers which keys were read, below it too."""

    def __init__(self, data: Mapping[str, Any], seen: set[str], at: str = "") -> None:
        super().__init__(
            {k: Watched(v, seen, f"{at}{k}.") if isinstance(v, dict) and k not in ("dims", "zoo") else v for k, v in data.items()}
        )
        self.seen, self.at = seen, at

    def __getitem__(self, key: str) -> Any:
        self.seen.add(f"{self.at}{key}")
        return super().__getitem__(key)


def keys(file: Path) -> Iterator[str]:
    yield from (k for k in yaml.safe_load(file.read_text()) if k not in ("defaults", "_target_"))


def test_each_key_of_optimize_has_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: set[str] = set()
    right = config.plain
    monkeypatch.setattr(config, "plain", lambda cfg: Watched(right(cfg), seen))
    given = ["zoo.layers=1", "zoo.hidden=8", "zoo.heads=2", "zoo.seq=4", "rules=none", f"runs={tmp_path}"]
    from cgorl import cli

    assert cli.optimize(["model=bert", *given, f"output={tmp_path / 'o.onnx'}"], "") == 0
    assert {k for k in keys(CONF / "optimize.yaml")} <= seen
    seen.clear()
    assert cli.evaluate(["model=bert", *given, "prove=true"], "") == 0
    assert {k for k in keys(CONF / "evaluate.yaml")} <= seen | {"runs"}  # read as cfg.runs: the folder is there
    assert len(list((tmp_path / "evaluate").iterdir())) == 1


def test_each_key_of_the_landscape_has_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cgorl.evaluation import landscape

    seen: set[str] = set()
    right = config.experiment
    monkeypatch.setattr(config, "experiment", lambda *words: (Watched(right(*words)[0], seen), right(*words)[1]))
    methods = ["methods.lookahead='search=greedy'", "methods.beam='search=greedy'", "methods.annealing='search=greedy'"]
    given = ["model=bert", "zoo.layers=1", "zoo.hidden=8", "zoo.heads=2", "zoo.seq=4", "rules=none", "device=taso", f"output={tmp_path}"]
    landscape.explore(landscape.landscape([*given, *methods, "best.seconds=0.1"]))
    assert {k for k in keys(CONF / "experiment" / "landscape.yaml")} <= seen


@pytest.mark.parametrize("file", sorted(CONF.glob("rules/*.yaml")), ids=lambda f: f.stem)
def test_each_key_of_a_rule_choice_has_a_reader(file: Path) -> None:
    seen: set[str] = set()
    data = plain(load_config("optimize", [*BASE, f"rules={file.stem}"]))["rules"]
    config.rule_set(Watched(data, seen))
    assert set(keys(file)) <= seen | {k for k in data if data[k] is None}


@pytest.mark.parametrize("group", sorted(p.name for p in CONF.iterdir() if p.is_dir() and p.name not in ("rules", "experiment")))
def test_each_choice_of_each_group_builds_an_object_that_takes_every_key(group: str) -> None:
    """A class takes plain arguments: a key without a parameter fails."""
    for file in sorted((CONF / group).glob("*.yaml")):
        cfg = load_config("optimize" if group in config.defaults("optimize") else "train", [*BASE, f"{group}={file.stem}"])
        built = config.build(cfg[group])
        for key in keys(file):
            assert hasattr(built, key), f"{group}/{file.name}: {key}"


@pytest.mark.parametrize("file", sorted(CONF.glob("**/*.yaml")), ids=lambda f: str(f.relative_to(CONF)))
def test_options_are_not_called_like_yaml_booleans(file: Path) -> None:
    assert not re.search(r"^\s*(on|off|yes|no|y|n):|:\s*(on|off|yes|no)\s*$", file.read_text(), re.M | re.I)


def test_the_parts_of_a_job_are_what_the_configuration_says() -> None:
    cfg = load_config(
        "optimize",
        [
            *BASE,
            "seconds=null",
            "expansions=7",
            "evaluations=9",
            "search.least_ms=0.5",
            "device.launch_ms=2",
            "rules=none",
            "unbound=3",
            "dims.n=4",
        ],
    )
    rules, cost, search, budget = jobs.parts(cfg)
    assert (len(rules), budget, search.least_ms) == (0, Budget(None, 7, 9), 0.5)
    assert (cost.device.launch_ms, cost.unbound, cost.dims) == (2, 3, {"n": 4})


# ---------------------------------------------------------------- rules
def test_rules_by_name_and_tag() -> None:
    every = config.rule_set(options()["rules"])
    name = every.rules[0].name
    assert [r.name for r in config.rule_set(options(f"rules.include=[{name}]")["rules"])] == [name]
    assert name not in [r.name for r in config.rule_set(options(f"rules.exclude=[{name}]")["rules"])]
    assert config.rule_set(options("rules.growth=3")["rules"]).growth == 3
    assert len(config.rule_set(options("rules=none")["rules"])) == 0


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("rules.exclude=[nope]", "no rule or tag 'nope'"),
        ("rules.include=[conv-batchnrm]", "did you mean"),
        ("rules.include=layout", "must be a list"),
        ("rules.growth=-1", "rules.growth must be a number"),
        ("rules.growth=x", "rules.growth must be a number"),
    ],
)
def test_wrong_rules_are_named(override: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        config.rule_set(options(override)["rules"])


# ---------------------------------------------------------------- mistakes
@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("serch=greedy", "no key 'serch'; did you mean 'search'?"),
        ("search=gredy", "no search=gredy (did you mean 'greedy'?); there are "),
        ("search=", "no search="),
        ("device.peak_flopz=1", "no key 'device.peak_flopz'; did you mean 'device.peak_flops'?"),
        ("search.least_mss=1", "did you mean 'search.least_ms'?"),
        ("rules.excluded=[]", "did you mean 'rules.exclude'?"),
        ("model.x=1", "no key 'model.x'"),
        ("+extra=1", "no key '+extra'"),
        ("++seed=1", "no key '++seed'"),
        ("~search", "should read key=value"),
        ("~search=greedy", "no key '~search'"),
        ("--fast", "should read key=value"),
        ("-m", "should read key=value"),
        ("hydra.run.dir=x", "no key 'hydra.run.dir'"),
        ("zoo.depth=[1,2", "the value of 'zoo.depth=[1,2' cannot be read"),
        ("experiment=landscape", "no key 'experiment'"),
        ("seconds=abc", "seconds must be a number of at least 0, or null, not 'abc'"),
        ("seconds=-1", "seconds must be"),
        ("seconds=true", "seconds must be"),
        ("expansions=1.5", "expansions must be a whole number"),
        ("evaluations=-1", "evaluations must be"),
        ("seed=-1", "seed must be"),
        ("seed=x", "seed must be"),
        ("simplify=maybe", "simplify must be true or false"),
        ("prove=3", "prove must be true or false"),
        ("exit_codes=fancy", "exit_codes must be plain or detailed"),
        ("dims.batch=x", "dims.batch must be a whole number of at least 1, not 'x'"),
        ("dims.batch=0", "dims.batch must be"),
        ("dims.batch=", "dims.batch must be"),
        ("dims=3", "dims must be names with values"),
        ("zoo=3", "zoo must be names with values"),
        ("unbound=0", "unbound must be"),
    ],
)
def test_each_mistake_is_one_clear_sentence(override: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options(override)
    assert says in str(caught.value) and "\n" not in str(caught.value) and "hydra.cc" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("device.peak_flops=abc", "peak_flops must be a number above 0"),
        ("device.peak_flops=0", "peak_flops must be a number above 0"),
        ("device.launch_ms=-1", "launch_ms must be a number of at least 0"),
        ("search.least_ms=abc", "least_ms must be a number of at least 0"),
    ],
)
def test_values_that_a_class_will_not_have_are_named(override: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        jobs.parts(load_config("optimize", [*BASE, override]))


def test_a_search_for_comparison_that_is_none() -> None:
    with pytest.raises(ConfigError, match=r"no search=gredy \(did you mean 'greedy'"):
        jobs.load(load_config("optimize", [*BASE, "versus=gredy"]))


@pytest.mark.parametrize("given", [[], ["model="], ["model=null"]])
def test_a_model_must_be_given(given: list[str]) -> None:
    with pytest.raises(ConfigError, match="'model' must be given"):
        load_config("optimize", given)


# ---------------------------------------------------------------- values as they stand
@pytest.mark.parametrize(
    "path",
    ["a b.onnx", "a=b.onnx", "a,b.onnx", "it's.onnx", 'say "x".onnx', "ünï.onnx", "-dash.onnx", "a\\b.onnx", "${model}.onnx", "[1].onnx",
     "{a: 1}", "~/x", "#x", "null.onnx", "'q'", "\\'.onnx", "nl\nx", "$(x)", "???x", "@a", "1e3", "true"],
)  # fmt: skip
def test_paths_are_taken_literally(path: str) -> None:
    cfg = load_config("optimize", [f"model={path}", f"output={path}", f"runs={path}"])
    found = plain(cfg)
    assert (found["model"], found["output"], found["runs"]) == (path, path, path)
    assert yaml.safe_load(config.yaml(cfg))["model"] == path
    again = plain(load_config("optimize", values={"model": Path(path), "output": path}))
    assert (again["model"], again["output"]) == (str(Path(path)), path)


def test_values_from_python() -> None:
    cfg = load_config(
        "optimize", values={"model": "m", "zoo": {"depth": (1, 2)}, "dims": {"x:0": 3, "a.b": 4}, "seconds": None, "rules": "none"}
    )
    found = plain(cfg)
    assert found["zoo"] == {"depth": [1, 2]} and found["dims"] == {"x:0": 3, "a.b": 4} and found["seconds"] is None
    assert found["rules"]["include"] == []
    assert load_config("optimize", values={"model": "m", "search.least_ms": 2.0}).search.least_ms == 2.0
    with pytest.raises(ConfigError, match="no key 'foo'"):
        load_config("optimize", values={"model": "m", "foo": 1})
    with pytest.raises(ConfigError, match="no search=gredy"):
        load_config("optimize", values={"model": "m", "search": "gredy"})


def test_names_with_values_from_the_command_line() -> None:
    found = options("dims.x:0=3", "dims.a.b=4", "zoo.depth=[1,2]", "zoo.form=taso", "zoo.width=0.5")
    assert found["dims"] == {"x:0": 3, "a.b": 4} and found["zoo"] == {"depth": [1, 2], "form": "taso", "width": 0.5}


@pytest.mark.parametrize("name", ["optimize", "evaluate", "train"])
def test_usage_names_every_key_and_choice(name: str) -> None:
    text = config.usage(name)
    for key in keys(CONF / f"{name}.yaml"):
        assert re.search(rf"^ +{key}:", text, re.M), key
    for group in config.defaults(name):
        there = config.groups()[group]
        assert f"{group}={'|'.join(there)}" in text


def test_a_package_without_its_clone_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config.files, "CONF", tmp_path / "conf")
    with pytest.raises(ConfigError, match="clone of its repository"):
        load_config("optimize", BASE)


@pytest.mark.parametrize(
    ("overrides", "search"),
    [
        ([], "Greedy"),
        (["cost=roofline"], "Greedy"),
        (["cost=measured"], "Backtracking"),
        (["cost=measured", "search.alpha=1.1"], "Backtracking"),
        (["search=beam", "cost=measured"], "Beam"),
        (["cost=measured", "cost=roofline"], "Greedy"),
    ],
)
def test_measured_prices_bring_the_search_that_chains_need(overrides: list[str], search: str) -> None:
    cfg = load_config("optimize", ["model=bert", *overrides])
    assert cfg.search._target_.endswith(search)
    if search == "Backtracking":
        assert cfg.search.alpha == (1.1 if "search.alpha=1.1" in overrides else 1.2)


_OWN = """
# A sum turned round, for want of a better idea.
rule mine: swap
    Add(x, y)
 => y + x
"""


def test_rules_of_ones_own_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my own.rules"
    file.write_text(_OWN)
    for choice, count in (("none", 0), ("default", len(config.rule_set(options()["rules"])))):
        cfg = load_config("optimize", ["model=bert", f"rules={choice}"], {"rules.own": str(file)})
        found = config.rule_set(plain(cfg)["rules"])
        assert len(found) == count + 1 and found.rules[-1].name == "mine" and found.rules[-1].provenance == "own"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "rules.own: '.*mine.rules' cannot be read: No such file or directory"),
        (b"\xff\xfe\x00", "rules.own: '.*mine.rules' cannot be read: it is not text"),
        (b"# none yet\n", "rules.own: there is no rule in '.*mine.rules'"),
        (b"rule mine: swap\n    Add(x, y)\n => z\n", "mine.rules: rule 'mine': 'z' is used but not bound by the source"),
        (b"rule relu-relu: swap\n    Relu(x)\n => Relu(x)\n", "mine.rules: there is a rule 'relu-relu' already: give yours another name"),
    ],
)
def test_a_file_of_rules_that_will_not_do_is_named(tmp_path: Path, text: bytes | None, says: str) -> None:
    file = tmp_path / "mine.rules"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ConfigError, match=says):
        jobs.parts(load_config("optimize", ["model=bert"], {"rules.own": str(file)}))


def test_what_came_along_is_found_wherever_one_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    cost = jobs.cost(load_config("optimize", ["model=bert", "cost=measured"]))
    assert Path(cost.shipped).is_dir() and Path(cost.shipped) == CONF.parent / "data" / "costs"
    assert jobs.cost(load_config("optimize", ["model=bert", "cost=measured", "cost.shipped=null"])).shipped is None
