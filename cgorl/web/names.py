"""Names of the files in a job's folder: what the job writes, and what an upload's files of weights may be called."""

from __future__ import annotations

RUN, DRAWN = "run", "drawn"
"""What a job writes into its folder, and all that stays there."""
LONGEST = 200
_DEEPEST = 8


def below(given: str) -> str | None:
    """The path to a file in the model's folder or below it, as it was given; None for one that is not taken.

    It leads nowhere else, hides nothing, and is in nobody's way; at most LONGEST bytes.
    """
    name = given.removeprefix("./")
    parts = name.split("/")
    plain = name.isprintable() and "\\" not in name and all(p and not p.startswith(".") for p in parts)
    if not plain or len(name.encode(errors="replace")) > LONGEST or len(parts) > _DEEPEST or parts[0] in (RUN, DRAWN):
        return None
    return name
