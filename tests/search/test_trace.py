"""Traces: JSON and back, refusals in one clear error, and the trace run again without some of its steps."""

import json
from typing import Any

import pytest

from cgorl import config
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.greedy import Greedy
from cgorl.search.searcher import Budget, SearchResult
from cgorl.search.trace import TraceError, replay, repriced, to_json, without
from tests.texts import SOUND, UNSOUND, ZOO, graph, rules, small

# Neg-Relu-Neg: turning the second Neg off rests on having dropped the Relu.
RESTS = """agraph (float[2,3] x) => (float[2,3] y, float[2,3] z) {
  a = Neg(x) b = Relu(a) y = Neg(b)
  c = Abs(x) z = Abs(c)
}"""


def cost() -> Any:
    cfg = config.load_config("optimize", ["model=none"])
    return config.build(cfg.cost, dims={}, unbound=1)


def searched(g: Graph, chosen: RuleSet) -> SearchResult:
    return Greedy()(g, chosen, cost(), Budget())


def told(g: Graph, found: SearchResult, chosen: RuleSet) -> dict[str, Any]:
    return json.loads(json.dumps(to_json(g, found.graph, found.trace, chosen)))


@pytest.mark.parametrize("name", ["repvgg_a0", "inception_v3"])
def test_a_trace_through_json_leads_to_the_same_graph(name: str) -> None:
    g, chosen = small(name), rules()
    found = searched(g, chosen)
    assert len(found.trace) > 5
    assert replay(told(g, found, chosen), small(name), rules()).key == found.graph.key


def test_the_default_rules_replay_too() -> None:
    g, chosen = small("repvgg_a0"), config.rule_set(config.plain(config.load_config("optimize", ["model=none"]))["rules"])
    found = searched(g, chosen)
    assert replay(told(g, found, chosen), g, chosen).key == found.graph.key


def test_an_empty_trace_replays() -> None:
    g = small("bert")
    assert replay(told(g, searched(g, rules()), rules()), g, rules()) is g


def _set(key: str, value: Any) -> Any:
    return lambda data: data.update({key: value})


def _step(key: str, value: Any) -> Any:
    return lambda data: data["steps"][1].update({key: value})


@pytest.mark.parametrize(
    ("tamper", "says"),
    [
        (_set("initial_key", "0" * 32), "another graph"),
        (_set("final_key", "0" * 32), "ends at another graph"),
        (_set("rules_hash", "0" * 16), "another rule set"),
        (_set("rules_hash", None), "no trace"),
        (lambda d: d.pop("initial_key"), "no trace"),
        (lambda d: d["steps"].pop(), "ends at another graph"),
        (_set("steps", None), "ends at another graph"),
        (lambda d: d["steps"].insert(1, 7), "step 1"),
        (lambda d: d["steps"][1].clear(), "step 1"),
        (_step("rule", "no-such-rule"), "step 1"),
        (_step("rule", None), "step 1"),
        (_step("nodes", []), "step 1"),
        (_step("nodes", [10**9]), "step 1"),
        (_step("nodes", "abc"), "step 1"),
        (_step("nodes", None), "step 1"),
        (lambda d: d["steps"].insert(1, d["steps"][0]), "step 1"),
    ],
)
def test_a_trace_that_does_not_fit_is_refused(tamper: Any, says: str) -> None:
    g, chosen = small("repvgg_a0"), rules()
    data = told(g, searched(g, chosen), chosen)
    tamper(data)
    with pytest.raises(TraceError, match=says):
        replay(data, g, chosen)


def test_a_trace_of_another_graph_or_rule_set_is_refused() -> None:
    g, chosen = small("repvgg_a0"), rules()
    data = told(g, searched(g, chosen), chosen)
    with pytest.raises(TraceError, match="another graph"):
        replay(data, small("bert"), chosen)
    with pytest.raises(TraceError, match="another rule set"):
        replay(data, g, rules(SOUND + UNSOUND))


def test_what_rests_on_a_dropped_step_is_lost_and_the_rest_stays() -> None:
    g, chosen = graph(RESTS), rules(SOUND + UNSOUND)
    found = searched(g, chosen)
    names = [s.match.rule.name for s in found.trace]
    assert sorted(names) == ["abs-abs", "drop-relu", "neg-neg"]
    left, done, lost = without(g, found.trace, {names.index("drop-relu")})
    assert [names[k] for k in lost] == ["neg-neg"]
    assert [s.match.rule.name for s in done.values()] == ["abs-abs"]
    assert sorted(n.op for n in left.nodes.values()) == ["Abs", "Input", "Neg", "Neg", "Relu"]


@pytest.mark.parametrize("name", ZOO)
def test_without_nothing_is_the_trace_itself(name: str) -> None:
    g = small(name)
    found = searched(g, rules())
    again, done, lost = without(g, found.trace, ())
    assert again.key == found.graph.key and list(done) == list(range(len(found.trace))) and not lost


@pytest.mark.parametrize("dropped", [0, 3, 7])
def test_without_one_the_others_come_out_as_they_would_have(dropped: int) -> None:
    g = small("repvgg_a0")
    found = searched(g, rules())
    left, done, lost = without(g, found.trace, {dropped})
    assert sorted([*done, *lost, dropped]) == list(range(len(found.trace)))
    steps = repriced(g, tuple(done.values()), cost())
    assert steps[-1].after_ms == pytest.approx(cost().cost_ms(left), rel=1e-9)
    after = g
    for step in steps:
        after = after.replace(step.match.edit)
    assert after.key == left.key
