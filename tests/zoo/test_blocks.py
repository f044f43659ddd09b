"""Every block: valid, alive, documented, the same for the same seed; optimized with proof; walks of rewrites keep its outputs."""

import random

import numpy as np
import onnx
import pytest

from cgorl import pipeline, zoo
from cgorl.certificate.inputs import feeds
from cgorl.certificate.rewrite import relative_error
from cgorl.cost.roofline import Device, Roofline
from cgorl.ir.fold import fold_rewrites
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.run import Session
from cgorl.ir.simplify import simplify
from cgorl.ir.to_proto import complete
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library
from cgorl.search.greedy import Greedy
from cgorl.search.searcher import Budget
from cgorl.zoo import blocks

RULES = RuleSet(library())
COST = Roofline(Device("test", 1e11, 1e10, 0.005, additive=True))
STEPS = 50
TOLERANCES = {np.dtype(np.float16): 2e-2, np.dtype(np.float32): 1e-4}


@pytest.fixture(scope="module", params=blocks.names())
def model(request: pytest.FixtureRequest) -> onnx.ModelProto:
    return blocks.build(request.param)


def _graph(model: onnx.ModelProto) -> Graph:
    return from_proto(onnx.ModelProto.FromString(model.SerializeToString()))  # which takes the model over


def test_it_is_valid_onnx_of_the_declared_shape(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    graph = _graph(model)
    found = Session(model).run(feeds(graph, {}, np.random.default_rng(0)))
    for output in model.graph.output:
        kind, array = output.type.tensor_type, found[output.name]
        assert tuple(d.dim_value for d in kind.shape.dim) == array.shape
        assert onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type) == array.dtype
        assert np.isfinite(array).all()
        assert array.std() > 0


def test_nothing_is_dead_or_unnamed(model: onnx.ModelProto) -> None:
    graph = model.graph
    used = {source for node in graph.node for source in node.input if source} | {value.name for value in graph.output}
    produced = [output for node in graph.node for output in node.output] + [tensor.name for tensor in graph.initializer]
    assert used == set(produced) | {value.name for value in graph.input}
    assert len(set(produced)) == len(produced)
    assert len({node.name for node in graph.node if node.name}) == len(graph.node)
    assert 2 <= len(graph.node) <= 20


def test_it_is_optimized_with_proof(model: onnx.ModelProto) -> None:
    done = pipeline.optimize(_graph(model), RULES, COST, Greedy(), Budget(expansions=200))
    assert done.proof.ok, (done.proof.dropped, done.proof.whole and done.proof.whole.why)
    assert done.cost_ms <= done.initial_cost_ms + 1e-9


def test_a_walk_of_rewrites_keeps_the_outputs(model: onnx.ModelProto) -> None:
    graph = start = simplify(_graph(model)).graph
    rng, found, trace = random.Random(model.graph.name), MatchSet(start, RULES), []
    while len(trace) < STEPS and (listed := list(found)):
        match = rng.choice(listed)
        trace.append(match.rule.name)
        graph, found = (after := graph.replace(match.edit)), found.after(after, match)
    final = complete(fold_rewrites(graph))
    onnx.checker.check_model(final, full_check=True)
    given = feeds(start, {}, np.random.default_rng(0))
    before, after = Session(model).run(given), Session(final).run(given)
    for name, array in before.items():
        assert relative_error(array, after[name]) < TOLERANCES[array.dtype], trace


@pytest.mark.parametrize("name", blocks.names())
def test_it_says_where_it_occurs_in_one_line(name: str) -> None:
    text = blocks.describe(name)
    assert text.startswith(f"{name}: ")
    assert text.endswith(".")
    assert ": " in text.removeprefix(f"{name}: ")
    assert "\n" not in text


def test_a_seed_decides_the_bytes() -> None:
    first, again, other = (blocks.build("repvgg", seed).SerializeToString(deterministic=True) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_no_block_has_the_name_of_a_graph() -> None:
    assert not set(blocks.names()) & set(zoo.names())


@pytest.mark.parametrize(("name", "parts"), [("repvg", ["'repvg'", "'repvgg'"]), ("@", ["'@'"])])
def test_an_unknown_name_gets_one_sentence(name: str, parts: list[str]) -> None:
    with pytest.raises(zoo.ZooError) as caught:
        blocks.build(name)
    assert all(part in str(caught.value) for part in parts)
    assert str(caught.value).endswith(".")
