"""Words: what tells jobs apart, as short as it can be said; a seed is none of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PROBLEM = ("model", "models", "families", "rules", "device", "cost", "zoo", "dims", "unbound", "simplify")
"""The keys, with those inside them, that say what is optimized; all others say how."""
_NO_CHOICE = ("runs", "output", "resume")


def varied(abouts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys whose values differ between jobs, seeds and places of files apart.

    Where the class of a group differs (`icm._target_`), the group itself is the key, and of its own keys those that differ
    between jobs of one class.
    """
    known = [about for about in abouts if about]
    keys = dict.fromkeys(k for about in known for k in about)
    differing = [k for k in keys if not _seed(k) and k not in _NO_CHOICE and len({_text(a.get(k, "")) for a in known}) > 1]
    groups = [k.removesuffix("._target_") for k in differing if k.endswith("._target_")]
    found: dict[str, None] = {}
    for key in differing:
        group = next((g for g in groups if key == g or key.startswith(f"{g}.")), "")
        if not group:
            found[key] = None
            continue
        found[group] = None
        by_class: dict[Any, set[str]] = {}
        for about in known:
            if key in about and not key.endswith("._target_"):
                by_class.setdefault(about.get(f"{group}._target_"), set()).add(_text(about[key]))
        if any(len(values) > 1 for values in by_class.values()):
            found[key] = None
    return [k for k in found if not any(k != g and k.startswith(f"{g}.device") for g in found)]


def value(about: Mapping[str, Any], key: str) -> str | None:
    """The value of a key in words; None where there is none. A group is told by its class."""
    if (made := about.get(f"{key}._target_")) is not None:
        return str(about[f"{key}.name"]) if f"{key}.name" in about else str(made).rpartition(".")[2].lower()
    if key in about:
        return "none" if about[key] == {} else _text(about[key])
    return None


def method(about: Mapping[str, Any], keys: Sequence[str]) -> str:
    """How a job works, by those of the keys that say so."""
    told = ((k, value(about, k)) for k in keys if k.split(".")[0] not in PROBLEM)
    return " ".join(f"{k}={v}" for k, v in told if v is not None)


def problem(about: Mapping[str, Any], keys: Sequence[str], name: str) -> str:
    """What a job is about: the graph's name, and those of the keys that say which."""
    told = ((k, value(about, k)) for k in keys if k.split(".")[0] in PROBLEM and k not in ("model", "models", "families"))
    return " ".join([name, *(f"{k}={v}" for k, v in told if v is not None)])


def _seed(key: str) -> bool:
    return key.rpartition(".")[2] == "seed"


def _text(given: Any) -> str:
    if isinstance(given, float):
        return f"{given:g}"
    return str(given) if isinstance(given, str) else json.dumps(given, default=str)
