"""Context: what conditions and functions of rules may ask about a match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cgorl.ir.build import Builder
from cgorl.ir.graph import Graph
from cgorl.ir.node import TensorType, Value
from cgorl.ir.tensor import Array


class NoMatch(Exception):
    """Raised with the reason by a condition or function that does not hold for a match."""


@dataclass(frozen=True, slots=True)
class Context:
    """A graph and the builder of the edit in the making.

    What is not asked of the builder must not decide anything, since rewrites are remembered by what the builder was asked
    (`Recipes`); but conditions in `conditions.ROUND` may look at the graph.
    """

    graph: Graph
    builder: Builder

    @property
    def opset(self) -> int:
        """Version of the default domain's operator set."""
        return self.graph.opset

    def type(self, value: Any) -> TensorType:
        """Type of a bound value. Raises NoMatch where it is absent or unknown."""
        kind = self.builder.type(value) if isinstance(value, Value) else None
        if kind is None:
            raise NoMatch("a type is not known")
        return kind

    def shape(self, value: Any) -> tuple[int, ...]:
        """Shape of a bound value, all of it known. Raises NoMatch."""
        kind = self.type(value)
        if kind.shape is None or not kind.static:
            raise NoMatch(f"the shape of '{self.label(value)}' is not all known ({kind})")
        return kind.shape  # type: ignore[return-value]

    def rank(self, value: Any) -> int:
        """Rank of a bound value. Raises NoMatch."""
        rank = self.type(value).rank
        if rank is None:
            raise NoMatch(f"the rank of '{self.label(value)}' is not known")
        return rank

    def contents(self, value: Any) -> Array | None:
        """Contents of a bound value if it is a Constant node."""
        held = self.builder.tensor(value) if isinstance(value, Value) else None
        return None if held is None else held.array()

    def label(self, value: Any) -> str:
        """A name for messages."""
        return self.graph.label(value) if isinstance(value, Value) and value.node >= 0 else "a new value"
