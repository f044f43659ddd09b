"""`import cgorl`: few names, light, and each takes paths, texts and graphs."""

import subprocess
import sys
from pathlib import Path

import pytest

import cgorl
from cgorl.config import ConfigError
from cgorl.ir.graph import Graph
from cgorl.ir.sizes import DimsError
from cgorl.pipeline import Status
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library

TINY = {"layers": 1, "hidden": 8, "heads": 2, "seq": 4}


def test_the_front_door_has_at_most_ten_names() -> None:
    assert sorted(cgorl.__all__) == ["evaluate", "load", "optimize", "save", "verify"]
    assert all(callable(getattr(cgorl, name)) for name in cgorl.__all__)


def test_importing_costs_nothing() -> None:
    script = "import sys; before = set(sys.modules); import cgorl; print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "onnx", "onnxruntime", "hydra", "rich", "torch"} & set(said)


def test_load_save_and_verify_take_path_and_text(tmp_path: Path) -> None:
    g = cgorl.load("bert", **TINY)
    path = tmp_path / "a b,c='x'.onnx"
    assert cgorl.save(g, path) == [path] and cgorl.save(g, str(path)) == [path]
    for model in (path, str(path)):
        assert isinstance(cgorl.load(model), Graph) and cgorl.load(model).key == g.key
        assert cgorl.verify(model, g) and cgorl.verify(g, model) and cgorl.verify(model, path)
    other = cgorl.verify(g, cgorl.load("bert", **{**TINY, "seed": 1}))
    assert not other and "differs" in other.why


def test_verify_takes_dims() -> None:
    g = cgorl.load("bert", **{**TINY, "batch": "n"})
    found = cgorl.verify(g, g, dims={"n": 3})
    assert found.ok and found.runs == 9 and found.error == 0


def test_evaluate_gives_two_tables() -> None:
    done = cgorl.evaluate("model=bert", *(f"zoo.{k}={v}" for k, v in TINY.items()), "search=greedy,beam", "expansions=3")
    assert list(done.results["search"]) == ["greedy", "beam"] and set(done.curves["job"]) == {1, 2}
    with pytest.raises(ConfigError, match="did you mean 'greedy'"):
        cgorl.evaluate("model=bert", "search=gredy")


def test_optimize_as_the_design_says(tmp_path: Path) -> None:
    small = {"image": 32, "width": 0.125, "depth": (1, 1, 1, 1), "classes": 8}
    result = cgorl.optimize("repvgg_a0", search="greedy", rules="default", cost="roofline", seconds=30, zoo=small)
    assert result.status is Status.OPTIMIZED and result.cost_ms < result.initial_cost_ms and result.trace
    path = tmp_path / "out.onnx"
    assert result.save(path) == [path] == result.save(str(path))
    assert cgorl.verify(cgorl.load("repvgg_a0", **small), path)
    assert cgorl.verify(result.original, result.graph)


def test_optimize_takes_graphs_and_files_and_writes_output(tmp_path: Path) -> None:
    g = cgorl.load("bert", **TINY)
    source, target = tmp_path / "in.onnx", tmp_path / "ü out,='\".onnx"
    cgorl.save(g, source)
    for model in (g, source, str(source)):
        result = cgorl.optimize(model, rules="none", seconds=None, output=target)
        assert result.graph.outputs and result.files == (target,) and cgorl.verify(g, target)
        target.unlink()


def test_optimize_takes_dims_and_unbound() -> None:
    g = cgorl.load("bert", **{**TINY, "batch": "n"})
    one, two = cgorl.optimize(g, dims={"n": 1}, rules="none"), cgorl.optimize(g, dims={"n": 2}, rules="none")
    assert two.initial_cost_ms > one.initial_cost_ms == cgorl.optimize(g, unbound=1, rules="none").initial_cost_ms
    with pytest.raises(DimsError, match="dim 'n'"):
        cgorl.optimize(g)
    with pytest.raises(ConfigError, match=r"dims\.n must be"):
        cgorl.optimize(g, dims={"n": 0})


def test_optimize_names_a_wrong_choice() -> None:
    with pytest.raises(ConfigError, match="no key 'serch'"):
        cgorl.optimize("bert", serch="greedy")
    with pytest.raises(ConfigError, match="seconds must be"):
        cgorl.optimize("bert", seconds="long")


def test_nothing_is_written_unless_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cgorl.optimize("bert", zoo=TINY, rules="none")
    assert list(tmp_path.iterdir()) == []


def test_what_comes_back_is_told_in_a_line() -> None:
    g = cgorl.load("bert", **TINY)
    assert repr(g) == f"Graph(bert: {len([n for n in g.nodes.values() if not (n.is_source or n.constant)])} nodes, opset 17)"
    result = cgorl.optimize(g)
    assert repr(result).startswith("Outcome(optimized: ") and "equal on 3 random inputs" in repr(result) and len(repr(result)) < 200
    assert repr(cgorl.verify(g, result.graph)).startswith("Equivalence(equal on 3 random inputs (largest error ")
    other = cgorl.verify(g, cgorl.load("bert", **{**TINY, "seed": 1}))
    assert repr(other).startswith("Equivalence(not equal: ")


def test_optimize_takes_rules_of_ones_own() -> None:
    g = cgorl.load("bert", **TINY)
    assert not cgorl.optimize(g, rules="none", prove=False).trace
    one = RuleSet(tuple(r for r in library() if r.name == "mul-matmul"))
    result = cgorl.optimize(g, rules=one, prove=False)
    assert {step.match.rule.name for step in result.trace} == {"mul-matmul"} and result.rules is one
