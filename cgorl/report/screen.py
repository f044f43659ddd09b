"""An optimization on a terminal: progress while it works, then tables."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from cgorl.certificate.equivalence import Equivalence
from cgorl.certificate.pair import TOLERANCES
from cgorl.ir.graph import Graph
from cgorl.pipeline import Outcome, Stage
from cgorl.report.ledger import count, largest
from cgorl.report.speed import measured_share, speed
from cgorl.rules.matches import constant_bytes
from cgorl.search.searcher import LIMITS, Budget
from cgorl.search.searcher import Progress as SearchProgress

_SHOWN = 12


class Screen:
    """Shows stages as they pass; on something that is no terminal, one line a stage and one each ten seconds."""

    def __init__(self, console: Console, budget: Budget | None = None) -> None:
        """Writes to `console`; `budget` is what the search may spend."""
        self.console, self._budget = console, budget or Budget()
        self._bar = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[text]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("load", total=None, text="")
        self._stage = "load"
        self._told = time.monotonic()

    def __enter__(self) -> Screen:
        """Starts the display."""
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the display."""
        if self.console.is_terminal:
            self._bar.stop()

    @property
    def tell(self) -> Stage:
        """The callback that a job reports to."""
        return self._tell

    def _tell(self, stage: str, progress: SearchProgress | float | None) -> None:
        text, share = "", None
        if isinstance(progress, SearchProgress):
            text, share = pace(progress, self._budget)
        elif progress is not None:
            text, share = f"{100 * progress:.0f} %", progress
        if self.console.is_terminal:
            self._bar.update(self._task, description=stage, text=text, total=None if share is None else 1.0, completed=share or 0.0)
        elif stage != self._stage or time.monotonic() - self._told > 10:
            self.console.print(f"{stage} ... {text}".rstrip(), highlight=False)
            self._told = time.monotonic()
        self._stage = stage


def pace(progress: SearchProgress, budget: Budget) -> tuple[str, float | None]:
    """How a search goes, in words, and the share spent of the limit that is nearest; None without a limit."""
    p = progress
    rate = f" ({p.expansions / p.seconds:,.0f}/s)" if p.seconds > 0 else ""
    text = f"best {p.best_ms:.{decimals(p.best_ms)}f} ms; {p.expansions:,} expanded{rate}, {p.evaluations:,} priced"
    limits = ((p.seconds, budget.seconds), (p.expansions, budget.expansions), (p.evaluations, budget.evaluations))
    shares = [min(1.0, spent / limit) for spent, limit in limits if limit]
    if not shares or not max(shares):
        return text, None
    left = math.ceil(p.seconds / max(shares) - p.seconds)
    return f"{text}; max {left // 60}:{left % 60:02d} left", max(shares)


def decimals(cost_ms: float) -> int:
    """As many digits behind the point as show a difference of a ten-thousandth of `cost_ms`."""
    return min(6, max(2, 4 - math.floor(math.log10(cost_ms)))) if cost_ms > 0 else 3


def show(outcome: Outcome, console: Console, folder: Path | None) -> None:
    """Prints the result: operators before and after, the largest rewrites, proof, files written with their size."""
    console.print(f"coverage  {outcome.coverage}", highlight=False)
    console.print(_operators(outcome))
    if outcome.trace:
        console.print(_rewrites(outcome))
    for line in lines(outcome):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for path in outcome.files:
        console.print(f"written   {path} ({path.stat().st_size / 1e6:,.1f} MB)", highlight=False, markup=False, soft_wrap=True)
    if folder is not None:
        console.print(f"run       {folder}", highlight=False, markup=False, soft_wrap=True)


def lines(outcome: Outcome) -> list[str]:
    """The result in a few plain lines."""
    before, after = outcome.initial_cost_ms, outcome.cost_ms
    change = f"{before:.3f} -> {after:.3f} ms" + (f" ({100 * (after / before - 1):+.1f} %)" if before else "")
    found = [f"nodes     {count(outcome.original)} -> {count(outcome.start)} simplified -> {count(outcome.graph)}"]
    if outcome.simplified:
        found.append("clean-up  " + ", ".join(f"{n} {what}" for what, n in outcome.simplified.items() if n))
    found.append(f"cost      {change}, estimated; {rewrites(len(outcome.trace))}; search stopped: {outcome.search.get('stopped', '')}")
    if "versus" in outcome.search:
        found.append("versus    " + _versus(outcome))
    a, b = constant_bytes(outcome.original), constant_bytes(outcome.graph)
    found.append(f"weights   {a / 1e6:,.1f} -> {b / 1e6:,.1f} MB")
    if outcome.unknown:
        shown = ", ".join(outcome.unknown[:3]) + (", ..." if len(outcome.unknown) > 3 else "")
        found.append(f"sizes     not all known, so the cost is a guess: {len(outcome.unknown)} values count 1 for a dim ({shown})")
    found.extend(f"prices    {note}" for note in outcome.notes)
    if outcome.gate is not None:
        found.extend(f"gate      {text}" for text in speed(outcome, outcome.gate))
    found.append("proof     " + _proof(outcome))
    for rule, why in outcome.proof.dropped:
        found.append(f"dropped   {rule}: {why}")
    for rule, why in outcome.proof.unproven:
        found.append(f"left out  {rule}: not proven, {why}")
    for rule in outcome.proof.lost:
        found.append(f"dropped   {rule}: rests on a dropped rewrite")
    found.append(f"status    {outcome.status.value}")
    return found


def rewrites(number: int) -> str:
    """So many rewrites, in words."""
    return f"{number} rewrite{'' if number == 1 else 's'}"


def _versus(outcome: Outcome) -> str:
    told = outcome.search
    other, mine = told["versus_ms"], outcome.cost_ms
    cut = f" (stopped: {told['versus_stopped']})" if told["versus_stopped"] in LIMITS else ""
    change = f"{100 * (mine / other - 1):+.2f} %" if other and abs(mine - other) > 1e-9 * other else "the same"
    digits = decimals(other)
    return f"{told['versus']} alone: {other:.{digits}f} ms{cut}, not proven; {told['name']} found {mine:.{digits}f} ms ({change})"


def _proof(outcome: Outcome) -> str:
    proof = outcome.proof
    if outcome.graph is outcome.original and proof.ok:
        return "the model is the original, untouched"
    if proof.whole is None:
        return "none (prove=false)"
    worst = max((p.error for p in proof.rewrites), default=0.0)
    good = sum(p.ok for p in proof.rewrites)
    text = f"{good} of {len(proof.rewrites)} rewrites re-run in float64 (largest error {worst:.0e}); " if proof.rewrites else ""
    whole = proof.whole
    if not whole.ok:
        return text + f"the whole DIFFERS: {whole.why}"
    if not whole.runs:
        return text + f"the whole was not run: {whole.skipped}"
    text += f"the whole agrees on {whole.runs} inputs, {whole.values} values watched ({_errors(whole)})"
    return text + (f", {whole.ties} ties" if whole.ties else "") + (f"; {whole.skipped}" if whole.skipped else "")


def _errors(whole: Equivalence) -> str:
    """The largest error of all that was watched, and that of the outputs if it lies in the middle.

    A value in the middle is of at least two bytes, so that beyond their tolerance float64 was asked.
    """
    out = max(whole.outputs.values(), default=whole.error)
    if out == whole.error:
        return f"largest error {out:.0e}"
    why = ", where the original is itself off from float64" if whole.error > TOLERANCES[2] else ""
    return f"largest error {whole.error:.0e}{why}; of the outputs {out:.0e}"


def _operators(outcome: Outcome) -> Table:
    before, after = _ops(outcome.original), _ops(outcome.graph)
    was, now = dict(outcome.before_ms), dict(outcome.after_ms)
    table = Table(title="operators", title_justify="left", header_style="bold")
    table.add_column("operator")
    for head in ("before", "after", "change", "ms before", "ms after"):
        table.add_column(head, justify="right")

    def row(label: str, ops: list[str], style: str = "") -> None:
        m, n = sum(before[o] for o in ops), sum(after[o] for o in ops)
        table.add_row(
            escape(label),
            str(m),
            str(n),
            f"{n - m:+d}" if n != m else "",
            _total(was, [o for o in ops if before[o]]),
            _total(now, [o for o in ops if after[o]]),
            style=style,
        )

    rows = sorted(before.keys() | after.keys(), key=lambda op: (-abs(after[op] - before[op]), -before[op], op))
    for op in rows[:_SHOWN]:
        row(op, [op])
    if len(rows) > _SHOWN:
        row(f"({len(rows) - _SHOWN} more)", rows[_SHOWN:])
    row("all", rows, "bold")
    return table


def _total(costs: Mapping[str, float], ops: list[str]) -> str:
    """The cost of those operators; a dash where that of one is not known."""
    return f"{sum(costs[o] for o in ops):.3f}" if all(o in costs for o in ops) else "-"


def _rewrites(outcome: Outcome) -> Table:
    table = Table(title="largest rewrites", title_justify="left", header_style="bold")
    for head in ("rule", "at"):
        table.add_column(head, overflow="fold")
    table.add_column("gain ms", justify="right")
    table.add_column("share", justify="right")
    looked_at = outcome.gate.shares if outcome.gate is not None else {}
    if looked_at:
        table.add_column("measured share", justify="right")
    graph, rows = outcome.start, []
    for step in outcome.trace:
        root = graph.nodes[step.match.root]
        rows.append((step.before_ms - step.after_ms, step.match.rule.name, root.name or next(iter(root.names), "") or root.op))
        graph = graph.replace(step.match.edit)
    total = outcome.initial_cost_ms or 1.0
    shown = sorted(largest(outcome, _SHOWN), key=lambda k: -rows[k][0])
    for k in shown:
        gain, rule, place = rows[k]
        measured = [measured_share(looked_at.get(k))] if looked_at else []
        table.add_row(rule, escape(place), f"{gain:.3f}", f"{100 * gain / total:.2f} %", *measured)
    if len(rows) > _SHOWN:
        rest = sum(row[0] for k, row in enumerate(rows) if k not in shown)
        table.add_row(f"({len(rows) - _SHOWN} more)", "", f"{rest:.3f}", f"{100 * rest / total:.2f} %")
    return table


def _ops(graph: Graph) -> Counter[str]:
    return Counter(n.label for n in graph.nodes.values() if not n.is_source and n.op != "SparseConstant")
