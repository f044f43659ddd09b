"""CPU seconds of simplify against the size of the graph: they grow linearly."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from cgorl.ir.from_proto import from_proto
from cgorl.ir.simplify import simplify

_NODES = (300, 1_000, 3_000, 10_000)
_REAL = Path(__file__).resolve().parents[4] / "shared" / "models"


def main(arguments: Sequence[str]) -> None:
    """Prints a line for each size of a synthetic export, for nasnet_mobile where ../shared is, and for each file named."""
    table = Table("model", "nodes", "after", "load s", "simplify s", "µs a node", title="simplify, CPU seconds")
    for column in table.columns[1:]:
        column.justify = "right"
    for label, make in _models(arguments):
        model = make()
        nodes = len(model.graph.node)
        start = time.process_time()
        graph = from_proto(model)
        loaded = time.process_time()
        after = simplify(graph).graph
        done = time.process_time()
        left = sum(1 for n in after.nodes.values() if not n.is_source)
        table.add_row(
            label, f"{nodes:,}", f"{left:,}", f"{loaded - start:.2f}", f"{done - loaded:.2f}", f"{(done - loaded) / nodes * 1e6:.0f}"
        )
    Console().print(table)


def _models(paths: Sequence[str]) -> Iterator[tuple[str, Callable[[], onnx.ModelProto]]]:
    for nodes in _NODES:
        yield "synthetic export", partial(exported, nodes)
    yield "synthetic, static", partial(exported, _NODES[-1], static=True)
    if (_REAL / "restore.py").exists():
        yield "nasnet_mobile", partial(_restored, "nasnet_mobile")
    for path in paths:
        yield Path(path).name, partial(onnx.load, path)


def exported(nodes: int, static: bool = False) -> onnx.ModelProto:
    """A model of about `nodes` nodes as exporters write them: 18 a block, 11 of them plumbing for a reshape.

    The batch is dynamic unless `static`; then each block's shapes follow from the last one's, and all plumbing can go.
    """
    weights: dict[str, np.ndarray[Any, Any]] = {
        "w": np.full((12, 12), 0.1, np.float32),
        "b": np.zeros(12, np.float32),
        **{f"i{k}": np.array(k, np.int64) for k in range(3)},
        "axis": np.array([0], np.int64),
    }
    made: list[onnx.NodeProto] = []

    def add(op: str, *inputs: str, **attributes: Any) -> str:
        made.append(helper.make_node(op, list(inputs), [f"v{len(made)}"], **attributes))
        return f"v{len(made) - 1}"

    x = "x"
    while len(made) < nodes:
        shape = add("Shape", x)
        n, c, h = (add("Gather", shape, f"i{k}") for k in range(3))
        flat = add("Concat", add("Unsqueeze", n, "axis"), add("Unsqueeze", add("Mul", c, h), "axis"), axis=0)
        same = add("Dropout", add("Cast", add("Reshape", x, flat), to=TensorProto.FLOAT))
        y = add("Relu", add("Add", add("MatMul", same, add("Identity", "w")), "b"))
        back = add("Concat", *(add("Unsqueeze", d, "axis") for d in (n, c, h)), axis=0)
        x = add("Reshape", y, back)
    info = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [2 if static else "N", 3, 4]) for v in ("x", x)]
    tensors = [numpy_helper.from_array(a, name) for name, a in weights.items()]
    graph = helper.make_graph(made, "exported", info[:1], info[1:], tensors)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def _restored(name: str) -> onnx.ModelProto:
    spec = importlib.util.spec_from_file_location("restore", _REAL / "restore.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: onnx.ModelProto = module.restore(str(_REAL / f"{name}.stripped.onnx"))
    return model
