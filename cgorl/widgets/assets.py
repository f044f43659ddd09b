"""The JavaScript and CSS of widgets: plain modules in cgorl/assets, put into one text, since a widget is one module."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.M)


@cache
def text(name: str) -> str:
    """The contents of a file of cgorl/assets."""
    return (resources.files("cgorl") / "assets" / name).read_text(encoding="utf-8")


@cache
def module(name: str) -> str:
    """A module of cgorl/assets with all that it imports, as one module that imports nothing and exports what that one does.

    Modules import each other as `import { a, b } from "./other.js";`, and no two have a top-level name in common.
    """
    return "\n".join([*(re.sub(r"^export ", "", _body(n), flags=re.M) for n in modules(name)[:-1]), _body(name)])


def modules(name: str) -> list[str]:
    """The modules that `name` needs, each after those that it imports, itself last."""
    found: dict[str, None] = {}
    for needed in _IMPORT.findall(text(name)):
        found.update(dict.fromkeys(modules(needed)))
    return [*found, name]


def _body(name: str) -> str:
    return _IMPORT.sub("", text(name))
