"""Method: the protocol of a search written once, for methods that are one walk from the first graph and can be taken up again."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.checkpoint import Checkpoint
from cgorl.search.course import Course, anytime
from cgorl.search.searcher import Budget, Listener, Meter, SearchResult


class Method:
    """A `Searcher` whose idea is in `search`."""

    __slots__ = ()

    def __call__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel,
        budget: Budget,
        listen: Listener | None = None,
        checkpoint: Path | None = None,
    ) -> SearchResult:
        """Runs the search; see `Searcher`."""
        kept = Checkpoint(checkpoint, self) if checkpoint else None
        return anytime(graph, rules, cost, Meter(budget, listen), self.search, kept)

    @abstractmethod
    def search(self, course: Course) -> str:
        """Offers states to `course` from its start, or from what its memory holds, and says what stopped it."""
