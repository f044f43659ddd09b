"""Named graphs built in code with seeded weights: `build("resnet50", image=64)`."""

from cgorl.zoo.catalogue import build, defaults, describe, names
from cgorl.zoo.parameters import ZooError

__all__ = ["ZooError", "build", "defaults", "describe", "names"]
