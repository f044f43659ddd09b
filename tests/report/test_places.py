"""Why a rule does not match, asked at any node of its pattern."""

from __future__ import annotations

import pytest

from cgorl.report.rules.places import PlaceError, find_node, why_not
from cgorl.rules.text import library
from tests.rules.test_matches import small

RULES = {r.name: r for r in library()}


def asked(rule: str, node: str) -> str:
    ((name, why),) = why_not(small("resnet50"), [RULES[rule]], node)
    assert name == rule
    return why


def test_at_the_root_and_further_in() -> None:
    assert asked("conv-batchnorm", "layer1/0/bn1") == "" == asked("conv-batchnorm", "layer1/0/conv1")
    assert asked("conv-mul", "layer1/0/conv1") == "no Mul follows"
    assert asked("relu-relu", "layer1/0/relu1") == "'layer1/0/bn1' is BatchNormalization, not Relu"
    assert asked("relu-maxpool", "layer1/0/bn1") == "'layer1/0/bn1' is BatchNormalization, not MaxPool"


def test_rules_that_do_not_speak_of_the_operator_are_left_out() -> None:
    names = {name for name, _ in why_not(small("resnet50"), RULES.values(), "layer1/0/bn1")}
    assert "conv-batchnorm" in names and "relu-relu" not in names


def test_no_such_node_names_those_near() -> None:
    with pytest.raises(PlaceError, match="did you mean layer1/0/bn1"):
        find_node(small("resnet50"), "layer1/0/bm1")
