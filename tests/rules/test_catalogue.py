"""Each rule of the library earns its place: it matches in the zoo or in a block; what the catalogue counts and writes."""

import re
from pathlib import Path
from typing import Any

import pytest

from cgorl import zoo
from cgorl.cost.roofline import Device, Roofline
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.simplify import simplify
from cgorl.report.rules.catalogue import Entry, catalogue
from cgorl.report.rules.listing import ListingError, write_catalogue
from cgorl.rules.matches import MatchSet
from cgorl.rules.rule_set import RuleSet
from cgorl.rules.text import library
from cgorl.zoo import blocks

RULES = RuleSet(library())
COST = Roofline(Device("test", 1e11, 1e10, 0.005, additive=True))

SMALL: dict[str, dict[str, Any]] = {
    "bert": {"layers": 1, "hidden": 32, "heads": 4, "seq": 8},
    "inception_e_n": {"width": 0.125, "n": 1},
    "inception_v3": {"width": 0.125, "image": 75},
    "mobilenet_v2": {"width": 0.25, "image": 32},
    "nasnet_a": {"width": 0.0625, "image": 32, "depth": (1, 1, 1)},
    "nasrnn": {"hidden": 16, "length": 2},
    "repvgg_a0": {"width": 0.125, "image": 32},
    "resnet18": {"width": 0.125, "image": 32},
    "resnet50": {"width": 0.125, "image": 32},
    "resnet_n": {"width": 0.125, "n": 1},
    "resnext50": {"width": 0.25, "image": 32},
    "squeezenet1_1": {"width": 0.25, "image": 32},
    "transformer_transducer": {"audio_layers": 1, "hidden": 32, "heads": 4, "seq": 8, "labels": 4, "intermediate": 32},
    "vgg19": {"width": 0.0625, "image": 32},
    "vit": {"layers": 1, "hidden": 32, "heads": 4, "image": 32},
    "yolo_csp": {"width": 0.0625, "image": 32, "depth": (1, 1, 1, 1)},
}

HOMELESS = {"concat-exchange", "concat-convs-same-weight", "share-matmul"}
"""Rules of which no network is known that holds their pattern; they are here since rules of TASO's do what they do."""


def _models() -> list[tuple[str, Graph]]:
    made = [(name, zoo.build(name, **SMALL[name])) for name in zoo.names()] + [(name, blocks.build(name)) for name in blocks.names()]
    return [(name, simplify(from_proto(model)).graph) for name, model in made]


@pytest.fixture(scope="module")
def entries() -> dict[str, Entry]:
    return {e.rule: e for e in catalogue(_models(), RULES, COST, rounds=2)}


@pytest.mark.parametrize("rule", [r.name for r in RULES])
def test_each_rule_matches_somewhere(entries: dict[str, Entry], rule: str) -> None:
    assert (entries[rule].total == 0) == (rule in HOMELESS)


def test_best_gain_is_where_it_says(entries: dict[str, Entry]) -> None:
    for entry in entries.values():
        assert bool(entry.total) == (entry.best_in in entry.matches)
    assert entries["matmul-reassociate-right"].best_ms > 0
    assert entries["maxpool-chain"].best_in == "spatial_pyramid"


def test_one_round_counts_the_matches_of_the_graph() -> None:
    graph = simplify(from_proto(blocks.build("acnet"))).graph
    found = catalogue([("acnet", graph)], RULES, COST)
    assert sum(e.total for e in found) == len(MatchSet(graph, RULES))
    more = catalogue([("acnet", graph)], RULES, COST, rounds=2)
    assert all(e.total <= f.total for e, f in zip(found, more, strict=True))


def test_matches_at_a_root_are_those_of_the_set() -> None:
    graph = simplify(from_proto(blocks.build("csp_halves"))).graph
    found = MatchSet(graph, RULES)
    assert [m for i in sorted(graph.nodes) for m in found.at(i) if m in set(found)] == list(found)
    assert found.at(-1) == ()


def test_the_table_in_data_is_of_these_rules_and_blocks() -> None:
    text = (Path(__file__).resolve().parents[2] / "data" / "reference" / "blocks.md").read_text()
    assert re.search(r"^Made by `python scripts/rules.py catalogue", text, re.MULTILINE)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == [r.name for r in RULES], "make it anew with the command on its top"
    assert {row[0] for row in rows if row[1] == "0"} == HOMELESS
    assert {row[3] for row in rows} <= {"", *zoo.names(), *blocks.names()}


def test_the_table_names_each_rule_once(entries: dict[str, Entry], tmp_path: Path) -> None:
    path = tmp_path / "tables" / "blocks.md"
    write_catalogue(list(entries.values()), path, "python scripts/rules.py catalogue")
    lines = path.read_text().splitlines()
    assert "`python scripts/rules.py catalogue`" in lines[2]
    assert [line.split("|")[1].strip() for line in lines if line.startswith("| ")][1:] == list(entries)
    assert f"{len(HOMELESS)} of {len(entries)} rules match nowhere here" in lines[-1]
    with pytest.raises(ListingError, match="cannot be written"):
        write_catalogue([], tmp_path, "")
