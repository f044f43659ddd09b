"""The named functions that compute attributes and weights of a rule's target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cgorl.rules.vocabulary import attributes, kernels, scales, stacks

_ALL: tuple[Callable[..., Any], ...] = (
    attributes.result,
    attributes.plus,
    attributes.minus,
    attributes.times,
    attributes.rest_of_window,
    attributes.window_of_two,
    attributes.quotient,
    attributes.spatial,
    attributes.compose,
    attributes.inverse,
    attributes.moved,
    attributes.shape_of,
    attributes.last,
    attributes.sizes,
    attributes.size,
    attributes.other_side,
    attributes.flipped,
    attributes.larger,
    attributes.low_of,
    attributes.high_of,
    attributes.product,
    attributes.grid,
    attributes.inner_end,
    attributes.number_in,
    attributes.groups,
    scales.sqrt,
    scales.like,
    scales.filled,
    scales.outward,
    scales.inward,
    scales.outward_transposed,
    scales.channels,
    scales.channels_in,
    scales.channels_transposed,
    scales.channels_of,
    scales.columns,
    scales.rows,
    scales.across,
    scales.down,
    scales.matrix,
    scales.kernel_like,
    scales.stored,
    scales.summed,
    kernels.through,
    kernels.carried,
    kernels.enlarged,
    kernels.dirac,
    kernels.box,
    kernels.depthwise_ones,
    kernels.merged_groups,
    kernels.split_groups,
    stacks.stacked_bias,
    stacks.stacked_rows,
    stacks.parts,
    stacks.front,
    stacks.back,
)

FUNCTIONS: Mapping[str, Callable[..., Any]] = {f.__name__: f for f in _ALL}
