"""Opinion: what a policy expects of one state, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple

import torch

from cgorl.agent.batch import batch
from cgorl.agent.policy import Policy
from cgorl.env.observation import Observation


class Opinion(NamedTuple):
    """The values of what is left of the episode, each in its own scale (1 is the deviation of such returns in training)."""

    value: float
    curiosity: float


def opinion(policy: Policy, seen: Observation) -> Opinion:
    """What the policy expects from here on."""
    with torch.no_grad():
        judged = policy(batch([seen]))
    return Opinion(float(judged.value_B[0]), float(judged.curious_B[0]))
