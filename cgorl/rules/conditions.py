"""The named conditions that a rule may set; each raises NoMatch with its reason in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cgorl.rules.vocabulary import axes, broadcasts, heads, lookup, numbers, rows, taso, types, widths, windows

_ALL: tuple[Callable[..., None], ...] = (
    types.constant,
    types.running,
    types.floating,
    types.at_most_single,
    types.same_dtype,
    types.same_type,
    types.equal_shapes,
    types.rank,
    types.rank_at_least,
    types.all_rank,
    types.all_rank_at_least,
    types.same_rank,
    types.different,
    types.opset_from,
    types.lossless_cast,
    broadcasts.channelwise,
    broadcasts.columnwise,
    broadcasts.narrower,
    broadcasts.same_but_channels,
    broadcasts.alike_but_channels,
    broadcasts.alike_but_axis,
    broadcasts.alike_but,
    broadcasts.same_but_last,
    broadcasts.equal_lengths,
    broadcasts.last_vector,
    broadcasts.vector_or_absent,
    broadcasts.same_channels,
    widths.channels_only,
    widths.depthwise,
    windows.zeros,
    windows.ones,
    windows.zeros_or_absent,
    windows.spatial_only,
    windows.covers,
    windows.holds_centre,
    windows.contains_window,
    windows.below,
    windows.counts_padding,
    windows.keeps_constants,
    windows.lowest,
    windows.cuts_front,
    windows.divides,
    windows.block_diagonal,
    axes.identity,
    axes.moves,
    axes.swaps_last_two,
    axes.only_ones_move,
    axes.is_axis,
    axes.not_axis_of,
    axes.last_only,
    axes.one_axis,
    axes.one_range,
    axes.single_axes,
    axes.is_length,
    axes.covering,
    axes.not_negative,
    heads.heads_of,
    heads.number_alone,
    heads.single_first,
    lookup.indices,
    lookup.counting,
    lookup.single_last,
    lookup.no_longer,
    rows.rows_only,
    numbers.number,
    numbers.near,
    numbers.not_above,
    numbers.not_below,
    numbers.ordered,
    numbers.no_bound,
    taso.operand_is,
    taso.unactivated,
    taso.not_activation,
    taso.same_padding,
    taso.valid_padding,
    taso.kernel_of,
    taso.joinable,
)

CONDITIONS: Mapping[str, Callable[..., None]] = {f.__name__: f for f in _ALL}

PLAIN = frozenset(
    {"zeros", "ones", "spatial_only", "covers", "contains_window", "divides", "identity", "moves", "same_padding", "valid_padding"}
)
"""Conditions that look at nothing but the numbers they are given."""

ROUND = frozenset({"operand_is", "unactivated", "not_activation"})
"""Conditions that look at what is round the values they are given."""

PAST = frozenset({"not_activation"})
"""Those of them that look at who reads what their value is made of: one operator further upstream than the source need go."""
