"""Kinds: what values options may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cgorl.config.files import ConfigError

OPEN = ("dims", "zoo")


def check(options: Mapping[str, Any]) -> None:
    """Raises ConfigError where an option has a value of the wrong kind; options that it does not know are not looked at."""
    for key in OPEN:
        if not isinstance(options.get(key, {}), Mapping):
            raise ConfigError(f"{key} must be names with values, as {key}.NAME=8, not {options[key]!r}")
    given = {**options, **{f"dims.{k}": v for k, v in options.get("dims", {}).items()}}
    for key, value in given.items():
        kind, good = _KINDS.get("dims." if key.startswith("dims.") else key, ("", None))
        if good is not None and not good(value):
            raise ConfigError(f"{key} must be {kind}, not {value!r}")


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least


def _or_null(good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: v is None or good(v)


def number(value: Any) -> bool:
    """Whether it is a number of at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "simplify": ("true or false", lambda v: isinstance(v, bool)),
    "prove": ("true or false", lambda v: isinstance(v, bool)),
    "gate": ("true, false or auto", lambda v: isinstance(v, bool) or v == "auto"),
    "gate_seconds": ("a number of at least 0", number),
    "ledger_seconds": ("a number of at least 0", number),
    "seed": ("a whole number of at least 0", _whole(0)),
    "checkpoint": ("the name of a file, or null", _or_null(lambda v: isinstance(v, str))),
    "versus": ("the name of a search, or null", _or_null(lambda v: isinstance(v, str))),
    "exit_codes": ("plain or detailed", lambda v: v in ("plain", "detailed")),
    "seconds": ("a number of at least 0, or null", _or_null(number)),
    "expansions": ("a whole number of at least 0, or null", _or_null(_whole(0))),
    "evaluations": ("a whole number of at least 0, or null", _or_null(_whole(0))),
    "push": ("true or false", lambda v: isinstance(v, bool)),
    "source": ("jsonl or wandb", lambda v: v in ("jsonl", "wandb")),
    "figures": ("svg, png, pdf or null", lambda v: v in ("svg", "png", "pdf", None)),
    "axis": ("the name of a metric, or null", _or_null(lambda v: isinstance(v, str))),
    "title": ("text, or null", _or_null(lambda v: isinstance(v, str))),
    "entity": ("a name, or null", _or_null(lambda v: isinstance(v, str))),
    "project": ("a name", lambda v: isinstance(v, str) and bool(v)),
    "shown": ("a whole number of at least 1", _whole(1)),
    "instances": ("a whole number of at least 1", _whole(1)),
    "models": ("a list of files or names, as models=[a.onnx,b.onnx]", lambda v: isinstance(v, list)),
    "dims.": ("a whole number of at least 1", _whole(1)),
    "unbound": ("a whole number of at least 1, or null", _or_null(_whole(1))),
}
