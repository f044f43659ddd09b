"""Checkpoint: a file from which a search goes on as if it had never stopped."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgorl.cost.model import CostModel
from cgorl.ir.graph import Graph
from cgorl.rules.rule_set import RuleSet
from cgorl.search.searcher import Meter, SearchError
from cgorl.search.way import Way

if TYPE_CHECKING:
    from cgorl.search.state import State


class CheckpointError(SearchError):
    """A checkpoint that cannot be read or written, or is of another search; the message names the file."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a checkpoint says: what was spent, the best way and the next best, what ended the search if it had, and its memory."""

    expansions: int
    evaluations: int
    seconds: float
    best: int
    runners_up: tuple[int, ...]
    ended: str
    memory: Mapping[str, Any]
    ways: list[Way]


class Checkpoint:
    """Keeps a search in `path`: at the start, then at most once in `every` seconds, and where it ends.

    JSON behind its own digest, written whole or not at all.
    """

    def __init__(self, path: Path, searcher: object, every: float = 10.0) -> None:
        """For a search by `searcher`, whose parameters are part of what must be the same."""
        self.path, self._method, self._every = path, repr(searcher), every
        self._about: dict[str, str] = {}
        self._saved = -math.inf

    @property
    def due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._saved >= self._every

    def load(self, graph: Graph, rules: RuleSet, cost: CostModel) -> Record | None:
        """What the file says of a search from `graph`; None if there is no file yet. Raises CheckpointError."""
        self._about = {"settings": self._method, "model or clean-up": graph.key, "rules": rules.digest, "prices": cost.digest}
        if not self.path.exists():
            return None
        try:
            digest, _, text = self.path.read_text().partition("\n")
        except UnicodeDecodeError:
            digest = text = ""
        except OSError as e:
            raise CheckpointError(f"cannot read the checkpoint '{self.path}': {e.strerror or e}") from None
        if digest != _digest(text):
            raise CheckpointError(f"'{self.path}' is no checkpoint of a search, or was changed by hand: name another file, or delete it")
        told = json.loads(text)
        about = told["about"]
        for what, now in self._about.items():
            if about.get(what) != now:
                raise CheckpointError(
                    f"'{self.path}' is of a search with other {what}: name another file, or delete it to begin anew"
                    + (f" (there {about.get(what)}, here {now})" if what == "settings" else "")
                )
        by_name = {r.name: r for r in rules}
        ways = [Way(cost.cost_ms(graph), told["size"])]
        for before, rule, nodes, cost_ms, size in told["ways"]:
            ways.append(Way(cost_ms, size, ways[before], by_name[rule], tuple(nodes)))
        spent, next_best = told["spent"], tuple(told.get("runners_up", ()))  # files of earlier versions lack these
        so_far = spent["expansions"], spent["evaluations"], spent["seconds"]
        return Record(*so_far, told["best"], next_best, told["ended"], told["memory"], ways)

    def save(
        self,
        meter: Meter,
        best: Way,
        runners_up: Sequence[Way],
        memory: Callable[[Callable[[State | Way], int]], dict[str, Any]],
        ended: str = "",
    ) -> None:
        """Writes the file. Raises CheckpointError."""
        numbers: dict[Way, int] = {}
        ways: list[tuple[int, str, tuple[int, ...], float, int]] = []

        def number(at: State | Way) -> int:
            way = at if isinstance(at, Way) else at.way
            steps = []
            while way.before is not None and way not in numbers:
                steps.append(way)
                way = way.before
            for step in reversed(steps):
                assert step.before is not None and step.rule is not None
                ways.append((numbers.get(step.before, 0), step.rule.name, step.nodes, step.cost_ms, step.size))
                numbers[step] = len(ways)
            return numbers.get(at if isinstance(at, Way) else at.way, 0)

        first = best
        while first.before is not None:
            first = first.before
        told = {
            "about": self._about,
            "spent": {"expansions": meter.expansions, "evaluations": meter.evaluations, "seconds": meter.seconds},
            "size": first.size,
            "best": number(best),
            "runners_up": [number(way) for way in runners_up],
            "ended": ended,
            "memory": memory(number),
            "ways": ways,
        }
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(told, separators=(",", ":"))
            part.write_text(f"{_digest(text)}\n{text}")
            part.replace(self.path)
        except OSError as e:
            part.unlink(missing_ok=True)
            raise CheckpointError(f"cannot write the checkpoint '{self.path}': {e.strerror or e}") from None
        self._saved = time.monotonic()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
