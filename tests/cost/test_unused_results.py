"""A kernel of which the graph does not use all results can be run by itself: onnxruntime dies of a Split with a nameless one."""

from cgorl.cost.bench_model import bench_model
from cgorl.cost.kernels.kernel import Kernel, Slot, float_slot
from cgorl.ir.run import Session


def test_a_split_of_which_one_part_is_used() -> None:
    sizes = Slot(7, (2,), True, (4, 4))
    kernel = Kernel("Split", "", (("axis", 1),), (float_slot((1, 8, 2, 2)), sizes), (float_slot((1, 4, 2, 2)), None), 18)
    model, feeds = bench_model(kernel, 2)
    splits = [n for n in model.graph.node if n.op_type == "Split"]
    assert len(splits) == 2 and all(all(n.output) and len(set(n.output)) == 2 for n in splits)
    [found] = Session(model).run(feeds).values()
    assert found.shape == (1, 4, 2, 2)
