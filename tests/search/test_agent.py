"""The agent as a searcher: never worse than the input, within every budget, and clear words where something is amiss."""

from __future__ import annotations

import math
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from cgorl.agent import checkpoint
from cgorl.agent.best import Best
from cgorl.agent.checkpoint import AgentError
from cgorl.agent.encoder import Encoder
from cgorl.agent.policy import fresh_policy
from cgorl.agent.ppo import PPO, Learner
from cgorl.cost.model import CostModel
from cgorl.env.rewrite import RewriteEnv, Start
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search import agent_train, trace
from cgorl.search.agent import Agent
from cgorl.search.agent_train import CHOICES, AgentTrain
from cgorl.search.course import Course, anytime
from cgorl.search.greedy import Greedy
from cgorl.search.guided import Guided
from cgorl.search.inference import PATIENCE, Inference, Scorer, log_softmax
from cgorl.search.searcher import Budget, Meter, Progress, SearchError, SearchResult
from tests.agent.toy import RULES as TOY
from tests.agent.toy import Prices, chain, start
from tests.search.test_searchers import RULES
from tests.search.test_trace import cost
from tests.texts import small


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent that has hardly learnt anything."""
    path = tmp_path_factory.mktemp("agent") / "checkpoint.pt"
    envs = [RewriteEnv([Start.of(small("repvgg_a0"), RULES, cost())]) for _ in range(2)]
    args = PPO(num_envs=2, num_steps=8, num_minibatches=1)
    learner = Learner(args, fresh_policy(RULES, 0, lambda: Encoder("gcn", 8, 1)), envs, None, 0)
    learner.update()
    checkpoint.save(path, learner, Best(), RULES, {})
    return path


def walk(how: Inference, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, score: Scorer) -> SearchResult:
    """Walks as `score` leads."""
    return anytime(graph, rules, cost, Meter(budget, None), lambda course: how.search(course, score))


def methods(path: Path) -> dict[str, Any]:
    return {
        "agent greedy": Agent(str(path), mode="greedy"),
        "agent sample": Agent(str(path), samples=3),
        "agent beam": Agent(str(path), mode="beam", width=3, horizon=8),
        "gain": Guided(samples=3),
        "gain beam": Guided(mode="beam", width=3),
        "untrained": Guided("untrained", samples=2),
        "agent_train": AgentTrain(hidden=8, layers=1, steps=128, envs=2),
    }


NAMES = list(methods(Path(__file__)))


@pytest.mark.parametrize("name", NAMES)
def test_never_worse_than_the_input_and_the_trace_replays(name: str, trained: Path) -> None:
    g = small("repvgg_a0")
    found = methods(trained)[name](g, RULES, cost(), Budget())
    assert found.cost_ms <= found.initial_cost_ms and found.cost_ms == pytest.approx(cost().cost_ms(found.graph), abs=1e-12)
    told = trace.to_json(g, found.graph, found.trace, RULES)
    assert trace.replay(told, g, RULES).key == found.graph.key
    again = methods(trained)[name](g, RULES, cost(), Budget())
    assert trace.to_json(g, again.graph, again.trace, RULES) == told and again.evaluations == found.evaluations


@pytest.mark.parametrize("name", NAMES)
def test_budgets_hold_and_an_interrupt_keeps_the_best(name: str, trained: Path) -> None:
    g, search = small("repvgg_a0"), methods(trained)[name]
    few = search(g, RULES, cost(), Budget(expansions=5))
    assert few.expansions <= 5 and few.stopped == "expansions"
    some = search(g, RULES, cost(), Budget(evaluations=60))
    assert some.evaluations <= 60 and some.stopped == "evaluations"
    assert search(g, RULES, cost(), Budget(seconds=0)).stopped == "seconds"
    told: list[Progress] = []

    def interrupt(p: Progress) -> None:
        told.append(p)
        if len(told) == 5:
            raise KeyboardInterrupt

    cut = search(g, RULES, cost(), Budget(), interrupt)
    assert cut.stopped == "interrupted" and cut.cost_ms <= told[3].best_ms


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_without_a_match_comes_back_at_once(name: str, trained: Path) -> None:
    found = methods(trained)[name](chain("Tanh Tanh"), TOY, Prices(), Budget())
    assert (found.stopped, found.trace, found.expansions) == ("no rule matches", (), 1)


def test_the_softmax_over_gains_takes_the_best_gain_first() -> None:
    found = Guided(mode="greedy")(small("repvgg_a0"), RULES, cost(), Budget())
    gains = [s.before_ms - s.after_ms for s in found.trace]
    assert all(g > 0 for g in gains) and len(gains) > 5


def test_more_samples_are_never_worse_than_greedy(trained: Path) -> None:
    greedy = Agent(str(trained), mode="greedy")(small("repvgg_a0"), RULES, cost(), Budget())
    assert Agent(str(trained), samples=2, seed=3)(small("repvgg_a0"), RULES, cost(), Budget()).cost_ms <= greedy.cost_ms + 1e-12


def test_training_on_the_given_graph_passes_a_barrier() -> None:
    assert start().greedy == 0
    search = AgentTrain(curiosity="none", hidden=16, layers=1, steps=1500, learning_rate=3e-3)
    found = search(chain(), TOY, Prices(), Budget())
    assert found.cost_ms < found.initial_cost_ms and found.stopped == "all walks walked"


def test_after_its_share_of_the_budget_a_training_walks_and_is_not_behind_greed(monkeypatch: pytest.MonkeyPatch) -> None:
    g = small("repvgg_a0")
    greedy = Greedy()(g, RULES, cost(), Budget())
    limit, trained_for = 4 * greedy.evaluations, list[float]()

    class Noting(Inference):
        def search(self, course: Course, score: Scorer, hedge: float = 0.0) -> str:
            trained_for.append(course.meter.evaluations / limit)
            return super().search(course, score, hedge)

    monkeypatch.setattr(agent_train, "Inference", Noting)
    for learn in (0.0, 0.4):
        search = AgentTrain(curiosity="none", hidden=8, layers=1, envs=1, learn=learn)
        found = search(g, RULES, cost(), Budget(evaluations=limit))
        assert found.evaluations <= limit and found.cost_ms <= greedy.cost_ms + 1e-12
    assert trained_for[0] < 0.1 and 0.3 < trained_for[1] <= 0.4


def test_a_training_may_begin_with_the_policy_that_is_there(monkeypatch: pytest.MonkeyPatch, trained: Path) -> None:
    monkeypatch.setattr("cgorl.search.agent.GENERAL", trained)
    words = {"curiosity": "none", "steps": 64, "envs": 2}
    found = AgentTrain(checkpoint="general", **words)(small("repvgg_a0"), RULES, cost(), Budget())
    named = AgentTrain(checkpoint=str(trained), **words)(small("repvgg_a0"), RULES, cost(), Budget())
    assert (found.cost_ms, found.evaluations) == (named.cost_ms, named.evaluations)


def test_rules_that_are_new_or_changed_are_named_in_a_warning(trained: Path, tmp_path: Path) -> None:
    more = RuleSet((*RULES.rules, *TOY.rules))
    search = Agent(str(trained), mode="greedy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(small("repvgg_a0"), more, cost(), Budget(expansions=3))  # new rules that match nowhere are not worth a word
    with pytest.warns(UserWarning, match="rule 'that-way' was not there in training; rule 'this-way' was not there"):
        search(chain("Sin Cos Tanh"), more, Prices(), Budget(expansions=3))
    told = torch.load(trained, weights_only=True)
    name = RULES.rules[3].name
    torch.save({**told, "rules": {**told["rules"], name: "0" * 16}}, tmp_path / "changed.pt")
    with pytest.warns(UserWarning, match=f"rule '{name}' is not as it was in training"):
        Agent(str(tmp_path / "changed.pt"), mode="greedy")(small("repvgg_a0"), RULES, cost(), Budget(expansions=3))


def flat(views: Any) -> list[Any]:
    return [log_softmax([0.0] * (len(v.matches) + 1)) for v in views]


def never(views: Any) -> list[Any]:
    return [log_softmax([-50.0] * len(v.matches) + [0.0]) for v in views]


def test_a_walk_led_by_gains_comes_to_where_greed_comes() -> None:
    g = small("inception_v3")
    greedy = Greedy()(g, RULES, cost(), Budget())
    alone = walk(Inference(samples=1), g, RULES, cost(), Budget(), never)
    hedged = anytime(g, RULES, cost(), Meter(Budget(), None), lambda course: Inference(samples=1).search(course, never, 0.5))
    assert alone.cost_ms == alone.initial_cost_ms and hedged.cost_ms <= greedy.cost_ms * (1 + 1e-9) < greedy.initial_cost_ms


def test_half_of_the_walks_are_led_by_gains() -> None:
    asked: list[int] = []
    for hedge in (0.0, 0.5, 1.0):
        calls: list[int] = []

        def noting(views: Any, calls: list[int] = calls) -> list[Any]:
            calls.append(len(views))
            return flat(views)

        how, meter = Inference(samples=8, horizon=4), Meter(Budget(), None)
        anytime(small("inception_v3"), RULES, cost(), meter, partial(_hedged, how, noting, hedge))
        asked.append(sum(calls))
    assert asked[0] > asked[1] > asked[2] >= 4  # the likeliest walk is the policy's in any case


def _hedged(how: Inference, score: Scorer, hedge: float, course: Course) -> str:
    return how.search(course, score, hedge)


def test_a_softmax() -> None:
    assert sum(math.exp(x) for x in log_softmax([1.0, -500.0, 800.0])) == pytest.approx(1)


def test_what_is_amiss_is_named(trained: Path, tmp_path: Path) -> None:
    g = small("repvgg_a0")
    told = torch.load(trained, weights_only=True)
    torch.save({**told, "encoder": {"kind": "gcn", "hidden": 9, "layers": 1}}, tmp_path / "other.pt")
    with pytest.raises(AgentError, match="cannot be read"):
        Agent(str(tmp_path / "other.pt"))(g, RULES, cost(), Budget())
    for search in methods(trained).values():
        with pytest.raises(SearchError, match="begins anew each time"):
            search(g, RULES, cost(), Budget(), None, tmp_path / "search.json")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Agent(mode="best"), "mode must be one of greedy, sample, beam"),
        (lambda: Agent(samples=0), "samples must be"),
        (lambda: Agent(horizon=0), "horizon must be"),
        (lambda: Agent(temperature=0), "temperature must be"),
        (lambda: Agent(hedge=-1), "hedge must be"),
        (lambda: Guided("untrained", hedge=1.5), "hedge must be"),
        (lambda: Guided(policy="luck"), "policy must be one of gain, untrained"),
        (lambda: AgentTrain(curiosity="rnd"), "curiosity must be one of"),
        (lambda: AgentTrain(steps=-1), "steps must be"),
        (lambda: AgentTrain(envs=1.5), "search.envs must be a whole number of at least 1, not 1.5"),  # type: ignore[arg-type]
        (lambda: AgentTrain(hidden=2.5), "search.hidden must be a whole number"),  # type: ignore[arg-type]
        (lambda: AgentTrain(horizon=0), "search.horizon must be"),
        (lambda: AgentTrain(reward="much"), "search.reward must be one of dense, terminal, best, not 'much'"),
        (lambda: AgentTrain(encoder="big"), "search.encoder must be one of"),
        (lambda: AgentTrain(checkpoint="nowhere.pt"), "there is no checkpoint 'nowhere.pt'"),
        (lambda: Agent(checkpoint="nowhere.pt"), "there is no checkpoint 'nowhere.pt'"),
        (lambda: Agent(checkpoint=5), "there is no checkpoint 5"),  # type: ignore[arg-type]
        (lambda: Agent(seed=None), "search.seed must be a whole number"),  # type: ignore[arg-type]
        (lambda: Guided(seed="abc"), "search.seed must be a whole number"),  # type: ignore[arg-type]
        (lambda: AgentTrain(seed=-1), "search.seed must be"),
        (lambda: AgentTrain(learn=1.5), "search.learn must be a number from 0 to 1"),
    ],
)
def test_wrong_options_are_named(make: Any, says: str) -> None:
    with pytest.raises(SearchError, match=says):
        make()


def test_what_can_be_chosen_is_what_there_is() -> None:
    from cgorl.agent.encoder import KINDS
    from cgorl.env.rewrite import REWARDS

    assert CHOICES["encoder"] == KINDS and CHOICES["reward"] == REWARDS


def test_what_has_been_walked_is_not_paid_for_again(trained: Path) -> None:
    """Samples of a policy that is sure of itself walk the same way, a little farther where they begin on it: no graph is listed twice."""
    sure = Agent(str(trained), samples=200, temperature=1e-6, hedge=0.0)(small("repvgg_a0"), RULES, cost(), Budget())
    once = Agent(str(trained), mode="greedy")(small("repvgg_a0"), RULES, cost(), Budget())
    assert sure.expansions <= 4 * once.expansions and sure.cost_ms <= once.cost_ms


def test_a_walk_that_leads_nowhere_is_given_up() -> None:
    """To and fro between two neutral moves: after so many steps without anything better it ends, far before the horizon."""

    def neutral(views: Any) -> list[Any]:
        return [[0.0 if m.rule.name in ("this-way", "that-way") else -9.0 for m in v.matches] + [-9.0] for v in views]

    found = walk(Inference("greedy", horizon=500), chain(), TOY, Prices(), Budget(), neutral)
    assert found.stopped == "all walks walked" and found.expansions == PATIENCE + 1
