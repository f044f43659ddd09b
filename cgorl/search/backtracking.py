"""Backtracking: TASO's cost-based search, the cheapest graph first, with room to get worse before it gets better."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from cgorl.search.course import Course
from cgorl.search.method import Method
from cgorl.search.searcher import check
from cgorl.search.state import State
from cgorl.search.way import Way


class _Entry(NamedTuple):
    """A rewrite to try: number `k` of the matches, best first, of the graph at the end of `way`, which will cost `cost_ms`.

    One that was put off waits until none is left that was not. Of the matches after it those in `skip` are passed over;
    those in `asleep` sleep in what it leads to. Sets of matches are bits, by the same numbers.
    """

    put_off: bool
    cost_ms: float
    serial: int
    way: Way
    k: int
    skip: int
    asleep: int


@dataclass(frozen=True, slots=True)
class Backtracking(Method):
    """Algorithm 2 of TASO (SOSP 2019).

    The cheapest entry of a queue is expanded; each rewrite of it is queued if its cost is below `alpha` times the best and
    its graph runs at most `growth` times the nodes of the first. Graphs are told apart exactly, by key. Rewrites that do not
    touch each other are tried in one order only (sleep sets): largest gain first, which is the cheapest way through them
    all, so nothing that `alpha` lets pass is lost. Equal costs go to the newest entry.

    With `focus`, a graph that is no better than one on the way to it tries first what that one could not do yet, and a graph
    from which a gain was left out that it could still have is left for later; what is put off waits until the queue holds
    nothing else. Otherwise n rewrites far from each other are 2^n graphs to see before the first that costs a little more.
    `focus=False` is TASO's own order.

    Memory: of each expanded graph its key and its last rewrite (about 1 kB), and the `live` most recent whole (about 100 kB
    each; one that is needed again is made again). The queue has one entry a graph, and at most `queue`, the cheapest.
    """

    alpha: float = 1.05
    growth: float = 2.0
    queue: int = 200_000
    focus: bool = True
    live: int = 1_000

    def __post_init__(self) -> None:
        """Raises SearchError for a parameter that cannot be."""
        check(self, {"alpha": 1.0, "growth": 1.0, "queue": 1, "live": 1}, whole=("queue", "live"))

    def search(self, course: Course) -> str:
        """See `Method`."""
        heap: list[_Entry] = []
        seen: dict[str, tuple[Way, int]] = {}
        live: OrderedDict[Way, State] = OrderedDict()
        serial = 0

        def hold(state: State) -> State:
            live[state.way] = state
            live.move_to_end(state.way)
            if len(live) > self.live:
                live.popitem(last=False)
            return state

        def push(state: State, k: int, skip: int, asleep: int, put_off: bool) -> None:
            """Queues the first match of `state` from number `k` on that is not skipped; its turn will queue the next."""
            nonlocal serial, heap
            order = state.best_first()
            while k < len(order) and skip >> k & 1:
                k += 1
            if k < len(order):
                serial -= 1
                heapq.heappush(heap, _Entry(put_off, state.cost_ms - state.gain(order[k]), serial, state.way, k, skip, asleep))
            if len(heap) > self.queue:
                heap = heapq.nsmallest(self.queue // 2, heap)

        if told := course.memory:
            serial = told["serial"]
            heap.extend(_Entry(p, c, n, course.way(w), k, int(skip, 16), int(asleep, 16)) for p, c, n, w, k, skip, asleep in told["heap"])
            seen.update((key, (course.way(w), int(asleep, 16))) for key, (w, asleep) in told["seen"].items())
        else:
            seen[course.start.graph.key] = course.start.way, 0
            push(hold(course.start), 0, 0, 0, False)
        while heap:
            if spent := course.pause(
                lambda number: {
                    "serial": serial,
                    "heap": [(e.put_off, e.cost_ms, e.serial, number(e.way), e.k, f"{e.skip:x}", f"{e.asleep:x}") for e in heap],
                    "seen": {key: (number(way), f"{asleep:x}") for key, (way, asleep) in seen.items()},
                }
            ):
                return spent
            entry = heapq.heappop(heap)
            if entry.cost_ms >= self.alpha * course.best.cost_ms:
                if entry.put_off:
                    break
                continue  # all that follows of this graph costs more, but what was put off may not
            parent = hold(course.revived(entry.way, live))
            order, k = parent.best_first(), entry.k
            push(parent, k + 1, entry.skip, entry.asleep, entry.put_off)
            child = parent.step(order[k])
            key = child.graph.key
            if key in seen:
                twin, asleep = seen[key]
                if asleep:  # reached another way: what slept because of the first way may not sleep any more
                    seen[key] = twin, 0
                    push(hold(course.revived(twin, live)), 0, ~asleep, 0, True)
            elif child.way.size <= self.growth * course.start.way.size:
                hold(child.expand(course.meter))
                course.offer(child)
                tried = entry.asleep | ((1 << k) - 1) & ~entry.skip
                sleepers = {m for i, m in enumerate(order) if tried >> i & 1}
                asleep = sum(1 << i for i, m in enumerate(child.best_first()) if m in sleepers)
                base = child.way.base()
                if not self.focus:
                    push(child, 0, asleep, asleep, False)
                elif base is not child.way:  # no better yet: first what was not there before
                    known = course.revived(base, live).moves()
                    old = sum(1 << i for i, m in enumerate(child.best_first()) if child.move(m) in known)
                    push(child, 0, asleep | old, asleep, False)
                    push(child, 0, asleep | ~old, asleep, True)
                elif entry.way.base() is not entry.way:  # a way up and down has come out lower: from here all is open again
                    asleep = 0
                    push(child, 0, 0, 0, False)
                else:  # a gain left out on the way here would be there still: that graph costs more than with it
                    worse = any(child.gain(m) > 1e-12 for i, m in enumerate(child.best_first()) if asleep >> i & 1)
                    push(child, 0, asleep, asleep, worse)
                seen[key] = child.way, asleep
        return "queue empty"
