"""The policy: a batch of n is n singles, order does not matter, and all chances are of matches and of stopping."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from cgorl import config
from cgorl.agent.batch import batch, segment_log_softmax, segment_mean
from cgorl.agent.encoder import KINDS, Encoder, EncoderError
from cgorl.agent.policy import Policy, best, draw, entropy, fresh_policy, grown
from cgorl.env.observation import Observation
from cgorl.env.rewrite import RewriteEnv, Start
from cgorl.rules.rule_set import RuleSet
from tests.agent.toy import RULES as TOY
from tests.agent.toy import Prices, chain
from tests.search.test_trace import cost
from tests.texts import small

torch.set_num_threads(1)
RULES = config.rule_set(config.plain(config.load_config("optimize", ["model=none"]))["rules"])


@pytest.fixture(scope="module")
def seen() -> list[Observation]:
    found = []
    for name in ("repvgg_a0", "bert", "inception_v3"):
        env = RewriteEnv([Start.of(small(name), RULES, cost())])
        rng = random.Random(0)
        for _ in range(3):
            found.append(env.observation)
            if env.matches:
                env.step(rng.randrange(len(env.matches)))
    return found


def policy(kind: str = "gcn", rules: RuleSet = RULES) -> Policy:
    made = fresh_policy(rules, 3, lambda: Encoder(kind, 16, 2))
    for name, parameter in made.named_parameters():  # the last layers begin near 0, where all would look equal
        if name.startswith(("score", "stop.2", "value.2", "curious.2")):
            torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(len(name)))
    return made


def chances(p: Policy, o: Observation) -> Any:
    with torch.no_grad():
        return p(batch([o]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_n_is_n_singles(kind: str, seen: list[Observation]) -> None:
    p = policy(kind)
    with torch.no_grad():
        b = batch(seen)
        together = p(b)
    for k, o in enumerate(seen):
        alone = chances(p, o)
        rows = torch.where(b.graph_A == k)[0]
        assert torch.allclose(together.logp_A[rows], alone.logp_A, atol=1e-5)
        assert torch.allclose(together.value_B[k], alone.value_B[0], atol=1e-5)
        assert torch.allclose(together.curious_B[k], alone.curious_B[0], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_nodes_edges_and_matches_does_not_matter(kind: str, seen: list[Observation]) -> None:
    p, o, rng = policy(kind), seen[-1], np.random.default_rng(0)
    n, m = len(o.ids_N), len(o.rule_M)
    nodes, edges, matches, places = (rng.permutation(k) for k in (n, len(o.src_E), m, len(o.place_K)))
    at_n, at_m = np.argsort(nodes), np.argsort(matches)
    places = places[np.argsort(at_m[o.owner_K][places], kind="stable")]  # by match, as they always are
    mixed = o._replace(
        **{"ids_N": o.ids_N[nodes], "op_N": o.op_N[nodes], "x_NF": o.x_NF[nodes], "key_N": o.key_N[nodes]},
        **{"src_E": at_n[o.src_E][edges], "dst_E": at_n[o.dst_E][edges], "port_E": o.port_E[edges]},
        **{"rule_M": o.rule_M[matches], "y_MY": o.y_MY[matches], "rank_M": o.rank_M[matches], "key_M": o.key_M[matches]},
        **{"place_K": at_n[o.place_K][places], "owner_K": at_m[o.owner_K][places], "role_K": o.role_K[places]},
    )
    a, b = chances(p, o), chances(p, mixed)
    assert torch.allclose(a.logp_A[:m][torch.from_numpy(matches)], b.logp_A[:m], atol=1e-5)
    assert torch.allclose(a.logp_A[m], b.logp_A[m], atol=1e-5) and torch.allclose(a.value_B, b.value_B, atol=1e-5)


def test_message_passing_tells_apart_what_nodes_alone_cannot() -> None:
    """Two equal nodes, one behind another operator than the other: only with messages do they differ."""
    env = RewriteEnv([Start.of(chain("Tanh Sin Abs Sin Tanh"), TOY, Prices())])
    o = env.observation
    at = [k for k, m in enumerate(env.matches) if m.rule.name == "this-way"]
    assert len(at) == 2
    for kind in KINDS:
        logp = chances(policy(kind, TOY), o).logp_A
        assert bool(torch.isclose(logp[at[0]], logp[at[1]], atol=1e-6)) == (kind == "none")


def test_the_direction_and_the_operand_of_an_edge_count() -> None:
    """A gin or gat reads which operand an edge is; a gcn weighs it, once it has learnt to."""
    o = RewriteEnv([Start.of(small("bert"), RULES, cost())]).observation
    for change in ({"src_E": o.dst_E, "dst_E": o.src_E}, {"port_E": (o.port_E + 1) % 2}):
        for kind in ("gcn", "gat", "gin"):
            p = policy(kind)
            if kind == "gcn":
                torch.nn.init.normal_(p.encoder.port.weight, generator=torch.Generator().manual_seed(0))
            assert not torch.allclose(chances(p, o).logp_A, chances(p, o._replace(**change)).logp_A, atol=1e-6)


def test_segments() -> None:
    x, segment = torch.tensor([1.0, 2.0, 3.0, -200.0]), torch.tensor([0, 2, 2, 3])
    p = segment_log_softmax(x, segment, 4).exp()
    assert p.tolist() == pytest.approx([1.0, 1 / (1 + np.e), np.e / (1 + np.e), 1.0])
    assert segment_mean(x.unsqueeze(1), segment, 4).squeeze(1).tolist() == [1.0, 0.0, 2.5, -200.0]


def test_chances_add_up_and_even_ones_have_entropy_one(seen: list[Observation]) -> None:
    b = batch(seen)
    with torch.no_grad():
        logp_A = policy()(b).logp_A
    assert torch.allclose(torch.zeros(b.size).index_add(0, b.graph_A, logp_A.exp()), torch.ones(b.size), atol=1e-5)
    even = segment_log_softmax(torch.zeros_like(logp_A), b.graph_A, b.size)
    assert torch.allclose(entropy(even, b), torch.ones(b.size), atol=1e-5)
    assert (entropy(logp_A, b) < 1).all()


def test_draws_follow_the_chances_and_best_takes_the_first_of_equals(seen: list[Observation]) -> None:
    b = batch(seen[:2])
    score_A = torch.zeros(len(b.graph_A))
    assert best(score_A, b).tolist() == [0, 0]
    score_A[b.flat(torch.tensor([3, int(b.count_B[1])]))] = 2.0
    assert best(score_A, b).tolist() == [3, int(b.count_B[1])]
    logp_A = segment_log_softmax(score_A * 2, b.graph_A, 2)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([draw(logp_A, b, generator) for _ in range(600)])
    share = (drawn[:, 0] == 3).float().mean()
    assert abs(share - logp_A[b.flat(torch.tensor([3, 0]))[0]].exp()) < 0.06
    assert (drawn >= 0).all() and (drawn <= b.count_B).all()


def test_nothing_can_be_earned_without_a_step_left(seen: list[Observation]) -> None:
    j = chances(policy(), seen[0]._replace(left=0))
    assert j.value_B.item() == 0.0 and j.curious_B.item() == 0.0 and chances(policy(), seen[0]).value_B.item() != 0.0


def test_a_graph_without_matches_can_be_judged(seen: list[Observation]) -> None:
    none = RewriteEnv([Start.of(chain("Tanh"), TOY, Prices())]).observation
    j = chances(policy("gcn", TOY), none)
    assert j.logp_A.tolist() == [0.0] and torch.isfinite(j.value_B).all()


def test_rules_may_come_go_and_change(seen: list[Observation]) -> None:
    p = policy()
    fewer = RuleSet(RULES.rules[3:])
    assert p.rules.use(fewer) == []
    q = fresh_policy(fewer, 3, lambda: Encoder("gcn", 16, 2))
    told = q.rules.use(RULES)
    assert len(told) == 3 and RULES.rules[0].name in told[0] and "was not there" in told[0]
    assert torch.isfinite(chances(q, seen[0]).logp_A).all()
    q.rules.known[RULES.rules[5].name] = "0" * 16
    assert any("is not as it was" in t and RULES.rules[5].name in t for t in q.rules.use(RULES))


def test_a_policy_that_grows_keeps_what_it_knows(seen: list[Observation]) -> None:
    p = policy(rules=RuleSet(RULES.rules[3:]))
    more = grown(p, RULES, 7)
    assert more.rules.use(RULES) == [] and p.rules.use(RULES) != []
    assert torch.allclose(chances(p, seen[0]).logp_A, chances(more, seen[0]).logp_A)  # new rules are as new to both
    name = RULES.rules[5].name
    at = [list(q.rules.known).index(name) + 1 for q in (p, more)]
    assert torch.equal(p.rules.named.weight[at[0]], more.rules.named.weight[at[1]])


def test_a_policy_is_made_by_its_seed_alone_and_disturbs_nothing() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a = fresh_policy(TOY, 1, lambda: Encoder("gcn", 8, 1))
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(3)
    b = fresh_policy(TOY, 1, lambda: Encoder("gcn", 8, 1))
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize(
    ("options", "says"), [({"kind": "rnn"}, "encoder.kind"), ({"hidden": 0}, "encoder.hidden"), ({"layers": 1.5}, "layers")]
)
def test_wrong_options_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(EncoderError, match=says):
        Encoder(**options)
