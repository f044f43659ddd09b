"""Attributes: those of one operator of a source, as the rule fixes them, as they are bound, or drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cgorl.ir.forms import PARAMETERS
from cgorl.ir.ops import schema
from cgorl.rules.pattern import Apply, Lit, Var

if TYPE_CHECKING:
    from cgorl.rules.sampling.sketch import Sketch


class Unfit(ValueError):
    """A draw that led nowhere; the next one may."""


class Attributes:
    """The attributes of one operator of a source: what the rule fixes, what is bound, and what is free to draw."""

    def __init__(self, sketch: Sketch, term: Apply) -> None:
        """Knows what `term` says, nothing drawn yet."""
        self.sketch, self.term = sketch, term
        self.said = dict(term.attrs)
        self.values: dict[str, Any] = {}
        self.drawn_pads: tuple[int, ...] = ()
        self.rest: Mapping[str, Any] | None = sketch.env.get(term.rest) if term.rest else None
        spec = schema(term.op, "", sketch.opset)
        self._has = set(spec.attributes) if spec is not None else set()
        self._has |= {p[0] for p in PARAMETERS.get(term.op, ()) if sketch.opset >= p[2]}

    def fixed(self, name: str) -> Any:
        """The value that a literal, or a name bound before, gives the attribute; None if it is open."""
        said = self.said.get(name)
        if isinstance(said, Lit):
            return said.value
        if isinstance(said, Var) and said.name != "_":
            return self.sketch.env.get(said.name)
        return self.rest.get(name) if said is None and self.rest is not None else None

    def length(self, *names: str) -> int | None:
        """The common length of attributes that are bound already."""
        for name in names:
            if isinstance(found := self.fixed(name), tuple):
                return len(found) // (2 if name == "pads" else 1)
        return None

    def __call__(self, name: str, default: Any, draw: Callable[[], Any]) -> Any:
        """The attribute's value: fixed, drawn where the rule leaves it free, or (mostly) its default where it does not speak of it."""
        said = self.said.get(name)
        value = self.fixed(name)
        if value is None:
            free = said is not None or (bool(self.term.rest) and self.rest is None)
            if name not in self._has or not (free or self.sketch.coin(0.02)):
                value = default
            elif isinstance(said, Var) and said.name != "_":
                return self._named(name, said.name, draw)
            else:
                value = draw()
        if isinstance(said, Var) and said.name != "_":
            self.sketch.bind(said.name, value)
        if name in self._has or value != default:
            self.values[name] = value
        return value

    def _named(self, name: str, said: str, draw: Callable[[], Any]) -> Any:
        """A value that the rule names: drawn until no condition speaks against it."""
        for left in reversed(range(6)):
            self.values[name] = value = self.sketch.leanings.attribute(said, self.sketch, draw)
            try:
                self.sketch.bind(said, value)
            except Unfit:
                if not left:
                    raise
            else:
                return value

    def finish(self) -> dict[str, Any]:
        """The attributes to write; binds the rule's name for the rest of them."""
        if self.term.rest and self.rest is None:
            self.sketch.env[self.term.rest] = {k: v for k, v in self.values.items() if k not in self.said}
        return {k: v for k, v in self.values.items() if v is not None}
