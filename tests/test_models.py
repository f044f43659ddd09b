"""Whole models through the front door: optimized, proven, saved, loaded again and run by onnxruntime as it comes."""

from pathlib import Path

import numpy as np
import pytest

import cgorl
from cgorl import zoo
from cgorl.certificate.inputs import draws, feeds
from cgorl.certificate.rewrite import relative_error
from cgorl.ir.from_proto import from_proto
from cgorl.ir.run import Session
from cgorl.pipeline import Outcome, Status
from tests.certificate.test_mutations import REAL, SHARED, restored
from tests.texts import ZOO


def sound(found: Outcome, tmp_path: Path) -> None:
    assert found.status is not Status.PROOF_FAILED, (found.proof.dropped, found.proof.lost)
    assert found.proof.whole is None or found.proof.whole.runs >= 3
    [path] = found.save(tmp_path / "o.onnx")
    before = tmp_path / "i.onnx"
    cgorl.save(found.original, before)
    given = feeds(found.original, draws(found.original, {}, 1)[0], np.random.default_rng(11))
    x, y = (Session(p, optimized=True).run(given) for p in (before, path))
    assert list(x) == list(y) and all(relative_error(x[k], y[k]) < 1e-4 for k in x)
    assert cgorl.load(path).key == found.graph.key


@pytest.mark.parametrize("name", zoo.names())
def test_the_zoo(name: str, tmp_path: Path) -> None:
    small = ZOO.get(name)
    if small is None:
        pytest.skip("has a test of its own")
    sound(cgorl.optimize(name, zoo=small, seconds=None), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_models(name: str, tmp_path: Path) -> None:
    """A few rewrites each: the listing of all is the matcher's matter."""
    if not SHARED.is_dir():
        pytest.skip("no shared models here")
    sound(cgorl.optimize(from_proto(restored(name)), unbound=1, expansions=4), tmp_path)
