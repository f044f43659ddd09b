"""Compose: overrides -> a configuration, and a configuration -> the object that it describes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cgorl.config import files
from cgorl.config.files import ConfigError, groups, hint
from cgorl.config.kinds import OPEN

PATHS = ("model", "output", "runs", "resume", "initial", "sweep")

_NEEDED = {"optimize": ("model",), "evaluate": ("model",), "report": ("sweep",)}

SEARCHES: Mapping[str, tuple[str, ...]] = {"measured": ("search=backtracking", "search.alpha=1.2")}
"""The search of one job where none is named, by its prices: measured ones are won by chains whose first step may cost 20 %."""

Memo = dict[tuple[str, ...], Any]
"""What calls of `load_config` one after another may share, so that only different choices are composed anew."""


def load_config(name: str, overrides: Sequence[str] = (), values: Mapping[str, Any] | None = None, memo: Memo | None = None) -> DictConfig:
    """The configuration `conf/<name>.yaml` with overrides such as `search=greedy` or `dims.batch=8`.

    Paths (`model`, `output`, `runs`) are taken literally, whatever characters they hold; `dims.` and `zoo.` take any name.
    `values` are overrides as Python objects. Raises ConfigError.
    """
    if not files.CONF.is_dir():
        raise ConfigError(
            f"there is no folder '{files.CONF}': cgorl runs from a clone of its repository, installed with 'pip install -e .'"
        )
    found: dict[str, Any] = {}
    plain = [f"{k}={v}" for k, v in (values or {}).items() if k in groups()]
    for text in overrides:
        key, equals, value = text.partition("=")
        group, _, inner = key.partition(".")
        if not equals:
            raise ConfigError(f"'{text}' should read key=value; {hint(name, text)}")
        if not re.match(r"\w", key) or group == "hydra":
            raise ConfigError(f"there is no key '{key}'; {hint(name, key)}")
        if group in OPEN and inner:
            found.setdefault(group, {})[inner] = value_of(text, value)
        elif key in PATHS:
            found[key] = literal(value)
        else:
            plain.append(text)
    if name == "optimize" and not any(text.startswith("search=") for text in plain):
        chosen = next((text.partition("=")[2] for text in reversed(plain) if text.startswith("cost=")), "")
        plain = [*SEARCHES.get(chosen, ()), *plain]
    for key, given in (values or {}).items():
        if key not in groups():
            found[key] = literal(str(given)) if key in PATHS and given is not None else given
    try:
        memo = {} if memo is None else memo
        if (name, *plain) not in memo:
            GlobalHydra.instance().clear()
            with initialize_config_dir(str(files.CONF), version_base="1.3"):
                memo[name, *plain] = compose(name, overrides=plain)
            OmegaConf.resolve(memo[name, *plain])
        cfg: DictConfig = deepcopy(memo[name, *plain])
        for key, given in found.items():
            OmegaConf.update(cfg, key, given, merge=False, force_add=key in OPEN)  # a mapping takes the place of the one there
    except (HydraException, OmegaConfBaseException, ValueError) as e:  # hydra raises a bare ValueError for a group that is null
        raise ConfigError(_sentence(name, e)) from None
    for key in map(str, cfg):
        if OmegaConf.is_missing(cfg, key) or (key in _NEEDED.get(name, ()) and not cfg[key]):
            raise ConfigError(f"'{key}' must be given, as {key}=...")
    return cfg


def build(node: Any, **more: Any) -> Any:
    """The object that a configuration node with `_target_` describes. Raises ConfigError where its class will not have the values."""
    try:
        return instantiate(node, **more, _convert_="all")
    except InstantiationException as e:
        raise ConfigError(" ".join(str(e.__cause__ or e).split())) from None


def plain(cfg: Any) -> Any:
    """The configuration as plain dicts and lists."""
    return OmegaConf.to_container(cfg, resolve=True)


def kept(file: Path) -> DictConfig:
    """The configuration that a run kept in its folder. Raises ConfigError where there is none."""
    try:
        found = OmegaConf.load(file)
    except Exception:  # yaml's errors share no base class with those of a missing file
        found = None
    if not isinstance(found, DictConfig):
        raise ConfigError(f"there is no configuration of a run in '{file}'")
    return found


def yaml(cfg: Any) -> str:
    """The configuration as YAML text."""
    return OmegaConf.to_yaml(cfg, resolve=True)


def literal(value: str) -> str | None:
    """A path as a configuration value that resolves to just that path."""
    return None if value in ("", "null") else value.replace("${", "\\${")


def value_of(text: str, value: str) -> Any:
    """What `value` says in YAML; `text` is the whole override. Raises ConfigError."""
    try:
        return OmegaConf.to_container(OmegaConf.create(f"v: {value}"))["v"]  # type: ignore[index, call-overload]
    except Exception:  # yaml's errors
        raise ConfigError(f"the value of '{text}' cannot be read") from None


def _sentence(name: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    if many := re.search(r"Ambiguous value for argument '([^=']+)=", text):
        return f"'{many[1]}' takes one value here: scripts/evaluate.py and scripts/sweep.py run several"
    if key := re.search(r"Key '([^']+)' is not in struct|Could not override '([^']+)'", text):
        wrong = key[1] or key[2]
        return f"there is no key '{wrong}'; {hint(name, wrong)}"
    if choice := re.search(r"Could not find '(\w+)/([^']*)'", text):
        group, wrong = choice[1], choice[2]
        there = groups().get(group, [])
        near = difflib.get_close_matches(wrong, there, 1)
        return f"there is no {group}={wrong}" + (f" (did you mean '{near[0]}'?)" if near else "") + f"; there are {', '.join(there)}"
    return text
