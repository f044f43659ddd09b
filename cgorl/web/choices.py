"""Choices: what a user may choose of a job, read and checked; the defaults are those of conf/optimize.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from django.conf import settings

from cgorl import config, zoo
from cgorl.web.refusals import RefusalError

GROUPS: Mapping[str, str] = {
    "rules": "which rewrites are allowed",
    "cost": "roofline: a price list; measured: kernels timed on the server, and the result measured before it is called faster",
    "device": "the price list's machine (with roofline)",
    "search": "how rewrites are looked for",
}
_NOT_HERE = {"search": ("agent_train",), "rules": ("none", "taso")}
_NEED_TORCH = ("agent", "guided")
_NUMBERS = ("seconds", "expansions", "evaluations", "seed")
KNOWN = (*GROUPS, *_NUMBERS, "dims", "unbound")
_MOST_DIMS, _LARGEST_DIM = 32, 65536
SECONDS = 30


@cache
def menus() -> dict[str, list[str]]:
    """The choices of each group."""
    without = _NEED_TORCH if find_spec("torch") is None else ()
    found = config.groups()
    return {g: [c for c in found[g] if c not in (*_NOT_HERE.get(g, ()), *without)] for g in GROUPS}


@cache
def defaults() -> dict[str, Any]:
    """The choices made where a user makes none."""
    first = config.defaults("optimize")
    return {
        **{g: first[g] for g in GROUPS},
        "seconds": SECONDS,
        "expansions": None,
        "evaluations": None,
        "seed": 0,
        "dims": "",
        "unbound": 1,
    }


@cache
def models() -> list[str]:
    """The names of the zoo."""
    return list(zoo.names())


def told() -> dict[str, Any]:
    """All of it as plain data: `groups`, `about` each, `defaults`, `zoo`, `limits`."""
    limits = {
        "upload_bytes": settings.MOST_UPLOAD_BYTES,
        "files": settings.MOST_FILES,
        "seconds": settings.MOST_SEARCH_SECONDS,
        "job_seconds": settings.MOST_JOB_SECONDS,
        "keep_seconds": settings.KEEP_SECONDS,
    }
    return {"groups": menus(), "about": dict(GROUPS), "defaults": defaults(), "zoo": models(), "limits": limits}


def read(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a job: those in `given`, checked, and defaults for the rest. Raises RefusalError (400) that names what is wrong."""
    for key in given:
        if key not in KNOWN:
            raise RefusalError(400, f"there is no option '{_short(key)}'; options are {', '.join(KNOWN)}")
    asked = {k: v for k, v in given.items() if v not in (None, "")}
    found: dict[str, Any] = {}
    for group, there in menus().items():
        found[group] = str(asked.get(group, defaults()[group]))
        if found[group] not in there:
            raise RefusalError(400, f"there is no {group} '{_short(found[group])}'; there is {', '.join(there)}")
    if found["cost"] == "measured" and "search" not in asked:
        found |= {"search": "backtracking", "search.alpha": 1.2}
    found["seconds"] = _number("seconds", asked.get("seconds", SECONDS), settings.MOST_SEARCH_SECONDS)
    for name in ("expansions", "evaluations"):
        found[name] = int(_number(name, asked[name], 10**9)) if name in asked else None
    found["seed"] = int(_number("seed", asked.get("seed", 0), 2**31 - 1))
    found["dims"], found["unbound"] = _sizes(asked.get("dims", ""))
    if "unbound" in asked:
        found["unbound"] = _size("unbound", asked["unbound"])
    found["unbound"] = found["unbound"] or defaults()["unbound"]
    return found


def _number(name: str, value: Any, most: float) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found <= most:  # not a number fails this too
        raise RefusalError(400, f"{name} must be a number from 0 to {most:,}, not '{_short(value)}'")
    return found


def _sizes(given: Any) -> tuple[dict[str, int], int | None]:
    """Sizes by name and that of all others, of a text such as "batch=8, seq=128" or "1", or of a mapping."""
    if isinstance(given, Mapping):
        pairs = [(str(k), v) for k, v in given.items()]
    else:
        words = [w for w in re.split(r"[,;\s]+", str(given)[:4000]) if w]
        pairs = [(name, value) for name, _, value in (w.rpartition("=") for w in words)]
    if len(pairs) > _MOST_DIMS:
        raise RefusalError(400, f"at most {_MOST_DIMS} sizes may be given")
    return {n: _size(n, v) for n, v in pairs if n}, next((_size("dims", v) for n, v in pairs if not n), None)


def _size(name: str, value: Any) -> int:
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= _LARGEST_DIM:
        raise RefusalError(
            400, f"a size must be a whole number from 1 to {_LARGEST_DIM}, as in 'batch=8, seq=128': '{_short(name)}' has none"
        )
    return int(text)


def _short(value: Any) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text if len(text) <= 60 else text[:59] + "…"
