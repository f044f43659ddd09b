"""Rules: the rules that a configuration chooses by name or tag."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgorl.config.files import ConfigError
from cgorl.config.kinds import number

if TYPE_CHECKING:
    from cgorl.rules.rule import Rule
    from cgorl.rules.rule_set import RuleSet


def rule_set(node: Mapping[str, Any]) -> RuleSet:
    """The rules whose name or a tag is in `include` ("*": all) and not in `exclude`. Raises ConfigError.

    Of the library; of TASO's where there is a key `file` (a rule file of TASO, or null). Those of a text file that `own` names
    come behind them, included or not.
    """
    from cgorl.rules.pattern import RuleError  # not before they are asked for: `--help` does without
    from cgorl.rules.rule_set import RuleSet
    from cgorl.rules.taso import IMPORT_TAGS, taso_rules
    from cgorl.rules.text import library

    try:
        rules = taso_rules(node["file"]) if "file" in node else library()
    except RuleError as e:
        raise ConfigError(str(e)) from None
    for key in ("include", "exclude"):
        if not isinstance(node[key], list):
            raise ConfigError(f"rules.{key} must be a list, as rules.{key}=[layout], not {node[key]!r}")
    if not number(node["growth"]):
        raise ConfigError(f"rules.growth must be a number of at least 0, not {node['growth']!r}")
    known = {r.name for r in rules} | {t for r in rules for t in r.tags} | {"*"} | (IMPORT_TAGS if "file" in node else frozenset())
    _known([*node["include"], *node["exclude"]], known)
    chosen = tuple(r for r in rules if _named(r, node["include"]) and not _named(r, node["exclude"]))
    own = _own(node.get("own"), {r.name for r in rules})
    return RuleSet((*chosen, *own), float(node["growth"]))


def _own(file: Any, taken: Set[str]) -> tuple[Rule, ...]:
    """The rules in a file of one's own (see `cgorl.rules.text`); none for null. Raises ConfigError."""
    from cgorl.rules.pattern import RuleError
    from cgorl.rules.text import parse_rules

    if file is None:
        return ()
    try:
        found = parse_rules(Path(str(file)).read_text(encoding="utf-8"), str(file), "own")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"rules.own: '{file}' cannot be read: {getattr(e, 'strerror', None) or 'it is not text'}") from None
    except RuleError as e:
        raise ConfigError(str(e)) from None
    if not found:
        raise ConfigError(f"rules.own: there is no rule in '{file}'")
    if twice := [r.name for r in found if r.name in taken]:
        raise ConfigError(f"{file}: there is a rule '{twice[0]}' already: give yours another name")
    return found


def narrowed(rules: RuleSet, words: Sequence[str]) -> RuleSet:
    """Those of the rules whose name or a tag is among `words`; all if there are none. Raises ConfigError for an unknown word."""
    from dataclasses import replace

    _known(words, {r.name for r in rules} | {t for r in rules for t in r.tags})
    return replace(rules, rules=tuple(r for r in rules if _named(r, words))) if words else rules


def _known(words: Sequence[str], known: Set[str]) -> None:
    for word in words:
        if word not in known:
            near = difflib.get_close_matches(word, known, 1)
            raise ConfigError(f"there is no rule or tag '{word}'" + (f"; did you mean '{near[0]}'?" if near else ""))


def _named(rule: Rule, words: Sequence[str]) -> bool:
    return any(w == "*" or w == rule.name or w in rule.tags for w in words)
