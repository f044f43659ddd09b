"""Rules as text: one block a rule, blank lines between (see `Rule`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

from cgorl.rules.conditions import CONDITIONS
from cgorl.rules.functions import FUNCTIONS
from cgorl.rules.pattern import Apply, Each, RuleError, Term, Var, operator, parse_terms, walk
from cgorl.rules.rule import Rule

_HEADER = re.compile(r"rule ([\w-]+):\s*([\w\- ]*)$")
_PART = re.compile(r"^\s*(=>|where |if |shared |for )")


def parse_rules(text: str, origin: str = "text", provenance: str = "hand") -> tuple[Rule, ...]:
    """The rules that `text` spells. Raises RuleError naming `origin` and the rule."""
    rules: list[Rule] = []
    for block in re.split(r"\n\s*\n", text):
        if any(line.strip() and not line.startswith("#") for line in block.splitlines()):
            try:
                rules.extend(_parse(b, provenance) for b in _variants(block))
            except RuleError as e:
                raise RuleError(f"{origin}: {e}") from None
    names = [r.name for r in rules]
    for name in names:
        if names.count(name) > 1:
            raise RuleError(f"{origin}: rule '{name}' is there twice")
    return tuple(rules)


@cache
def library() -> tuple[Rule, ...]:
    """Every rule of the project's own text files, files by name, rules in their order."""
    folder = resources.files("cgorl.rules") / "library"
    found: list[Rule] = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".rules"):
            found.extend(parse_rules(file.read_text(), file.name))
    return tuple(found)


def _variants(block: str) -> Iterator[str]:
    """The block once for each word of its line `for NAME in Word, ...`, with NAME replaced and the word in the rule's name."""
    lines = block.splitlines()
    loop = next((line for line in lines if line.strip().startswith("for ")), None)
    if loop is None:
        yield block
        return
    name, _, words = loop.strip()[4:].partition(" in ")
    for word in (w.strip() for w in words.split(",")):
        text = "\n".join(line for line in lines if line is not loop)
        text = re.sub(rf"\b{re.escape(name.strip())}\b", word, text)
        yield re.sub(r"^rule ([\w-]+):", rf"rule \1-{word.lower()}:", text, count=1, flags=re.M)


def _parse(block: str, provenance: str) -> Rule:
    lines = block.strip("\n").splitlines()
    doc = "\n".join(line[1:].strip() for line in lines if line.startswith("#"))
    body = [line for line in lines if not line.startswith("#")]
    head = _HEADER.match(body[0].strip())
    if head is None:
        raise RuleError(f"'{body[0].strip()}' should read 'rule NAME: TAG ...'")
    name, tags = head[1], tuple(head[2].split())
    parts: dict[str, list[str]] = {"source": [""]}
    at = "source"
    for line in body[1:]:
        if key := _PART.match(line):
            at = key[1].strip()
            parts.setdefault(at, []).append("")
            line = line[key.end() :]
        parts[at][-1] += line + "\n"
    try:
        return _checked(name, tags, parts, doc, provenance)
    except RuleError as e:
        raise RuleError(f"rule '{name}': {e}") from None


def _checked(name: str, tags: tuple[str, ...], parts: dict[str, list[str]], doc: str, provenance: str) -> Rule:
    source = parse_terms(parts["source"][0])
    for root in source:
        if not isinstance(root, Apply | Each) or not operator(root).is_operator:
            raise RuleError("a source must be an operator")
    if len(source) > 1 and any(isinstance(root, Each) for root in source):
        raise RuleError("a repeated root must be the only one")
    if len(parts.get("=>", [])) != 1:
        raise RuleError("there must be one '=>'")
    target = parse_terms(parts["=>"][0])
    where = tuple(_where(w) for w in parts.get("where", []))
    listed = ",".join(parts.get("if", []))
    conditions = tuple(_conditions(listed)) if listed else ()
    shared = tuple(s.strip() for s in ",".join(parts.get("shared", [])).split(",") if s.strip())
    known = {n for root in source for n in _names(root)} | {n for n, _ in where}
    for term in (*target, *(t for _, t in where), *conditions):
        for used in _names(term):
            if used not in known:
                raise RuleError(f"'{used}' is used but not bound by the source")
        for inner in walk(term):
            if isinstance(inner, Apply) and not inner.is_operator and inner.op not in FUNCTIONS and term not in conditions:
                raise RuleError(f"there is no function '{inner.op}'; there are {', '.join(sorted(FUNCTIONS))}")
    for c in conditions:
        if c.op not in CONDITIONS:
            raise RuleError(f"there is no condition '{c.op}'; there are {', '.join(sorted(CONDITIONS))}")
    for label in shared:
        if label not in known:
            raise RuleError(f"shared label '{label}' is not in the source")
    return Rule(name, tags, source, target, where, conditions, shared, provenance, doc)


def _where(text: str) -> tuple[str, Term]:
    name, _, rest = text.partition("=")
    return name.strip(), parse_terms(f"{rest}," if rest.strip().startswith("*") else rest)[0]


def _conditions(text: str) -> Iterator[Apply]:
    for a in parse_terms(text):
        if isinstance(a, Var):
            a = Apply(a.name, ())
        if not isinstance(a, Apply):
            raise RuleError(f"'{a}' is not a condition")
        yield a


def _names(term: Term) -> Iterator[str]:
    for t in walk(term):
        if isinstance(t, Var) and t.name != "_":
            yield t.name
        if isinstance(t, Apply):
            yield from (n for n in (t.rest, t.label) if n)
