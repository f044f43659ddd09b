"""Backtracking: TASO's cost-based search, the cheapest graph first, with room to get worse before it gets better."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule import Match
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult
from cgorl.search.state import Best, State, anytime

Entry = tuple[float, int, State, list[Match], int, frozenset[Match]]
"""Cost of the graph to come, minus a serial number, the state it comes from, that state's matches, which one, which sleep."""


@dataclass(frozen=True, slots=True)
class Backtracking:
    """Algorithm 2 of TASO (SOSP 2019).

    The cheapest entry of a queue is expanded; each rewrite of it is queued if its cost is below `alpha` times the best and
    its graph has at most `growth` times the nodes of the first. Graphs are told apart exactly, by key. Rewrites that do not
    touch each other are tried in one order only (sleep sets): largest gain first, which is the cheapest way through them
    all, so nothing that `alpha` lets pass is lost. Equal costs go to the newest entry. At most `queue` graphs with
    rewrites left to try are kept, the cheapest. Every expanded graph is remembered.
    """

    alpha: float = 1.05
    growth: float = 2.0
    queue: int = 200_000

    def __call__(self, graph: Graph, rules: RuleSet, cost: CostModel, budget: Budget, listen: Listener | None = None) -> SearchResult:
        """Runs the search; see `Searcher`."""
        meter = Meter(budget, listen)
        limit = self.growth * len(graph.nodes)
        heap: list[Entry] = []
        seen: dict[str, tuple[State, frozenset[Match]]] = {}
        serial = 0

        def push(state: State, order: list[Match], k: int, asleep: frozenset[Match]) -> None:
            """Queues the first match of `state` from number `k` on that is awake; its turn will queue the next."""
            nonlocal serial, heap
            while k < len(order) and order[k] in asleep:
                k += 1
            if k < len(order):
                serial -= 1
                heapq.heappush(heap, (state.cost_ms - state.gain(order[k]), serial, state, order, k, asleep))
            if len(heap) > self.queue:
                heap = heapq.nsmallest(self.queue // 2, heap)

        def work(start: State, best: Best) -> str:
            seen[start.graph.key] = (start, frozenset())
            push(start, start.best_first(), 0, frozenset())
            while heap:
                if spent := meter.spent():
                    return spent
                cost_ms, _, parent, order, k, asleep = heapq.heappop(heap)
                if cost_ms >= self.alpha * best.state.cost_ms:
                    break
                push(parent, order, k + 1, asleep)
                child = parent.step(order[k])
                key = child.graph.key
                if key in seen:
                    twin, sleeping = seen[key]
                    if sleeping:  # reached another way: what slept because of the first way may not sleep any more
                        seen[key] = (twin, frozenset())
                        push(twin, [m for m in twin.best_first() if m in sleeping], 0, frozenset())
                elif len(child.graph.nodes) <= limit:
                    child.expand(meter)
                    best.offer(child)
                    sleeping = frozenset(m for m in (*asleep, *order[:k]) if m in child.prices)
                    seen[key] = (child, sleeping)
                    push(child, child.best_first(), 0, sleeping)
            return "queue empty"

        return anytime(graph, rules, cost, meter, work)
