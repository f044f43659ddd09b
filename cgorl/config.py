"""Names -> objects: the configuration in conf/, composed by Hydra; the only importer of hydra in the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cgorl.rules.rule import Rule
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library

CONF = Path(__file__).resolve().parent.parent / "conf"

_PATHS = ("model", "output", "runs")
_OPEN = ("dims", "zoo")


class ConfigError(ValueError):
    """A configuration that cannot be composed; the message names the key and what would do."""


def load_config(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration `conf/<name>.yaml` with overrides such as `search=greedy` or `dims.batch=8`.

    Values of `model` and `output` are taken literally, whatever characters they hold; `dims.` and `zoo.` take any name.
    Raises ConfigError.
    """
    if not CONF.is_dir():
        raise ConfigError(f"there is no folder '{CONF}': cgorl runs from a clone of its repository, installed with 'pip install -e .'")
    free: dict[str, dict[str, Any]] = {k: {} for k in _OPEN}
    plain: list[str] = []
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals and not text.startswith("~"):
            raise ConfigError(f"'{text}' should read key=value; {hint(name, text)}")
        group, _, inner = key.partition(".")
        if group in _OPEN and inner:
            free[group][inner] = OmegaConf.create(f"v: {value}").v if value else None
        elif key in _PATHS:
            plain.append(f"{key}={_quoted(value)}")
        else:
            plain.append(text)
    try:
        GlobalHydra.instance().clear()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose(name, overrides=plain)
        for group, found in free.items():
            if found:
                OmegaConf.update(cfg, group, found, force_add=True)
        OmegaConf.resolve(cfg)
    except (HydraException, OmegaConfBaseException) as e:
        raise ConfigError(_sentence(name, e)) from None
    return cfg


def hint(name: str, wrong: str) -> str:
    """What may be said instead of a key that is not there."""
    keys = [line.split(":")[0].strip() for line in (CONF / f"{name}.yaml").read_text().splitlines() if re.match(r"^\w+:", line)]
    keys = sorted({*keys, *(p.name for p in CONF.iterdir() if p.is_dir())} - {"defaults"})
    near = difflib.get_close_matches(wrong.split("=")[0], keys, 1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"keys are {', '.join(keys)}"


def usage(name: str) -> str:
    """The keys of `conf/<name>.yaml` with their defaults and notes, and the choices of each group."""
    text = (CONF / f"{name}.yaml").read_text().split("\n\n", 1)[1]
    chosen = "\n".join(f"  {group}={'|'.join(there)}" for group, there in groups().items())
    keys = "\n".join(f"  {line}" if line else "" for line in text.splitlines())
    return f"choices\n{chosen}\n\nkeys\n{keys}"


def groups() -> dict[str, list[str]]:
    """The choices of each configuration group."""
    return {p.name: sorted(f.stem for f in p.glob("*.yaml")) for p in sorted(CONF.iterdir()) if p.is_dir()}


def build(node: Any, **more: Any) -> Any:
    """The object that a configuration node with `_target_` describes."""
    return instantiate(node, **more, _convert_="all")


def rule_set(node: Mapping[str, Any]) -> RuleSet:
    """The rules whose name or a tag is in `include` ("*": all) and not in `exclude`. Raises ConfigError for an unknown name."""
    rules = library()
    known = {r.name for r in rules} | {t for r in rules for t in r.tags} | {"*"}
    for word in [*node["include"], *node["exclude"]]:
        if word not in known:
            near = difflib.get_close_matches(word, known, 1)
            raise ConfigError(f"there is no rule or tag '{word}'" + (f"; did you mean '{near[0]}'?" if near else ""))

    def named(rule: Rule, words: Sequence[str]) -> bool:
        return any(w == "*" or w == rule.name or w in rule.tags for w in words)

    chosen = tuple(r for r in rules if named(r, node["include"]) and not named(r, node["exclude"]))
    return RuleSet(chosen, float(node["growth"]))


def plain(cfg: Any) -> Any:
    """The configuration as plain dicts and lists."""
    return OmegaConf.to_container(cfg, resolve=True)


def yaml(cfg: Any) -> str:
    """The configuration as YAML text."""
    return OmegaConf.to_yaml(cfg, resolve=True)


def _quoted(value: str) -> str:
    if value in ("", "null"):
        return value or "null"
    body = value.replace("'", "\\'") if "\\'" not in value else value
    return f"'{body}'"


def _sentence(name: str, error: Exception) -> str:
    text = " ".join(str(error).split())
    if key := re.search(r"(?:Key|override) '([^']+)' (?:is not in struct|\. )|Could not override '([^']+)'", text):
        wrong = key[1] or key[2]
        return f"there is no key '{wrong}'; {hint(name, wrong)}"
    if choice := re.search(r"Could not find '([^']+)/([^']+)'|In '[^']+': Could not find '([^']+)/([^']+)'", text):
        group, wrong = choice[1] or choice[3], choice[2] or choice[4]
        there = groups().get(group, [])
        near = difflib.get_close_matches(wrong, there, 1)
        return f"there is no {group}={wrong}" + (f" (did you mean '{near[0]}'?)" if near else "") + f"; there are {', '.join(there)}"
    return text
