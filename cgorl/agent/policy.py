"""Policy: a score for each match and for stopping, and the value of going on, from one observation or a batch.

Shape suffixes: B graphs, N nodes, M matches, K places, A actions, R rules, S features of a rule, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from cgorl.agent.batch import Batch, distinct_matches, means, places, pooled, segment_log_softmax, segment_mean, segment_sum
from cgorl.agent.encoder import Encoded, Encoder
from cgorl.env.match_table import Y
from cgorl.env.observation import ROLES, Q
from cgorl.env.rule_features import S, rule_digest, rule_features
from cgorl.rules.rule_set import RuleSet

STOP = -2.0
"""The first score of stopping, that of a match that gains nothing being near 0: who learns should first see where rewriting leads."""

GREED, FEAR = 4.0, 0.0
"""What the largest gain, and the largest loss, count in a first score: who learns begins as a walker that is greedy and not too shy, and
learns where greed is wrong. Without it, a walk among hundreds of matches hardly ever comes to where the best ones lead."""

GREED_UNIT = 10.0
"""Both are learnt in steps of this times the learning rate, since they count for all matches alike and have far to go."""


class Judgement(NamedTuple):
    """Logarithms of the actions' chances [A], and values [B] of the rest of the episode: extrinsic and intrinsic."""

    logp_A: Any
    value_B: Any
    curious_B: Any


class RuleVectors(nn.Module):
    """A vector for each rule: its features and what was learnt of it by name; a rule that was not there has its features only."""

    def __init__(self, known: Mapping[str, str], hidden: int) -> None:
        """`known` are the digests of the rules to learn, by name."""
        super().__init__()
        self.known = dict(known)
        self.features = nn.Linear(S, hidden)
        self.named = nn.Embedding(len(known) + 1, hidden, padding_idx=0)
        nn.init.normal_(self.named.weight, std=0.1)
        with torch.no_grad():
            self.named.weight[0] = 0
        self._seen_RS: Any = None
        self._id_R: Any = None

    def use(self, rules: RuleSet) -> list[str]:
        """Speaks of `rules` from now on; says of each that is new, or is not what it was, that it is."""
        ids = {name: k for k, name in enumerate(self.known, 1)}
        self._id_R = torch.tensor([ids.get(r.name, 0) for r in rules], dtype=torch.long)
        self._seen_RS = torch.from_numpy(rule_features(rules))
        changed = [r.name for r in rules if self.known.get(r.name, rule_digest(r)) != rule_digest(r)]
        new = [r.name for r in rules if r.name not in self.known]
        return [f"rule '{n}' is not as it was in training" for n in changed] + [f"rule '{n}' was not there in training" for n in new]

    def forward(self) -> Any:
        """[R, H]."""
        return self.features(self._seen_RS) + self.named(self._id_R)


class Policy(nn.Module):
    """Scores matches by pointing at them: what the encoder says of their nodes, the rule, what they gain, and the whole."""

    def __init__(self, encoder: Encoder, known: Mapping[str, str]) -> None:
        """`known` are the digests of the rules to learn, by name."""
        super().__init__()
        h = encoder.hidden
        self.encoder = encoder
        self.rules = RuleVectors(known, h)
        self.role = nn.Embedding(ROLES, h)
        self.place = nn.Linear(h, h)
        self.facts = nn.Linear(Y, h)
        self.whole = nn.Linear(h + Q, h)
        self.match = nn.Linear(h, h)
        self.sight = nn.Linear(h, h, bias=False)
        self.rank = nn.Linear(1, h, bias=False)
        self.greed = nn.Parameter(torch.tensor([GREED, FEAR]) / GREED_UNIT)
        self.score = nn.Linear(h, 1)
        self.stop = nn.Sequential(nn.Linear(3 * h, h), nn.Tanh(), nn.Linear(h, 1))
        self.value = nn.Sequential(nn.Linear(3 * h, h), nn.Tanh(), nn.Linear(h, 1))
        # it reads what the others have learnt to see and teaches them nothing: without curiosity it changes nothing at all
        self.curious = nn.Sequential(nn.Linear(3 * h, h), nn.Tanh(), nn.Linear(h, 1))
        for layer, gain in ((self.score, 0.01), (self.stop[2], 0.01), (self.value[2], 1.0)):
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.zeros_(layer.bias)
        nn.init.constant_(self.stop[2].bias, STOP)
        nn.init.zeros_(self.curious[2].weight)
        nn.init.zeros_(self.curious[2].bias)

    def forward(self, b: Batch) -> Judgement:
        """What it thinks of a batch."""
        seen = self.encoder(b.nodes)
        whole_BH = self.whole(torch.cat([means(seen.h_UH, seen.of_N, b.nodes_B), b.g_BQ], 1))
        rank_M1 = b.rank_M.unsqueeze(-1)
        z_MH = torch.relu(self._local(b, seen) + self.sight(whole_BH).index_select(0, b.graph_M) + self.rank(rank_M1))
        greed_M = self.greed[0] * b.rank_M.clamp(min=0) + self.greed[1] * b.rank_M.clamp(max=0)
        score_M = self.score(z_MH).squeeze(-1) + GREED_UNIT * greed_M
        # the whole as actions see it: what matches there are on average, and those that would be taken
        chance_M = segment_log_softmax(score_M.detach(), b.graph_M, b.size).exp().unsqueeze(-1)
        taken_BH = segment_sum(chance_M * z_MH, b.graph_M, b.size)
        ctx_BH3 = torch.cat([torch.relu(whole_BH), segment_mean(z_MH, b.graph_M, b.size), taken_BH], 1)
        score_A = torch.cat([score_M, self.stop(ctx_BH3).squeeze(-1)])
        more_B = (b.left_B > 0).to(score_A.dtype)  # nothing can be earned without a step left
        return Judgement(
            segment_log_softmax(score_A, b.graph_A, b.size),
            self.value(ctx_BH3).squeeze(-1) * more_B,
            self.curious(ctx_BH3.detach()).squeeze(-1) * more_B,
        )

    def _local(self, b: Batch, seen: Encoded) -> Any:
        """What matches are by themselves [M, H]: each place, rule and gain that there is, once."""
        rows_U, of_M = distinct_matches(b, seen.key_N)
        place_K, owner_K, role_K = (torch.from_numpy(a) for a in places(b, rows_U))
        count = len(rows_U)
        rows_U = torch.from_numpy(rows_U)
        at_UH = pooled(self.place(seen.h_UH), seen.of_N[place_K], owner_K, count) + pooled(self.role.weight, role_K, owner_K, count)
        known_UH = at_UH + self.rules().index_select(0, b.rule_M[rows_U]) + self.facts(b.y_MY[rows_U])
        return self.match(torch.relu(known_UH)).index_select(0, torch.from_numpy(of_M))


def fresh_policy(rules: RuleSet, seed: int, make: Callable[[], Encoder]) -> Policy:
    """A policy that has learnt nothing, for `rules`; the same for the same seed, and no other random numbers are disturbed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = Policy(make(), {r.name: rule_digest(r) for r in rules})
    made.rules.use(rules)
    return made


def grown(old: Policy, rules: RuleSet, seed: int) -> Policy:
    """A policy that knows what `old` has learnt, with a vector to learn for each of `rules`, those that are new among them."""
    e = old.encoder
    made = fresh_policy(rules, seed, lambda: Encoder(e.kind, e.hidden, e.layers))
    named = made.rules.named.weight.detach().clone()
    at = {name: k for k, name in enumerate(old.rules.known, 1)}
    for k, name in enumerate(made.rules.known, 1):
        named[k] = old.rules.named.weight[at[name]] if name in at else 0  # known by its structure alone so far
    made.load_state_dict({**old.state_dict(), "rules.named.weight": named})
    return made


def entropy(logp_A: Any, b: Batch) -> Any:
    """Entropies [B] over the logarithm of the number of actions: 1 is even, whatever their number."""
    entropy_B = -segment_sum(logp_A.exp() * logp_A, b.graph_A, b.size)
    return entropy_B / (b.count_B + 1).clamp(min=2).to(logp_A.dtype).log()


def draw(logp_A: Any, b: Batch, generator: torch.Generator) -> Any:
    """An action [B] of each graph by its chances, numbered within the graph (the Gumbel trick)."""
    u_A = torch.rand(logp_A.shape, generator=generator).clamp(1e-20, 1 - 1e-7)
    return best(logp_A - (-u_A.log()).log(), b)


def best(score_A: Any, b: Batch) -> Any:
    """The action [B] with the highest score of each graph, numbered within the graph; the first of equals."""
    count = b.rule_M.shape[0]
    top_B = score_A.new_full((b.size,), -torch.inf).scatter_reduce(0, b.graph_A, score_A, "amax")
    row_A = torch.arange(score_A.shape[0])
    hit_A = torch.where(score_A == top_B[b.graph_A], row_A, score_A.shape[0])
    row_B = torch.full((b.size,), score_A.shape[0]).scatter_reduce(0, b.graph_A, hit_A, "amin")
    return torch.where(row_B < count, row_B - b.first_B, b.count_B)
