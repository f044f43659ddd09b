"""A file that holds a policy with all that its training rests on, so that it goes on as if it had never stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cgorl.agent.best import Best
from cgorl.agent.encoder import Encoder
from cgorl.agent.icm import ICM
from cgorl.agent.policy import Policy
from cgorl.agent.ppo import Learner
from cgorl.rules.rule_set import RuleSet

FORM = 2
_FIELDS = ("form", "config", "rules", "rules_digest", "encoder", "learner", "best")


class AgentError(ValueError):
    """A checkpoint that cannot be read or written, or does not fit; the message names the file."""


def save(path: Path, learner: Learner, best: Best | None, rules: RuleSet, config: Mapping[str, Any]) -> None:
    """Writes the file, whole or not at all; without `best` the policy alone: to search with, not to go on from. Raises AgentError."""
    encoder = learner.policy.encoder
    told = {
        "form": FORM,
        "config": dict(config),
        "rules": dict(learner.policy.rules.known),
        "rules_digest": rules.digest,
        "encoder": {"kind": encoder.kind, "hidden": encoder.hidden, "layers": encoder.layers},
        "learner": learner.state() if best else {"policy": learner.policy.state_dict()},
        "best": best.state() if best else {},
    }
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        torch.save(told, part)
        part.replace(path)
    except (OSError, RuntimeError) as e:
        part.unlink(missing_ok=True)
        raise AgentError(f"cannot write the checkpoint '{path}': {e}") from None


def load(path: str | Path) -> dict[str, Any]:
    """What the file says. Raises AgentError, naming a field that is missing."""
    try:
        told = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise AgentError(f"there is no checkpoint '{path}'") from None
    except Exception:  # pickle's, zip's and torch's errors, which speak of torch's own options
        told = None
    if not isinstance(told, dict):
        raise AgentError(f"'{path}' is no checkpoint of an agent, or not whole: scripts/train.py writes them")
    for name in _FIELDS:
        if name not in told:
            raise AgentError(f"the checkpoint '{path}' has no field '{name}'")
    if told["form"] != FORM:
        raise AgentError(f"the checkpoint '{path}' has form {told['form']}; this cgorl reads form {FORM}")
    return told


def restore(path: str | Path, learner: Learner, best: Best, rules: RuleSet) -> None:
    """Has a learner go on from the file. Raises AgentError where it is of another training."""
    told = load(path)
    if told["rules_digest"] != rules.digest:
        raise AgentError(f"the checkpoint '{path}' is of a training with other rules")
    try:
        learner.restore(told["learner"])
        best.restore(told["best"], learner.envs[0].starts)
    except KeyError as e:
        raise AgentError(f"the checkpoint '{path}' has no field {e}") from None
    except (ValueError, RuntimeError, IndexError, TypeError) as e:
        raise AgentError(f"the checkpoint '{path}' does not fit this training: {' '.join(str(e).split())[:300]}") from None


def policy(path: str | Path, rules: RuleSet) -> tuple[Policy, list[str]]:
    """The policy in the file, speaking of `rules`, and what is not as it was in training. Raises AgentError."""
    told = load(path)
    try:
        made = Policy(Encoder(**told["encoder"]), told["rules"])
        made.load_state_dict(told["learner"]["policy"])
    except (KeyError, TypeError, ValueError, RuntimeError) as e:
        raise AgentError(f"the policy in '{path}' cannot be read: {' '.join(str(e).split())[:300]}") from None
    return made, made.rules.use(rules)


def curiosity(path: str | Path, rules: RuleSet) -> ICM | None:
    """The curiosity module as the training left it, speaking of `rules`; None where the file holds none. Raises AgentError."""
    told = load(path)
    state, how = told["learner"].get("curiosity"), told["config"].get("icm")
    if not state or "module" not in state or not isinstance(how, Mapping):
        return None
    try:
        made = ICM(**{k: v for k, v in how.items() if not k.startswith("_")})
        made.begin(rules, told["rules"], 0)
        made.module.load_state_dict(state["module"])
    except (TypeError, ValueError, RuntimeError) as e:
        raise AgentError(f"the curiosity module in '{path}' cannot be read: {' '.join(str(e).split())[:300]}") from None
    return made
