"""TraceView: an optimization as a film, with what else could have been done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import traitlets

from cgorl.cost.measured import Measured
from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.pipeline import Outcome
from cgorl.report.film import Cut, Film
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import Scene, scene
from cgorl.report.whatif.branches import ALONE, GAIN, POLICY, TRACE, BranchError, Branches
from cgorl.report.whatif.candidates import candidates
from cgorl.report.whatif.guide import Guide
from cgorl.report.whatif.told import listed, reel, short
from cgorl.search.trace import TraceError
from cgorl.widgets.assets import module
from cgorl.widgets.source import prices
from cgorl.widgets.trace_picture import picture
from cgorl.widgets.trace_run import read
from cgorl.widgets.widget import Widget

_SLICE = 0.3
"""Seconds for which one message keeps the kernel busy going on with a branch; the browser asks again until it is done."""
_LONGEST = 200


class TraceView(Widget):
    """The rewrites of an optimization, one after another: `TraceView(result)`, `TraceView("runs/optimize/2026-...")`.

    `result` is what `cgorl.optimize` returns, or the folder of a run (or its trace.json). Each step shows what else could have
    been done and what that gains by the job's prices, or by `cost` (a cost model or a choice of conf/cost). The run of an agent, a
    training, and a `policy` (a file that scripts/train.py wrote) show the chances that it gives each, the value, and the bonus of
    its curiosity module where the file has one. A click on a candidate branches: `branches` are what came of that, `branch` the
    number of the one that is shown (0: what was done), and `what_if` does it from Python. `model` stands in for the run's model.
    Raises ConfigError, ModelError, TraceError, GuideError and AgentError.
    """

    _esm = module("trace_view.js")
    picture = traitlets.Bytes(b"").tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    asks = traitlets.Bool(False).tag(sync=True)
    guides = traitlets.List(traitlets.Unicode()).tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    branches = traitlets.List(traitlets.Dict()).tag(sync=True)
    branch = traitlets.Int(TRACE).tag(sync=True)

    def __init__(
        self,
        result: Outcome | str | Path,
        cost: CostModel | str | None = None,
        policy: str | Path | None = None,
        model: Graph | str | Path | None = None,
    ) -> None:
        note = ""
        if isinstance(result, Outcome):
            film, self._cost, ask = Film.of(result), prices(cost or result.cost, result.start), None
        else:
            film, self._cost, ask, note = read(Path(result), cost, model)
        if isinstance(self._cost, Measured):
            self._cost = replace(self._cost, seconds=0.0)  # to look measures nothing: what is missing is estimated
        if policy is not None:
            if self._cost is None:
                raise TraceError("a policy reads prices too: give the cost model of the run, as cost=...")
            guide, note = Guide(policy, film.rules), ""
            ask = lambda: guide  # noqa: E731
        self._branches: Branches | None = None
        if self._cost is not None:
            if film.steps and not _priced_by(film, self._cost):
                film, note = film.priced(self._cost), f"{note} costs are those of this view's prices, not of the run's".strip()
            self._branches = Branches(film, self._cost, ask)
        self._trace = film
        first = scene(film.graphs[0], self._cost)
        self._places = first.places()
        whole = packed(first, **reel(film, self._places), first=short(self._costs()[0]) if self._costs() else None)
        guides = ([POLICY] if ask is not None else []) + [GAIN]
        super().__init__(picture=whole, asks=self._branches is not None, guides=guides, note=note)
        self._list()
        self.on_msg(self._asked)

    def film(self, branch: int = TRACE) -> Film:
        """The film of a branch. Raises BranchError."""
        if self._branches is None or branch not in self._branches.all:
            if branch == TRACE:
                return self._trace
            raise BranchError(f"there is no branch {branch}")
        return self._branches.all[branch].film

    def candidates(self, step: int, branch: int | None = None) -> Mapping[str, Any]:
        """What can be done at a step (as `step` counts, from 0; after the last one too) of the branch shown, or of another.

        `rows` are the best, each with its rank, rule, where and gain_ms. Raises BranchError, GuideError, AgentError.
        """
        return candidates(self._priced(), self.branch if branch is None else branch, step)

    def what_if(self, step: int, candidate: int, by: str = GAIN, steps: int = 20, seconds: float = 10.0) -> int:
        """The number of the branch that does the candidate of that rank at that step of the branch shown; it is shown now.

        It goes on `by` the largest "gain", by the "policy", or not at all (""), for at most so many rewrites and seconds.
        Raises BranchError, GuideError, AgentError.
        """
        made = self._priced()
        row = next((r for r in self.candidates(step)["rows"] if r["rank"] == candidate), None)
        if row is None:
            raise BranchError(f"no candidate of rank {candidate} is listed at step {step}")
        number = made.off(self.branch, step, row["rule"], row["nodes"], by)
        made.go_on(number, steps if by else 0, seconds)
        self._list()
        self.branch = number
        self.renew()
        return number

    def drop(self, branch: int) -> None:
        """Takes a branch away, and those that came from it. Raises BranchError."""
        made = self._priced()
        parent = made.all[branch].parent if branch in made.all else TRACE
        made.drop(branch)
        if self.branch not in made.all:
            self.branch = parent
        self._list()
        self.renew()

    def _priced(self) -> Branches:
        if self._branches is None:
            raise BranchError("what else could have been done needs prices: give a cost model, as cost=...")
        return self._branches

    def _costs(self) -> list[float]:
        if self._branches is not None:
            return list(self._branches.costs_ms(TRACE))
        return self._trace.costs_ms

    def _list(self) -> None:
        self.branches = listed(self._branches) if self._branches is not None else []

    @traitlets.validate("branch")
    def _is_there(self, proposal: Mapping[str, Any]) -> int:
        self.film(proposal["value"])
        return int(proposal["value"])

    def _asked(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        kind, number = content.get("kind"), int(content.get("branch", TRACE))
        try:
            if kind == "step":
                k, film = int(content["step"]), self.film(number)
                if k in range(len(film.steps)):
                    about = {"kind": "step", "branch": number, "step": k}
                    self.send(about, [packed(self._drawn(c), c.marks) for c in film.around(k)])
            elif kind == "candidates":
                k = int(content["step"])
                self.send({"kind": "candidates", "branch": number, "step": k, **candidates(self._priced(), number, k)})
            elif kind == "film":
                self._reel(number, self._priced().all[number].at if number in self._priced().all else 0, 0, content)
            elif kind == "what_if":
                made, by, k = self._priced(), str(content["by"]), int(content["step"])
                number = made.off(number, k, str(content["rule"]), [int(i) for i in content["nodes"]], by)
                self._go_on(number, k, 0 if by == ALONE else content["steps"], content)
            elif kind == "go_on":
                self._go_on(number, len(self.film(number).steps), content["steps"], content)
            elif kind == "drop":
                self.drop(number)
        except ValueError as e:  # the sentence is for people
            self.send({"kind": "why", "about": kind, "branch": number, "step": content.get("step"), "text": str(e)})

    def _go_on(self, number: int, since: int, steps: int, content: Mapping[str, Any]) -> None:
        """Does some of the steps that are asked for, and sends them with how many are left."""
        made, steps = self._priced(), max(0, min(_LONGEST, int(steps)))
        left = steps - made.go_on(number, steps, _SLICE)
        left = 0 if made.all[number].ended else left
        self._list()
        self._reel(number, since, left, content)
        self.branch = number
        if not left:
            self.renew()

    def _reel(self, number: int, since: int, left: int, content: Mapping[str, Any]) -> None:
        told = reel(self.film(number), self._places, since)
        self.send({"kind": "film", "branch": number, "since": since, "left": left, "ask": content.get("ask"), **told})

    def _drawn(self, cut: Cut) -> Scene:
        return scene(cut.graph, self._cost, only=cut.nodes)

    def static(self) -> str:
        """The curve of the cost with those of the branches, how they compare, and of the branch shown its largest step and ledger."""
        return picture(self._trace, self._branches, self.branch, self._drawn, repr(self), self.note)

    def __repr__(self) -> str:
        """One line."""
        costs = self._costs()
        if not self._trace.steps:
            text = "no rewrite"
        else:
            many = "1 rewrite" if len(costs) == 2 else f"{len(costs) - 1} rewrites"
            text = f"{many}, {costs[0]:.4g} -> {costs[-1]:.4g} ms by the prices"
        more = len(self.branches) - 1
        return f"TraceView({text}" + (f"; {more} branch{'es' if more > 1 else ''}" if more > 0 else "") + ")"


def _priced_by(film: Film, cost: CostModel) -> bool:
    """Whether the film's costs are those of these prices."""
    ends = ((film.costs_ms[0], film.graphs[0]), (film.costs_ms[-1], film.graphs[-1]))
    return all(abs(cost.cost_ms(graph) - ms) <= 1e-6 * abs(ms) for ms, graph in ends)
