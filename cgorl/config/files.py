"""Files: what there is to choose in conf/: configurations, their keys, groups and their choices."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

CONF = Path(__file__).resolve().parent.parent.parent / "conf"

EXPERIMENT = "experiment"


class ConfigError(ValueError):
    """A configuration that cannot be composed; the message names the key and what would do."""


def groups() -> dict[str, list[str]]:
    """The choices of each configuration group."""
    folders = (p for p in sorted(CONF.iterdir()) if p.is_dir() and p.name != EXPERIMENT)
    return {p.name: sorted(f.stem for f in p.glob("*.yaml")) for p in folders}


def defaults(name: str) -> dict[str, str]:
    """The choice of each group that `conf/<name>.yaml` makes by itself."""
    listed = _listed(name)
    own = {k: v for entry in listed if isinstance(entry, dict) for k, v in entry.items()}
    return {**(defaults(base) if (base := _base(name)) != name else {}), **own}


def _listed(name: str) -> list[Any]:
    """The defaults list of `conf/<name>.yaml`."""
    whole: Any = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))
    return list(whole["defaults"])


def _base(name: str) -> str:
    """The configuration that `conf/<name>.yaml` is another of: sweep of train."""
    listed = _listed(name)
    return next((entry for entry in listed if isinstance(entry, str) and entry != "_self_"), name)


def has(group: str, choice: str, key: str) -> bool:
    """Whether a choice of a group has a key; true of a choice that there is not, which is said elsewhere."""
    file = CONF / group / f"{choice}.yaml"
    return not file.is_file() or key.partition(".")[0] in _keys(file)


def hint(name: str, wrong: str) -> str:
    """What may be said instead of a key that is not there."""
    name = _base(name)
    keys = sorted({*_keys(CONF / f"{name}.yaml"), *defaults(name)} - {"defaults"})
    group, _, inner = wrong.split("=")[0].lstrip("+~-").partition(".")
    if inner and group in groups():
        keys = sorted({f"{group}.{k}" for f in (CONF / group).glob("*.yaml") for k in _keys(f)})
    near = difflib.get_close_matches(f"{group}.{inner}" if inner else group, keys, 1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"keys are {', '.join(keys)}"


def usage(name: str) -> str:
    """The keys of `conf/<name>.yaml` with their defaults and notes, and the choices of each group."""
    name = _base(name)
    text = (CONF / f"{name}.yaml").read_text().split("\n\n", 1)[1]
    chosen = "\n".join(f"  {group}={'|'.join(groups()[group])}" for group in sorted(defaults(name)))
    keys = "\n".join(f"  {line}" if line else "" for line in text.splitlines())
    return (f"choices\n{chosen}\n\n" if chosen else "") + f"keys\n{keys}"


def _keys(file: Path) -> list[str]:
    return [line.split(":")[0] for line in file.read_text().splitlines() if re.match(r"[a-z]\w*:", line)]
