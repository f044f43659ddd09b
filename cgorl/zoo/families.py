"""Families: graphs of the zoo with parameters drawn at random, to learn from many that are alike but not the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgorl.zoo.catalogue import defaults
from cgorl.zoo.parameters import ZooError, whole


@dataclass(frozen=True, slots=True)
class Families:
    """`graphs` graphs in all, evenly of each family in `draw`: a name of the zoo and for each parameter the values to draw from."""

    draw: Mapping[str, Mapping[str, Sequence[Any]]]
    graphs: int = 8

    def __post_init__(self) -> None:
        """Raises ZooError."""
        whole("families.graphs", self.graphs)
        if not self.draw:
            raise ZooError("families.draw names no family.")
        for name, parameters in self.draw.items():
            known = defaults(name)
            for key, values in parameters.items():
                if key not in known:
                    raise ZooError(f"families.draw.{name}: {name} has no parameter '{key}'; it has {', '.join(known)}.")
                if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                    raise ZooError(f"families.draw.{name}.{key} must be a list of values to draw from, not {values!r}.")

    def drawn(self, seed: int) -> list[tuple[str, dict[str, Any]]]:
        """Names with parameters, no two the same, as far as there are so many; the same for the same seed."""
        rng, found = random.Random(seed), list[tuple[str, dict[str, Any]]]()
        for k in range(50 * self.graphs):
            name = list(self.draw)[k % len(self.draw)]
            one = name, {key: rng.choice(list(values)) for key, values in self.draw[name].items()}
            if one not in found:
                found.append(one)
            if len(found) == self.graphs:
                break
        return found


def label(name: str, parameters: Mapping[str, Any]) -> str:
    """A drawn graph in a few words."""
    return " ".join([name, *(f"{k}={v}".replace(" ", "") for k, v in parameters.items())])
