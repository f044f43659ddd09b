"""One job from model to proven result: what is dropped when a proof fails, what is refused, and that the last good graph stays."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cgorl import pipeline
from cgorl.certificate import trace
from cgorl.certificate.equivalence import compare
from cgorl.certificate.rewrite import RewriteProof
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.node import Value, constant
from cgorl.ir.onnx_io import ModelError
from cgorl.ir.sizes import DimsError
from cgorl.ir.tensor import Tensor
from cgorl.pipeline import Outcome, Refused, Status
from cgorl.report.ledger import ledger, summary
from cgorl.report.screen import lines
from cgorl.search.greedy import Greedy
from cgorl.search.searcher import Budget
from cgorl.search.trace import replay
from cgorl.zoo.parameters import ZooError
from tests.search.test_trace import RESTS, cost
from tests.texts import SOUND, UNSOUND, graph, model, rules, small

MIXED = SOUND + UNSOUND


def job(g: Graph, text: str = SOUND, **more: Any) -> Outcome:
    return pipeline.optimize(g, rules(text), cost(), Greedy(), Budget(), **more)


def names(found: Outcome) -> list[str]:
    return [s.match.rule.name for s in found.trace]


def blind(graph: Graph, match: Any, sizes: Any, rng: Any) -> RewriteProof:
    """A local proof that sees nothing."""
    return RewriteProof(match.rule.name, 0.0)


# ---------------------------------------------------------------- sound
def test_a_sound_job_is_proven_and_saved(tmp_path: Path) -> None:
    g = small("repvgg_a0")
    found = job(g)
    assert found.status is Status.OPTIMIZED and found.proof.ok and set(names(found)) == {"fold-norm"}
    assert len(found.proof.rewrites) == len(found.trace) and found.proof.whole is not None and found.proof.whole.runs == 3
    assert found.cost_ms < found.initial_cost_ms and found.cost_ms == pytest.approx(found.trace[-1].after_ms, rel=1e-9)
    assert found.save(tmp_path / "o.onnx") == [tmp_path / "o.onnx"]
    assert compare(g, from_proto(onnx.load(tmp_path / "o.onnx")))
    assert not any(n.constant and not n.is_source for n in found.graph.nodes.values())


def test_a_job_with_nothing_to_do_gives_the_model_itself() -> None:
    g = graph("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    found = job(g)
    assert found.status is Status.OPTIMAL and found.graph is g and found.proof.whole is None


def test_without_proof_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "compare", None)
    monkeypatch.setattr(trace, "prove_rewrite", None)
    found = job(small("repvgg_a0"), prove=False)
    assert found.status is Status.OPTIMIZED and found.proof == pipeline.Proof()


def test_the_trace_of_a_job_replays_from_the_simplified_graph() -> None:
    found = job(small("repvgg_a0"))
    data = json.loads(json.dumps(found.trace_json()))
    assert replay(data, found.start, rules()).key == data["final_key"]


# ---------------------------------------------------------------- unsound
@pytest.mark.parametrize("blinded", [False, True], ids=["local", "global"])
def test_the_guilty_rewrite_goes_and_takes_what_rests_on_it_along(blinded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blinded:
        monkeypatch.setattr(trace, "prove_rewrite", blind)
    g = graph(RESTS)
    found = job(g, MIXED)
    assert found.status is Status.PROOF_FAILED and names(found) == ["abs-abs"]
    [(rule, why)] = found.proof.dropped
    assert rule == "drop-relu" and ("whole model" in why) is blinded and "differs" in why
    assert found.proof.lost == ("neg-neg",)
    assert found.proof.whole is not None and found.proof.whole.ok and compare(g, found.graph)
    assert found.cost_ms == pytest.approx(found.trace[-1].after_ms, rel=1e-9)
    text = "\n".join(lines(found))
    assert "dropped   drop-relu: " in text and "neg-neg: rests on a dropped rewrite" in text and "proof failed" in text
    told = summary(found)["proof"]
    assert [d["rule"] for d in told["dropped"]] == ["drop-relu"] and told["lost"] == ["neg-neg"]


@pytest.mark.parametrize("blinded", [False, True], ids=["local", "global"])
def test_many_guilty_ones_are_all_found_in_a_deep_graph(blinded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if blinded:
        monkeypatch.setattr(trace, "prove_rewrite", blind)
    g = small("repvgg_a0")
    sound, found = job(g), job(g, MIXED)
    assert {rule for rule, _ in found.proof.dropped} == {"drop-relu"} and len(found.proof.dropped) == 5
    assert sorted(names(found)) == sorted(names(sound)) and not found.proof.lost
    assert found.graph.key == sound.graph.key and compare(g, found.graph)


def test_a_rewrite_that_cannot_be_re_run_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(g: Graph, match: Any, sizes: Any, rng: Any) -> RewriteProof:
        return RewriteProof(match.rule.name, 0.0, "could not be re-run" if match.rule.name == "abs-abs" else "")

    monkeypatch.setattr(trace, "prove_rewrite", closed)
    found = job(graph(RESTS))
    assert found.status is Status.PROOF_FAILED and found.proof.dropped == (("abs-abs", "could not be re-run"),)
    assert found.graph is not found.original and compare(found.original, found.graph)


def tampered(found: Graph, start: Graph, factor: float) -> Graph:
    """One weight that a rewrite made, a little off in its first channel."""
    i = next(i for i in found.order() if i >= start.next_id and found.nodes[i].is_constant and len(found.nodes[i].tensor.shape) == 4)
    node = found.nodes[i]
    array = node.tensor.array().copy()
    array[0] *= factor
    return found.replace(found.edit([constant(Tensor.of(array), node.names[0])], {Value(i): Value(-2)}))


@pytest.mark.parametrize("factor", [1.01, -1.0])
def test_a_spoilt_saved_constant_shows_at_the_taps(factor: float) -> None:
    found = job(small("repvgg_a0"))
    spoilt = tampered(found.graph, found.original, factor)
    assert "differs" in compare(found.original, spoilt, taps=True).why


def test_spoilt_folding_is_caught_and_nothing_of_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[[Graph], Graph] = trace.fold_rewrites
    g = small("repvgg_a0")

    def wrong(made: Graph) -> Graph:
        found = right(made)
        new = [i for i in found.nodes if i >= g.next_id and found.nodes[i].is_constant and len(found.nodes[i].tensor.shape) == 4]
        return tampered(found, g, 1.1) if new else found

    monkeypatch.setattr(trace, "fold_rewrites", wrong)
    found = job(g, clean=False)
    assert found.status is Status.PROOF_FAILED and not found.trace
    assert len(found.proof.dropped) == 10 and compare(g, found.graph)


def test_a_wrong_clean_up_is_found_at_once_and_the_original_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pipeline.simplify
    calls: list[int] = []

    def wrong(g: Graph) -> Any:
        done = right(g)
        i = next(i for i in done.graph.order() if done.graph.nodes[i].is_constant and len(done.graph.nodes[i].tensor.shape) == 4)
        array = -done.graph.nodes[i].tensor.array()
        edit = done.graph.edit([constant(Tensor.of(array), done.graph.nodes[i].names[0])], {Value(i): Value(-2)})
        return replace(done, graph=done.graph.replace(edit))

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(1)
        return compare(*args, **more)

    monkeypatch.setattr(pipeline, "simplify", wrong)
    monkeypatch.setattr(trace, "compare", counted)
    g = small("repvgg_a0")
    found = job(g)
    assert found.status is Status.PROOF_FAILED and found.graph is g and not found.trace
    assert [rule for rule, _ in found.proof.dropped] == ["simplify"] and len(calls) == 2
    assert len(found.proof.lost) == 10 and found.cost_ms == found.initial_cost_ms


# ---------------------------------------------------------------- whole models that cannot be run, and what is said of it
def test_a_model_with_a_custom_operator_is_optimized_and_not_run() -> None:
    made = model("agraph (float[2,3] x) => (float[2,3] y) { a = Neg(x) b = Neg(a) y = Abs(b) }")
    made.opset_import.append(onnx.helper.make_opsetid("house", 1))
    made.graph.node[2].domain = "house"
    found = job(from_proto(made))
    assert found.status is Status.OPTIMIZED and names(found) == ["neg-neg"]
    assert "the whole was not run" in "\n".join(lines(found))


def test_random_outputs_are_not_compared_and_that_is_said() -> None:
    found = job(
        graph("agraph (float[2,3] x) => (float[2,3] y, float[2,3] z) { a = Abs(x) z = Abs(a) r = RandomNormalLike(x) y = Add(z, r) }")
    )
    assert found.status is Status.OPTIMIZED and "rests on random operators: y" in "\n".join(lines(found))


def test_sizes_that_are_not_known_are_said() -> None:
    text = "agraph (float[2,3] x) => (float[n,m] y) { i = NonZero(x) f = Cast<to=1>(i) h = Abs(f) y = Abs(h) }"
    found = job(graph(text))
    assert found.status is Status.OPTIMIZED and found.unknown
    assert any(line.startswith("sizes     not all known") for line in lines(found))
    assert summary(found)["cost_ms"]["unknown_sizes"] == len(found.unknown)
    assert not any(line.startswith("sizes") for line in lines(job(small("repvgg_a0"))))


# ---------------------------------------------------------------- refusals
def test_an_old_opset_is_refused() -> None:
    with pytest.raises(Refused, match="opset 6"):
        job(graph("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", opset=6))


def test_training_info_is_refused() -> None:
    made = model("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    made.training_info.add()
    with pytest.raises(Refused, match="training_info"):
        job(from_proto(made))


def test_a_dim_that_the_model_does_not_have_is_an_error() -> None:
    g = graph("agraph (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }")
    with pytest.raises(DimsError, match=r"no dim 'bach' .* it has batch"):
        job(g, dims={"bach": 2})
    with pytest.raises(DimsError, match="no dim 'n'"):
        job(small("repvgg_a0"), dims={"n": 2})
    names = ",".join(f"d{k}" for k in range(30))
    with pytest.raises(DimsError, match=r"it has d0, d1, .*, d11 and 18 more$"):
        job(graph(f"agraph (float[{names}] x) => (float[{names}] y) {{ y = Relu(x) }}"), dims={"n": 2})


# ---------------------------------------------------------------- loading and telling
def test_models_by_name_and_by_file(tmp_path: Path) -> None:
    assert len(pipeline.load_model("bert", {"layers": 1, "hidden": 8, "heads": 2, "seq": 4}).nodes) > 20
    path = tmp_path / "m.onnx"
    onnx.save(model("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), path)
    assert pipeline.load_model(path).outputs
    with pytest.raises(ModelError, match="is a file: parameters \\(image\\)"):
        pipeline.load_model(path, {"image": 3})
    with pytest.raises(ZooError, match="did you mean 'resnet50'"):
        pipeline.load_model("resnet51")
    with pytest.raises(ModelError, match="no file"):
        pipeline.load_model("resnet51.onnx")


def test_a_file_called_like_a_zoo_graph_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), tmp_path / "bert", format="protobuf")
    assert len(pipeline.load_model("bert").nodes) == 2


def test_stages_and_shares_are_told_in_order() -> None:
    told: list[tuple[str, Any]] = []
    found = job(small("repvgg_a0"), tell=lambda stage, progress: told.append((stage, progress)))
    assert list(dict.fromkeys(stage for stage, _ in told)) == ["simplify", "price", "search", "prove", "compare"]
    shares = [p for stage, p in told if stage == "prove"]
    assert shares == sorted(shares) and all(0 <= p < 1 for p in shares)
    assert set(found.seconds) == {"simplify", "price", "search", "prove"} and json.dumps(summary(found)) and json.dumps(ledger(found))


def test_the_same_job_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for k in range(2):
        job(small("repvgg_a0")).save(tmp_path / f"{k}.onnx")
    assert (tmp_path / "0.onnx").read_bytes() == (tmp_path / "1.onnx").read_bytes()


def test_half_precision_weights_that_overflow_when_folded_are_dropped() -> None:
    made = model("""agraph (float16[1,1,2,2] x, float16[1,1,1,1] w, float16[1] b, float16[1] s, float16[1] v) => (float16[1,1,2,2] y) {
      d = Constant<value = float {0.001}>() e = Cast<to=10>(d) h = Mul(x, e) k = Conv(h, w, b) y = BatchNormalization(k, s, b, b, v)
    }""")
    del made.graph.input[1:]
    for name, shape, value in (("w", (1, 1, 1, 1), 256), ("b", 1, 0), ("s", 1, 512), ("v", 1, 1)):
        made.graph.initializer.append(numpy_helper.from_array(np.full(shape, value, np.float16), name))
    g = from_proto(made)
    found = job(g)
    assert [rule for rule, _ in found.proof.dropped] == ["fold-norm"] and compare(g, found.graph)


def test_an_interrupt_after_the_proof_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the result is told to cost may have to be measured: an interrupt ends that."""
    calls: list[int] = []
    right = pipeline.by_operator

    def interrupted(graph: Any, cost: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return right(graph, cost)

    monkeypatch.setattr(pipeline, "by_operator", interrupted)
    assert job(small("repvgg_a0")).status is Status.OPTIMIZED and len(calls) == 3
