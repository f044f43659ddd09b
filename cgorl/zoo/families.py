"""Families: graphs of the zoo with parameters drawn at random, to learn from many that are alike but not the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cgorl.zoo.catalogue import defaults
from cgorl.zoo.parameters import ZooError, whole


class Drawn(NamedTuple):
    """A graph of the zoo with its parameters, and the tags of rules that are not offered on it."""

    name: str
    parameters: Mapping[str, Any]
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The graph in a few words."""
        told = [f"{k}={v}".replace(" ", "") for k, v in self.parameters.items()]
        return " ".join([self.name, *told, *(f"without {tag}" for tag in self.without)])


@dataclass(frozen=True, slots=True)
class Families:
    """`graphs` graphs in all, evenly of each family in `draw`: a name of the zoo and for each parameter the values to draw from.

    `without` are sets of names and tags of rules, one of which is drawn for each graph: what is learnt where the large steps are
    missing is how to put them together from small ones.
    """

    draw: Mapping[str, Mapping[str, Sequence[Any]]]
    graphs: int = 8
    without: Sequence[Sequence[str]] = ((),)

    def __post_init__(self) -> None:
        """Raises ZooError."""
        whole("families.graphs", self.graphs)
        if not self.draw:
            raise ZooError("families.draw names no family.")
        if not self.without or any(isinstance(tags, str) or not isinstance(tags, Sequence) for tags in self.without):
            raise ZooError(f"families.without must be a list of lists of rules or tags, as [[], [macro]], not {self.without!r}.")
        for name, parameters in self.draw.items():
            known = defaults(name)
            for key, values in parameters.items():
                if key not in known:
                    raise ZooError(f"families.draw.{name}: {name} has no parameter '{key}'; it has {', '.join(known)}.")
                if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                    raise ZooError(f"families.draw.{name}.{key} must be a list of values to draw from, not {values!r}.")

    def drawn(self, seed: int) -> list[Drawn]:
        """Graphs, no two the same, as far as there are so many; the same for the same seed."""
        rng, found = random.Random(seed), list[Drawn]()
        for k in range(50 * self.graphs):
            name = list(self.draw)[k % len(self.draw)]
            parameters = {key: rng.choice(list(values)) for key, values in self.draw[name].items()}
            one = Drawn(name, parameters, tuple(rng.choice(self.without) if len(self.without) > 1 else self.without[0]))
            if one not in found:
                found.append(one)
            if len(found) == self.graphs:
                break
        return found
