"""Small blocks as networks and exporters contain them: `build("silu_mish")`; the rules' hunting ground beside the zoo."""

from cgorl.zoo.blocks.catalogue import build, describe, names

__all__ = ["build", "describe", "names"]
