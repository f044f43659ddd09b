"""Content: what a report says, before it is a page or a report of W&B: both are written from this, and so tell the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cgorl.report.experiment.picture import Picture


class Text(NamedTuple):
    """A paragraph."""

    text: str


class Code(NamedTuple):
    """Lines as they stand; `folded` ones are opened by the reader."""

    title: str
    text: str
    folded: bool = False


class Table(NamedTuple):
    """Cells as text; those of the columns numbered in `numbers` stand at the right, rows numbered in `best` are in bold."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    best: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False


class Pictures(NamedTuple):
    """Figures beside each other; `metrics` are those that W&B can draw by itself, over its axis."""

    pictures: tuple[Picture, ...]
    metrics: tuple[str, ...] = ()
    axis: str = "global_step"


class Drawings(NamedTuple):
    """Graphs as whole SVG documents, each with what it is of."""

    drawings: tuple[tuple[str, str], ...]
    note: str = ""


Part = Text | Code | Table | Pictures | Drawings


class Section(NamedTuple):
    """A heading and what stands under it."""

    title: str
    parts: tuple[Part, ...]


class Report(NamedTuple):
    """All of it. W&B knows the runs by the names of their sweeps (`groups`), those of no sweep by their own (`runs`)."""

    title: str
    sections: tuple[Section, ...]
    groups: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    def tables(self) -> list[Table]:
        """Its tables in their order."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Table)]


def sections(*found: tuple[str, Sequence[Part | None]]) -> tuple[Section, ...]:
    """The sections that have something to say."""
    made = (Section(title, tuple(p for p in parts if p is not None and not _empty(p))) for title, parts in found)
    return tuple(s for s in made if s.parts)


def _empty(part: Part) -> bool:
    if isinstance(part, Table):
        return not part.rows
    if isinstance(part, Pictures):
        return not part.pictures
    return isinstance(part, Drawings) and not part.drawings
