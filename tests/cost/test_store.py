"""The table: several writers, torn lines, other targets."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cgorl.cost.kernels.kernel import Kernel, float_slot
from cgorl.cost.model import CostError
from cgorl.cost.store import Entry, Store
from cgorl.cost.target import Target, here

TARGET = Target("onnxruntime", "1.0", "CPUExecutionProvider", "all", 1, "some cpu", "avx2")


def key(n: int) -> str:
    return Kernel("Relu", "", (), (float_slot((1, n)),), (float_slot((1, n)),), 17).key


def test_what_was_added_is_there_for_the_next_process(tmp_path: Path) -> None:
    Store(tmp_path, TARGET).add(key(1), Entry(0.5, 0.01, 30))
    assert Store(tmp_path, TARGET).get(key(1)) == Entry(0.5, 0.01, 30)
    assert Store(tmp_path, TARGET).get(key(2)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"level": "extended"},
        {"threads": 2},
        {"version": "1.1"},
        {"runtime": "another"},
        {"provider": "CUDAExecutionProvider"},
        {"cpu": "other cpu"},
        {"features": "avx2 avx512f"},
        {"protocol": 1},
    ],
)
def test_a_price_is_never_used_for_another_target(tmp_path: Path, other: dict[str, object]) -> None:
    Store(tmp_path, TARGET).add(key(1), Entry(0.5, 0.01, 30))
    assert Store(tmp_path, replace(TARGET, **other)).get(key(1)) is None


def test_a_renamed_table_is_refused(tmp_path: Path) -> None:
    one, other = Store(tmp_path, TARGET), Store(tmp_path, replace(TARGET, level="extended"))
    one.add(key(1), Entry(0.5, 0.01, 30))
    one.path.rename(other.path)
    with pytest.raises(CostError, match="another target"):
        Store(tmp_path, other.target)


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    store = Store(tmp_path, TARGET)
    for n in (1, 2, 3):
        store.add(key(n), Entry(float(n), 0.01, 30))
    whole = store.path.read_bytes()
    for cut in range(len(whole) - 40, len(whole)):  # killed anywhere in the last line
        store.path.write_bytes(whole[:cut])
        again = Store(tmp_path, TARGET)
        assert [again.get(key(n)) is not None for n in (1, 2)] == [True, True]
        again.add(key(4), Entry(4.0, 0.01, 30))
        assert Store(tmp_path, TARGET).get(key(4)) == Entry(4.0, 0.01, 30)


def test_a_first_line_that_was_torn_is_written_anew(tmp_path: Path) -> None:
    store = Store(tmp_path, TARGET)
    store.add(key(1), Entry(1.0, 0.01, 30))
    head = store.path.read_bytes().split(b"\n")[0]
    for cut in (1, len(head) // 2, len(head)):
        store.path.write_bytes(head[:cut])
        again = Store(tmp_path, TARGET)
        again.add(key(2), Entry(2.0, 0.01, 30))
        assert Store(tmp_path, TARGET).entries == {key(2): Entry(2.0, 0.01, 30)}


def test_a_shipped_table_is_read_and_never_written(tmp_path: Path) -> None:
    Store(tmp_path / "shipped", TARGET).add(key(1), Entry(1.0, 0.01, 30))
    before = (tmp_path / "shipped" / TARGET.file_name).read_bytes()
    store = Store(tmp_path / "own", TARGET, tmp_path / "shipped")
    store.add(key(2), Entry(2.0, 0.01, 30))
    store.add(key(1), Entry(3.0, 0.01, 30))  # measured again here: that counts
    again = Store(tmp_path / "own", TARGET, tmp_path / "shipped")
    assert (again.get(key(1)), again.get(key(2))) == (Entry(3.0, 0.01, 30), Entry(2.0, 0.01, 30))
    assert (tmp_path / "shipped" / TARGET.file_name).read_bytes() == before


def test_a_shipped_table_of_another_pace_serves_estimates_only(tmp_path: Path) -> None:
    shipped = Store(tmp_path / "shipped", TARGET)
    for n in range(10):
        shipped.add(key(n), Entry(1.0, 0.01, 30, 0.010))
    store = Store(tmp_path / "own", TARGET, tmp_path / "shipped")
    assert store.get(key(1)) == Entry(1.0, 0.01, 30, 0.010)  # nothing is known of this machine yet
    for n in range(20, 30):
        store.add(key(n), Entry(1.0, 0.01, 30, 0.0101))
    assert store.get(key(1)) is not None  # the same pace
    for n in range(20, 30):
        store.add(key(n), Entry(2.0, 0.01, 30, 0.020))
    assert store.get(key(1)) is None
    assert store.pace_ms == pytest.approx(0.020)  # what was shipped does not make this machine's own prices look slow
    assert (set(store.entries), key(1) in store.foreign) == ({key(n) for n in range(20, 30)}, True)


_WRITER = """
import sys
from cgorl.cost.store import Entry, Store
from tests.cost.test_store import TARGET, key
store = Store(sys.argv[1], TARGET)
for n in range(200):
    store.add(key(int(sys.argv[2]) + n), Entry(float(n), 0.01, 30))
"""


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    both = [subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), str(first)]) for first in (1000, 2000)]
    assert [p.wait(60) for p in both] == [0, 0]
    lines = (tmp_path / TARGET.file_name).read_text().splitlines()
    assert len([json.loads(line) for line in lines]) == 401  # a head, once, and every entry
    assert len(Store(tmp_path, TARGET).entries) == 400


def test_this_machine_has_a_target_for_each_level_that_there_is_a_rule_for() -> None:
    assert here("all").digest != here("extended").digest
    with pytest.raises(CostError, match="basic"):
        here("basic")


SHIPPED = sorted((Path(__file__).parents[2] / "data" / "costs").glob("*.jsonl"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.name)
def test_shipped_tables_are_whole(path: Path, tmp_path: Path) -> None:
    target = Target(**json.loads(path.read_text().splitlines()[0])["target"])
    assert path.name == target.file_name
    store = Store(tmp_path, target, path.parent)
    assert len(store.entries) >= 0.9 * (len(path.read_text().splitlines()) - 1)
    assert all(Kernel.of_key(k).key == k and e.ms > 0 for k, e in store.entries.items())


def test_tables_are_shipped() -> None:
    assert SHIPPED
