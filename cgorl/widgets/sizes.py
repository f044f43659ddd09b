"""How a panel reads sizes."""

from __future__ import annotations

import re


def sizes(text: str) -> tuple[dict[str, int], int | None]:
    """Sizes of dims by name, and that of all others: "batch=8, seq=128, 1". Raises ValueError for what cannot be read."""
    dims: dict[str, int] = {}
    unbound = None
    for word in filter(None, re.split(r"[,;\s]+", text.strip())):
        name, equals, value = word.rpartition("=")
        if not value.isdigit() or int(value) < 1 or (equals and not name):
            raise ValueError(f"sizes should read like 'batch=8, seq=128', or '1' for all: '{word}' does not")
        if equals:
            dims[name] = int(value)
        else:
            unbound = int(value)
    return dims, unbound
