"""What choices are called on a page, and what each means, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Label(NamedTuple):
    """A title, and a line about it."""

    title: str
    about: str = ""


GROUPS: Mapping[str, Label] = {
    "rules": Label("Rewrites", "which ones are allowed"),
    "cost": Label("What is faster", "how the time of a graph is told"),
    "device": Label("Price list", "the machine whose prices are used, where nothing is measured"),
    "search": Label("Method", "how rewrites are looked for"),
}

LABELS: Mapping[str, Mapping[str, Label]] = {
    "rules": {
        "default": Label("All rewrites", "the whole library: folding, merging, moving"),
        "atomic": Label("Small steps only", "no rewrite that others can be put together from"),
    },
    "cost": {
        "roofline": Label("Estimated", "from arithmetic and memory traffic, with a price list: quick, for any machine"),
        "measured": Label(
            "Measured on this server", "kernels timed in onnxruntime, and the result run against the original: about two minutes more"
        ),
    },
    "device": {
        "taso": Label("TASO", "additive prices, as in its paper"),
        "a100": Label("NVIDIA A100"),
        "cpu": Label("Two CPU cores with AVX2"),
        "v100": Label("NVIDIA V100"),
    },
    "search": {
        "agent": Label("Trained agent", "a learnt policy chooses"),
        "annealing": Label("Annealing", "chance, with worse steps less and less often"),
        "backtracking": Label("Backtracking", "also through graphs that are a little worse (TASO)"),
        "beam": Label("Beam", "the best few graphs of each depth"),
        "exhaustive": Label("Exhaustive", "every graph that there is: small models only"),
        "greedy": Label("Greedy", "always the rewrite that gains most: quick"),
        "guided": Label("Guided walks", "as the agent goes, but led by gains alone"),
        "lookahead": Label("Lookahead", "the best three rewrites in a row, again and again"),
        "random_walk": Label("Random walks", "to compare the others with"),
    },
}


def label(group: str, name: str) -> Label:
    """The label of a choice; of one that has none, its name."""
    return LABELS.get(group, {}).get(name, Label(name))


def chosen(options: Mapping[str, object]) -> list[tuple[str, str]]:
    """A job's options as a page lists them: what, and which."""
    measured = options.get("cost") == "measured"
    found = [(GROUPS[g].title, label(g, str(options[g])).title) for g in GROUPS if g in options and not (measured and g == "device")]
    found.append(("Search time", f"{options.get('seconds', 0):g} s"))
    for name in ("expansions", "evaluations"):
        if options.get(name) is not None:
            found.append((f"At most {name}", f"{options[name]:,}"))
    dims = options.get("dims")
    if isinstance(dims, Mapping) and dims:
        found.append(("Sizes", ", ".join(f"{k} = {v}" for k, v in dims.items())))
    if options.get("seed"):
        found.append(("Seed", str(options["seed"])))
    return found
