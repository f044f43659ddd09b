"""The blocks' names and what they build: every public function of a family is one block."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable

import numpy as np
import onnx

from cgorl.zoo.blocks import activations, affine, branches, convs, elementwise, joins, layouts, pools, products, reshapes, siblings
from cgorl.zoo.blocks.sketch import Sketch
from cgorl.zoo.builder import Value
from cgorl.zoo.parameters import ZooError, whole

Block = Callable[[Sketch], Value | tuple[Value, ...]]

_FAMILIES = (activations, affine, branches, convs, elementwise, joins, layouts, pools, products, reshapes, siblings)
_BLOCKS: dict[str, Block] = {
    name: function
    for family in _FAMILIES
    for name, function in inspect.getmembers(family, inspect.isfunction)
    if function.__module__ == family.__name__ and not name.startswith("_")
}


def names() -> tuple[str, ...]:
    """Returns the names that `build` knows, sorted."""
    return tuple(sorted(_BLOCKS))


def describe(name: str) -> str:
    """Returns one line on a block: what it is, and in which networks or exports it occurs. Raises ZooError."""
    return f"{name}: {inspect.getdoc(_block(name))}"


def build(name: str, seed: int = 0) -> onnx.ModelProto:
    """Returns a block with weights drawn from the seed; the same bytes for the same arguments in any process.

    Raises:
        ZooError: the name is unknown, or the seed is no whole number of at least 0.
    """
    block = _block(name)
    sketch = Sketch(name, np.random.default_rng(whole("seed", seed, 0)))
    outputs = block(sketch)
    return sketch.model(*([outputs] if isinstance(outputs, Value) else outputs))


def _block(name: str) -> Block:
    if name not in _BLOCKS:
        near = difflib.get_close_matches(name.lower(), _BLOCKS, n=1, cutoff=0.4)
        raise ZooError(f"there is no block '{name}'" + (f" (did you mean '{near[0]}'?)." if near else "."))
    return _BLOCKS[name]
