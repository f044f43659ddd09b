"""Course: what every search does round its own idea: the best so far, the budget, the checkpoint and the way back to a graph."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.ir.seldom import seldom_collected
from cgorl.rules.rule_set import RuleSet
from cgorl.search.checkpoint import Checkpoint, Record
from cgorl.search.runners_up import MOST, runners_up
from cgorl.search.searcher import Budget, Meter, SearchResult
from cgorl.search.state import State
from cgorl.search.way import Way

Number = Callable[[State | Way], int]
"""Under which number a checkpoint keeps the way to a state."""


class Course:
    """A search under way. A searcher keeps all that it needs to go on in what it tells `pause`, and finds it in `memory`."""

    def __init__(self, start: State, meter: Meter, checkpoint: Checkpoint | None, record: Record | None) -> None:
        """Begins at `start`, or where `record` says that the search was."""
        self.start, self.meter, self._checkpoint = start, meter, checkpoint
        self._paid = Meter(Budget(), None)  # what is made again was counted when it was made first
        self.memory: Mapping[str, Any] = record.memory if record else {}
        self._ways = record.ways if record else []
        self.best = self.state(record.best) if record else start
        self.runners_up: tuple[Way, ...] = tuple(self._ways[n] for n in record.runners_up) if record else ()
        if not record:
            self.offer(start)

    @property
    def rules(self) -> RuleSet:
        """The rules that the search may use."""
        return self.start.found.rules

    @property
    def cost(self) -> CostModel:
        """The prices of the search."""
        return self.start.cost

    def offer(self, state: State) -> bool:
        """Takes `state` for the best if it is better; tells the listener either way."""
        better = state.way.better(self.best.way)
        if better:
            self.best, before = state, self.best
            self.runners_up = runners_up(state.way, (*self.runners_up, before.way))
        elif len(self.runners_up) < MOST or state.way.better(self.runners_up[-1]):
            self.runners_up = runners_up(self.best.way, (*self.runners_up, state.way))
        self.meter.tell(self.best.cost_ms, self.best.way.length)
        return better

    def pause(self, memory: Callable[[Number], dict[str, Any]]) -> str:
        """The limit that is reached, empty while there is room; called where a search can be taken up again from `memory`."""
        spent = self.meter.limit()
        if self._checkpoint is not None and self.meter.whole and (spent or self._checkpoint.due):
            self._checkpoint.save(self.meter, self.best.way, self.runners_up, memory)
        return spent

    def way(self, number: int) -> Way:
        """A way by its number in the checkpoint."""
        return self._ways[number]

    def state(self, number: int) -> State:
        """A state by its number in the checkpoint, made again from the first graph."""
        return self.revived(self._ways[number], {})

    def at(self) -> State:
        """The state that the memory calls `at`; the first one where nothing is remembered."""
        return self.state(self.memory["at"]) if self.memory else self.start

    def revived(self, way: Way, near: Mapping[Way, State]) -> State:
        """The expanded state at the end of a way, made again from the nearest one that is there."""
        missing: list[Way] = []
        at: Way = way
        while at.before is not None and at not in near:
            missing.append(at)
            at = at.before
        state = near.get(at, self.start)
        for step in reversed(missing):
            state = state.after(step.match(state.found.at(step.nodes[0])), self._paid)
            state.way = step
        return state


@contextmanager
def _orderly(meter: Meter) -> Iterator[None]:
    """Where a search is kept, the first Ctrl-C stops it where it can be taken up again; the second at once."""
    if not meter.patient or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: Any) -> None:
        if meter.asked:
            raise KeyboardInterrupt
        meter.asked = True

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def anytime(
    graph: Graph,
    rules: RuleSet,
    cost: CostModel,
    meter: Meter,
    work: Callable[[Course], str],
    checkpoint: Checkpoint | None = None,
) -> SearchResult:
    """The result of a search from `graph`: `work` offers states and says what stopped it; an interrupt keeps the best so far.

    Raises CheckpointError where the checkpoint is of another search.
    """
    initial = cost.cost_ms(graph)
    course: Course | None = None
    record = checkpoint.load(graph, rules, cost) if checkpoint is not None else None
    meter.patient = checkpoint is not None
    try:
        start = State.start(graph, rules, cost, Meter(Budget(), None) if record else meter)
        _ = graph.key  # weights are read for it once: this belongs to the first graph, not to the second
        if record:
            meter.resume(record.expansions, record.evaluations, record.seconds)
        course = Course(start, meter, checkpoint, record)
        with _orderly(meter), seldom_collected():
            stopped = record.ended if record and record.ended else work(course)
        if checkpoint is not None and not meter.limit():
            checkpoint.save(meter, course.best.way, course.runners_up, lambda number: {}, stopped)
    except KeyboardInterrupt:
        stopped = "interrupted"
    if course is None:
        return SearchResult(graph, initial, initial, (), meter.expansions, meter.evaluations, meter.seconds, stopped)
    end = course.best
    trace = end.way.trace(graph)
    spent = meter.expansions, meter.evaluations, meter.seconds
    return SearchResult(end.graph, cost.cost_ms(end.graph), initial, trace, *spent, stopped, course.runners_up)
