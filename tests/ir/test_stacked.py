"""Weights put together and cut apart."""

from cgorl.ir.build import Builder
from cgorl.ir.node import TensorType, Value
from tests.ir.walks import load, text


def test_weights_put_together_and_cut_apart_are_the_weights_they_were() -> None:
    graph = load(text("(float[2] y) <float[2,3] a = {1,2,3,4,5,6}, float[4,3] b = {1,2,3,4,5,6,7,8,9,10,11,12}> { y = Neg(x) }"))
    at = {graph.label(Value(i)): Value(i) for i in graph.nodes}
    build = Builder(graph)
    a, b = at["a"], at["b"]

    def cut(v: Value, start: int, end: int) -> Value:
        return build.node("Slice", [v], {"starts": (start,), "ends": (end,), "axes": (0,)})

    both = build.node("Concat", [a, b], {"axis": 0})
    three = build.node("Concat", [both, a], {"axis": 0})
    assert list(build.made(three).reads()) == [a, b, a]
    assert cut(both, 0, 2) == a and cut(both, 2, 6) == b and cut(both, 0, 6) == both
    inner = cut(both, 3, 5)
    assert build.made(inner).op == "Slice" and next(build.made(inner).reads()) == b
    assert list(build.made(cut(three, 2, 8)).reads()) == [b, a]
    left, right = cut(b, 0, 1), cut(b, 1, 4)
    assert build.node("Concat", [left, right], {"axis": 0}) == b
    assert build.made(build.node("Concat", [right, left], {"axis": 0})).op == "Concat"
    assert build.made(cut(right, 1, 3)).op == "Slice" and next(build.made(cut(right, 1, 3)).reads()) == b
    assert build.made(cut(three, 1, 7)).op == "Slice"  # parts cut in two stay as they are
    assert build.type(cut(three, 1, 7)) == TensorType(1, (6, 3))
