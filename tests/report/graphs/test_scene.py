"""Scenes: every node is shown once, blocks fold, and what leaves for a browser is what stands in the scene."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import onnx.parser
import pytest

import cgorl
from cgorl import config, jobs
from cgorl.cost.model import CostModel
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.report.graphs.blocks import blocks
from cgorl.report.graphs.packed import packed
from cgorl.report.graphs.scene import BLOCK, OUTPUT_BOX, near, scene
from cgorl.report.graphs.svg import svg
from tests.unpacked import unpacked

MODELS = {"squeezenet1_1": {"image": 64}, "bert": {"layers": 3}, "nasnet_a": {"form": "taso"}, "resnet50": {}}


@cache
def graph(name: str) -> Graph:
    return cgorl.load(name, **MODELS[name])


def prices() -> CostModel:
    return jobs.cost(config.load_config("optimize", ["model=any"]))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("folded", [False, True])
def test_each_running_node_is_in_one_box_that_follows_what_it_reads(name: str, folded: bool) -> None:
    g = graph(name)
    parts = blocks(g)
    made = scene(g, None, parts, range(len(parts)) if folded else ())
    shown = [i for b in made.boxes for i in b.nodes]
    assert sorted(shown) == sorted(i for i, n in g.nodes.items() if not n.constant)
    assert all(s < k for k, sources in enumerate(made.reads) for s in sources)
    at = made.places()
    for i in shown:
        for v in g.nodes[i].reads():
            assert v.node not in at or at[v.node] == at[i] or at[v.node] in made.reads[at[i]]
    assert [b.name for b in made.boxes if b.op == OUTPUT_BOX] == [o.name for o in g.frame.model.graph.output]


@pytest.mark.parametrize("name", MODELS)
def test_a_fold_changes_no_cost(name: str) -> None:
    g, cost = graph(name), prices()
    parts = blocks(g)
    assert scene(g, cost).total_ms == pytest.approx(cost.cost_ms(g))
    assert scene(g, cost, parts, range(len(parts))).total_ms == pytest.approx(cost.cost_ms(g))


def test_blocks_are_the_cells_that_a_network_is_made_of() -> None:
    titles = [b.title for b in blocks(graph("resnet50"))]
    assert len(titles) == 16
    assert titles[1].startswith("layer1/1")
    assert len(blocks(graph("nasnet_a"))) >= 12
    parts = blocks(graph("bert"))
    assert len({i for b in parts for i in b.nodes}) == sum(len(b.nodes) for b in parts)


def test_constants_are_shown_when_asked_for() -> None:
    g = graph("squeezenet1_1")
    assert len(scene(g, constants=True).boxes) == len(g.nodes) + len(g.outputs)


def test_a_part_of_a_graph_is_shown_alone() -> None:
    g = graph("resnet50")
    root = g.order()[-20]
    part = near(g, [root], 2)
    made = scene(g, only=part)
    assert {i for b in made.boxes for i in b.nodes} == part
    assert root in part
    assert 3 <= len(part) <= 15


def test_hover_text_tells_operands_results_and_attributes() -> None:
    box = next(b for b in scene(graph("squeezenet1_1")).boxes if b.op == "Conv")
    assert "gives float[1,64,31,31]" in box.about
    assert "(constant)" in box.about
    assert "strides = [2, 2]" in box.about


def test_packed_bytes_hold_the_scene() -> None:
    g = graph("squeezenet1_1")
    made = scene(g, prices(), blocks(g))
    marked = next(i for b in made.boxes for i in b.nodes)
    data = unpacked(packed(made, {marked: 2}, extra="word"))
    assert [data["texts"][k] for k in data["name"]] == [b.name for b in made.boxes]
    assert [data["texts"][k] for k in data["about"]] == [b.about for b in made.boxes]
    assert np.allclose(data["cost"], [b.cost_ms for b in made.boxes])
    assert (data["x"] == made.layout.x).all() and (data["links"].reshape(-1, 2) == made.layout.links).all()
    conv = next(k for k, b in enumerate(made.boxes) if b.op == "Conv")
    assert data["families"][data["family"][conv]][0] == "convolution"
    assert data["mark"].sum() == 2
    assert data["extra"] == "word"


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_is_a_few_kilobytes(name: str) -> None:
    g = graph(name)
    made = scene(g, None, blocks(g))
    assert len(packed(made)) < 60 * len(made.boxes) + 2000
    assert len(svg(made)) < 300 * len(made.boxes) + 4000


def test_the_picture_is_xml_and_names_what_can_be_read() -> None:
    g = graph("resnet50")
    parts = blocks(g)
    tree = ET.fromstring(svg(scene(g, None, parts, range(len(parts)))))
    texts = [t.text for t in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert sum("nodes)" in str(t) for t in texts) == len(parts)
    assert float(tree.attrib["width"]) <= 1001
    assert any(b.op == BLOCK for b in scene(g, None, parts, range(len(parts))).boxes)


def test_a_mask_that_all_layers_read_does_not_hide_that_they_repeat() -> None:
    layers = " ".join(f"a{k} = Add(x{k}, mask) b{k} = Relu(a{k}) c{k} = Neg(a{k}) x{k + 1} = Mul(b{k}, c{k})" for k in range(6))
    text = f"<ir_version: 9, opset_import: ['': 17]> g (float[4] x0, float[4] m) => (float[4] x6) {{ mask = Exp(m) {layers} }}"
    model = onnx.parser.parse_model(text.replace("'", '"'))
    graph_ = from_proto(model)
    assert [sorted(graph_.nodes[i].op for i in b.nodes) for b in blocks(graph_)] == [["Mul", "Neg", "Relu"]] * 6
