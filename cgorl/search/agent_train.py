"""AgentTrain: trains an agent on the given graph for a share of the budget, searches with it for the rest, and hands back the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cgorl.search.agent import policy_file, positive, scorer, share
from cgorl.search.course import Course
from cgorl.search.inference import Inference, reach
from cgorl.search.method import Method
from cgorl.search.searcher import SearchError, check
from cgorl.search.state import State

if TYPE_CHECKING:
    from cgorl.env.rewrite import Move, RewriteEnv

CHOICES = {"curiosity": ("icm", "none", "count"), "encoder": ("gcn", "gat", "gin", "none"), "reward": ("dense", "terminal", "best")}
"""What there is of each; said again here so that a wrong one is named before torch is loaded."""

_ENDLESS = 1_000_000
"""Walks, more than any limit lets be walked."""


@dataclass(frozen=True, slots=True)
class AgentTrain(Method):
    """PPO on one graph, with `curiosity` icm, count or none; `steps` at most, of all its `envs` together.

    From nothing, or from the policy in the file `checkpoint` ("general": the one in data/agents/), which then says what its
    encoder is. The training ends when `learn` of a limit is used up; with what is left the policy walks as `search=agent`
    does, `hedge` of its walks led by gains: without a limit as many walks as that takes by default.

    Episodes have at most `horizon` steps; null: as of `Inference`.
    """

    anew: ClassVar[str] = "agent_train"

    curiosity: str = "icm"
    encoder: str = "gcn"
    hidden: int = 64
    layers: int = 2
    reward: str = "dense"
    horizon: int | None = None
    learn: float = 0.8
    hedge: float = 0.5
    steps: int = 100_000
    envs: int = 8
    learning_rate: float = 0.001
    checkpoint: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises SearchError."""
        for name, there in CHOICES.items():
            if (value := getattr(self, name)) not in there:
                raise SearchError(f"search.{name} must be one of {', '.join(there)}, not {value!r}")
        least = {"hidden": 1, "layers": 1, "steps": 1, "envs": 1, "seed": 0, **({} if self.horizon is None else {"horizon": 1})}
        check(self, least, whole=least)
        positive("learning_rate", self.learning_rate)
        share("learn", self.learn)
        share("hedge", self.hedge)
        policy_file(self.checkpoint)

    def prepare(self) -> None:
        """Imports torch, which may take seconds."""
        import cgorl.agent.ppo  # noqa: F401

    def search(self, course: Course) -> str:
        """See `Method`. Each graph that an episode comes to is an expansion, each match seen of it an evaluation."""
        from cgorl.agent import checkpoint as files
        from cgorl.agent.encoder import Encoder
        from cgorl.agent.icm import ICM, Count, Curiosity
        from cgorl.agent.policy import fresh_policy, grown
        from cgorl.agent.ppo import PPO, Learner
        from cgorl.env.rewrite import Episodes, RewriteEnv, Start

        meter, rules, cost, graph = course.meter, course.rules, course.cost, course.start.graph
        if meter.spent():
            return meter.spent()
        if not course.start.prices:
            return "no rule matches"
        ended = False

        def tell(env: RewriteEnv) -> None:
            nonlocal ended
            if not env.path or ended:
                return
            if meter.spent() or meter.used(len(env.at.prices)) > self.learn:
                ended = True
                return
            meter.expansions, meter.evaluations = meter.expansions + 1, meter.evaluations + len(env.at.prices)
            if env.at.cost_ms < course.best.cost_ms - 1e-12:
                course.offer(_followed(State(graph, cost, course.start.way), env.path))
            else:
                meter.tell(course.best.cost_ms, course.best.way.length)

        # greed is not tried for the horizon: the budget would have to pay for it
        start = Start.of(graph, rules, cost, 0)
        envs = [RewriteEnv([start], Episodes(self.reward, "best", self.horizon or reach(course.start)), tell) for _ in range(self.envs)]
        file = policy_file(self.checkpoint)
        if file is None:
            policy = fresh_policy(rules, self.seed, lambda: Encoder(self.encoder, self.hidden, self.layers))
        else:
            policy = grown(files.policy(file, rules)[0], rules, self.seed)
        curiosity: Curiosity | None = {"icm": ICM, "count": Count}[self.curiosity]() if self.curiosity != "none" else None
        if curiosity is not None:
            curiosity.begin(rules, policy.rules.known, self.seed)
        options = PPO(total_timesteps=self.steps, num_envs=self.envs, learning_rate=self.learning_rate)
        learner = Learner(options, policy, envs, curiosity, self.seed)
        while learner.updates < options.num_updates and not ended:
            learner.update(lambda: ended)
        walks = Inference(samples=_ENDLESS if meter.limited else Inference().samples, horizon=self.horizon, seed=self.seed)
        return meter.limit() or walks.search(course, scorer(policy), self.hedge)


def _followed(state: State, path: Sequence[Move]) -> State:
    """The state at the end of the rewrites of an episode that began at `state`, with the way there; nothing is listed or priced."""
    for move in path:
        state = state.passed(move.match, move.cost_ms)
    return state
