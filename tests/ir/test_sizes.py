"""Sizes: types once the symbols of inputs have sizes, also where exporters compute shapes from shapes."""

import numpy as np
import pytest

from cgorl.certificate.inputs import feeds
from cgorl.ir.graph import Graph
from cgorl.ir.run import Session
from cgorl.ir.sizes import Sizes
from cgorl.ir.to_proto import complete
from tests.texts import graph

HEADS = """agraph (float[batch,seq,12] x) => (float[a,b,c] y) {
    s = Shape(x) zero = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>() axis = Constant<value = int64[1] {0}>()
    b = Gather<axis=0>(s, zero) n = Gather<axis=0>(s, one) rest = Constant<value = int64[2] {3, 4}>()
    b1 = Unsqueeze(b, axis) n1 = Unsqueeze(n, axis) shape = Concat<axis=0>(b1, n1, rest)
    heads = Reshape(x, shape) turned = Transpose<perm=[0,2,1,3]>(heads) back = Transpose<perm=[0,2,1,3]>(turned)
    m = Constant<value = int64[1] {-1}>() again = Concat<axis=0>(b1, n1, m) y = Reshape(back, again) }"""

POSITIONS = """agraph (float[batch,seq] x) => (float[a,b] y) {
    s = Shape<start=1>(x) z = Constant<value = int64[1] {0}>() n = Squeeze(s, z) zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>() r = Range(zero, n, one) two = Constant<value = int64 {2}>() h = Div(n, two)
    h1 = Unsqueeze(h, z) half = Slice(r, z, h1) f = Cast<to=1>(half) rows = Unsqueeze(f, z) t = Constant<value = int64[2] {3, 1}>()
    y = Tile(rows, t) }"""

MASK = """agraph (float[batch,seq] x) => (float[a,b] y) {
    s = Shape(x) minus = Constant<value = int64[2] {-1, -1}>() two = Constant<value = int64[1] {2}>()
    ones = ConstantOfShape<value = int64[1] {1}>(two)
    same = Equal(s, minus) picked = Where(same, ones, s) mask = ConstantOfShape<value = float[1] {2.0}>(picked) y = Add(x, mask) }"""


@pytest.mark.parametrize("text", [HEADS, POSITIONS, MASK])
def test_shapes_that_are_computed_from_shapes_are_known(text: str) -> None:
    g: Graph = graph(text)
    sizes = Sizes({"batch": 2, "seq": 6})
    names = [n for node in g.nodes.values() for n in node.names if n and not node.is_source and not node.constant]
    model = complete(g)
    del model.graph.output[:]
    for name in names:
        model.graph.output.add().name = name
    ran = Session(model).run(feeds(g, {"batch": 2, "seq": 6}, np.random.default_rng(0)))
    for i, node in g.nodes.items():
        for port, name in enumerate(node.names):
            if name in ran:
                found = sizes.types(g.nodes.__getitem__, i, g.opset)[port]
                assert found is not None
                assert found.shape == ran[name].shape, name
