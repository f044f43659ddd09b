"""Rules, proofs, places and catalogues as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cgorl.report.rules.catalogue import Entry
from cgorl.report.rules.picture import picture
from cgorl.report.rules.places import Place
from cgorl.rules.proof import RuleProof
from cgorl.rules.rule import Rule

_NAMED = 6


class ListingError(ValueError):
    """A file that cannot be written; the message says which, and why."""


def show_rules(rules: Sequence[Rule], console: Console) -> None:
    """Prints a few rules whole, many as a table."""
    if len(rules) <= 3:
        for rule in rules:
            console.print(escape(str(rule)), highlight=False, soft_wrap=True)
            console.print(f"# provenance: {rule.provenance}\n", highlight=False)
        return
    table = _table("rule", "tags", "what it does", "conditions")
    for rule in rules:
        table.add_row(rule.name, " ".join(rule.tags), escape(rule.doc), escape(", ".join(map(str, rule.conditions))))
    console.print(table)
    console.print(f"{len(rules)} rules; name one to see it whole", highlight=False)


def draw(rules: Iterable[Rule], folder: Path) -> list[Path]:
    """The pictures written to `folder`, one a rule, and an index page of all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for rule in rules:
        path = folder / f"{rule.name}.svg"
        path.write_text(picture(rule), encoding="utf-8")
        written.append(path)
    page = "\n".join(f'<p><img src="{p.name}" alt="{p.stem}"></p>' for p in written)
    (folder / "index.html").write_text(f"<!doctype html><meta charset='utf-8'><title>Rules</title>\n{page}\n", encoding="utf-8")
    return [*written, folder / "index.html"]


def show_places(places: Sequence[Place], console: Console, shown: int) -> None:
    """Prints the matches with the largest gains, and how many there are of each rule."""
    table = _table("rule", "at", "gain ms", "weights")
    for p in places[:shown]:
        table.add_row(p.rule, escape(", ".join(p.nodes)), f"{p.gain_ms:+.4f}", f"{p.growth / 1e6:+.2f} MB")
    console.print(table)
    counts: dict[str, int] = {}
    for p in places:
        counts[p.rule] = counts.get(p.rule, 0) + 1
    each = ", ".join(f"{n} {rule}" for rule, n in sorted(counts.items(), key=lambda c: (-c[1], c[0])))
    console.print(f"{len(places)} matches: {each}" if places else "no rule matches", highlight=False)


def show_reasons(reasons: Sequence[tuple[str, str]], console: Console) -> None:
    """Prints for each rule why it does not match."""
    table = _table("rule", "why it does not match")
    for rule, why in reasons:
        table.add_row(rule, escape(why) if why else "[bold]it matches[/bold]")
    console.print(table)


def show_proofs(proofs: Sequence[RuleProof], console: Console) -> None:
    """Prints what the proof of each rule showed; the failed ones last, with their counterexample in words."""
    table = _table("rule", "instances", "to the bit", "largest error", "seconds", "")
    for p in sorted(proofs, key=lambda p: not p.ok):
        table.add_row(
            p.rule, f"{p.proven} of {p.matched}", str(p.exact), f"{p.error:.0e}", f"{p.seconds:.2f}", "" if p.ok else "NOT PROVEN"
        )
    console.print(table)
    for p in proofs:
        if not p.ok:
            console.print(f"{p.rule}: {p.why}", highlight=False, soft_wrap=True, markup=False)
    good = sum(p.ok for p in proofs)
    console.print(f"{good} of {len(proofs)} rules proven, {sum(p.proven for p in proofs)} instances", highlight=False)


def show_catalogue(entries: Sequence[Entry], console: Console) -> None:
    """Prints how often each rule matches and what it gains at best, then the rules that match nowhere."""
    table = _table("rule", "matches", "in models", "best gain ms", "best in")
    for e in sorted(entries, key=lambda e: -e.total):
        if e.total:
            table.add_row(e.rule, str(e.total), str(len(e.matches)), f"{e.best_ms:+.4f}", e.best_in)
    console.print(table)
    dead = [e.rule for e in entries if not e.total]
    console.print(f"{len(dead)} rules match nowhere here: {', '.join(dead) or 'none'}", highlight=False, soft_wrap=True)


def write_catalogue(entries: Sequence[Entry], path: Path, command: str) -> None:
    """Writes where each rule matches and what it gains at best as a table in Markdown, `command` on top. Raises ListingError."""
    lines = [
        "# Where each rule matches",
        "",
        f"Made by `{command}`.",
        "Graphs of the zoo at their default sizes, models, and blocks (`cgorl/zoo/blocks`); at the start, or after one rewrite by the",
        "first match of another rule. The gain is that of the best single rewrite, in ms; many rewrites only open the way for others.",
        "",
        "| rule | matches | best gain ms | best in | also in |",
        "|---|---|---|---|---|",
    ]
    for e in entries:
        others = [name for name in e.matches if name != e.best_in]
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        gain = f"{e.best_ms:+.4f}" if e.total else ""
        lines.append(f"| {e.rule} | {e.total} | {gain} | {e.best_in} | {', '.join(others[:_NAMED])}{more} |")
    dead = [e.rule for e in entries if not e.total]
    lines += ["", f"{len(dead)} of {len(entries)} rules match nowhere here: {', '.join(dead) or 'none'}.", ""]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
    except OSError as e:
        raise ListingError(f"'{path}' cannot be written: {e.strerror}") from None


def _table(*heads: str) -> Table:
    table = Table(header_style="bold")
    for head in heads:
        right = head in (
            "gain ms",
            "weights",
            "matches",
            "in models",
            "best gain ms",
            "instances",
            "to the bit",
            "largest error",
            "seconds",
        )
        table.add_column(head, justify="right" if right else "left", overflow="fold")
    return table
