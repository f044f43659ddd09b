"""Method: the protocol of a search written once, for those whose idea is a course from the first graph."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from cgorl.cost.model import CostModel, waited
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.checkpoint import Checkpoint
from cgorl.search.course import Course, anytime
from cgorl.search.searcher import Budget, Listener, Meter, SearchError, SearchResult


class Method:
    """A `Searcher` whose idea is in `search`."""

    __slots__ = ()

    anew: ClassVar[str] = ""
    """What the search is called, of one that begins anew each time and keeps no checkpoint."""

    def __call__(
        self,
        graph: Graph,
        rules: RuleSet,
        cost: CostModel,
        budget: Budget,
        listen: Listener | None = None,
        checkpoint: Path | None = None,
    ) -> SearchResult:
        """Runs the search; see `Searcher`. Raises SearchError for a checkpoint of a search that keeps none."""
        if checkpoint is not None and self.anew:
            raise SearchError(f"search={self.anew} cannot be taken up from a checkpoint of a search: it begins anew each time")
        self.prepare()
        kept = Checkpoint(checkpoint, self) if checkpoint else None
        return anytime(graph, rules, cost, Meter(budget, listen, lambda: waited(cost)), self.search, kept)

    def prepare(self) -> None:
        """What takes time and is no part of the search: done before its clock starts."""

    @abstractmethod
    def search(self, course: Course) -> str:
        """Offers states to `course` from its start, or from what its memory holds, and says what stopped it."""
