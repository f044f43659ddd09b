"""Targets known in part: what shape follows, what constant says the same, and that no size of a symbol makes either wrong."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgorl.ir.targets import expanded, reshaped, spelled, widens_nothing

TARGETS = st.lists(st.sampled_from([-1, 0, 1, 2, 3, 6, "N", "M", None]), max_size=4)
DIMS = st.lists(st.sampled_from([1, 2, 3, 6, "N", "M", None]), max_size=4)
SIZES = (0, 1, 2, 3)


def _bound(items, sizes, unknown):  # type: ignore[no-untyped-def]
    free = iter(unknown)
    return [next(free) if d is None else sizes.get(d, d) for d in items]


def _reshape(shape, target):  # type: ignore[no-untyped-def]
    """The shape that a Reshape gives by ONNX's words, or None where it fails."""
    if any(t == 0 and k >= len(shape) for k, t in enumerate(target)) or target.count(-1) > 1:
        return None
    copied = [shape[k] if t == 0 else t for k, t in enumerate(target)]
    rest = int(np.prod([t for t in copied if t != -1]))
    total = int(np.prod(shape))
    if -1 in copied:
        if rest == 0 or total % rest:
            return None
        copied = [total // rest if t == -1 else t for t in copied]
    return copied if int(np.prod(copied)) == total and min(copied, default=0) >= 0 else None


@given(TARGETS, DIMS)
def test_reshapes(target, dims):  # type: ignore[no-untyped-def]
    found, fixed = reshaped(target, dims, False), spelled(target, dims, False)
    many = target.count(None) + dims.count(None)
    for n, m in product(SIZES, SIZES):
        sizes = {"N": n, "M": m}
        for unknown in product((-1, 0, 1, 2, 6), repeat=many) if many < 3 else ():
            if any(u < 0 for u in unknown[target.count(None) :]):
                continue
            shape = _bound(dims, sizes, unknown[target.count(None) :])
            made = _reshape(shape, _bound(target, sizes, unknown))
            if made is None:
                continue
            assert all(d is None or sizes.get(d, d) == size for d, size in zip(found, made, strict=True))
            assert fixed is None or _reshape(shape, list(fixed)) == made


@given(TARGETS.map(lambda t: [d for d in t if d not in (-1, 0)]), DIMS)
def test_expands(target, dims):  # type: ignore[no-untyped-def]
    found = expanded(target, dims)
    for n, m in product(SIZES, SIZES):
        sizes = {"N": n, "M": m}
        shape, wanted = _bound(dims, sizes, [2] * 9), _bound(target, sizes, [2] * 9)
        try:
            made = np.broadcast_shapes(tuple(shape), tuple(wanted))
        except ValueError:
            continue
        assert all(d is None or sizes.get(d, d) == size for d, size in zip(found, made, strict=True))
        assert not widens_nothing(target, dims) or list(made) == shape


@pytest.mark.parametrize(
    ("target", "dims", "dims_found", "constant"),
    [
        (("N", 512, 256), ("N", 2048, 64), ("N", 512, 256), (0, 512, 256)),
        ((-1, 2048, 1), ("N", 2048), ("N", 2048, 1), (-1, 2048, 1)),
        ((None, 12), ("N", 3, 4), (None, 12), (-1, 12)),
        (("N", "M", 12, 64), ("N", "M", 768), ("N", "M", 12, 64), (0, 0, 12, 64)),
        (("M", 12), ("N", 3, 4), (None, 12), (-1, 12)),
        ((None, None, 4), ("N", 3, 4), (None, None, 4), None),
        (("N", None, 4), ("N", 3, 4), ("N", None, 4), None),
    ],
)
def test_what_exporters_write(target, dims, dims_found, constant):  # type: ignore[no-untyped-def]
    assert reshaped(target, dims, False) == dims_found
    assert spelled(target, dims, False) == constant
    assert spelled(target, dims, True) is None
