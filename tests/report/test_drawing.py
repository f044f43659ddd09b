"""A picture of a graph has each running node and edge, and marks what it is told to."""

from __future__ import annotations

from xml.etree import ElementTree

from cgorl.report.drawing import drawing
from tests.texts import small

SVG = "{http://www.w3.org/2000/svg}"


def test_each_running_node_and_edge_is_drawn() -> None:
    g = small("inception_v3")
    running = {i for i, n in g.nodes.items() if not n.constant}
    edges = [(i, u) for i in running for u in g.users[i] if u.node in running]
    root = ElementTree.fromstring(drawing(g, "before <it>", {min(running)}))
    boxes = root.findall(f"{SVG}rect")
    assert len(boxes) == len(running) and len(root.findall(f"{SVG}path")) == len(edges)
    assert sum(b.get("stroke-width") == "3" for b in boxes) == 1
    assert root.findtext(f"{SVG}title") == "before <it>"
    places = {(b.get("x"), b.get("y")) for b in boxes}
    assert len(places) == len(running)  # none upon another
