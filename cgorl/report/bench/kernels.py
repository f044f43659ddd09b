"""Which of the kernels that onnxruntime makes of a graph the local rule foretells, exactly, shapes and attributes included.

Usage: bench.py kernels [FILE ...] [dims.NAME=n] [unbound=16]

Over the zoo, and the files named; a symbol of theirs without a size gets 1 for a batch and `unbound` else.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from cgorl import zoo
from cgorl.certificate.inputs import feeds
from cgorl.cost.kernels import written
from cgorl.cost.kernels.kernel import Kernel
from cgorl.cost.kernels.lower import kernels
from cgorl.cost.kernels.spots import Spots
from cgorl.cost.model import Now
from cgorl.ir.from_proto import from_proto
from cgorl.ir.graph import Graph
from cgorl.ir.onnx_io import ModelError, load
from cgorl.ir.run import RunError
from cgorl.ir.simplify import simplify
from cgorl.ir.sizes import Sizes, symbols
from cgorl.ir.to_proto import complete
from cgorl.report.files import options


def main(arguments: Sequence[str]) -> None:
    """Prints a row for each graph, cleaned up."""
    table = Table("graph", "runtime's kernels", "foretold", "exact", "rule ms", "differs in")
    for column in table.columns[1:-1]:
        column.justify = "right"
    usage = (__doc__ or "").split("\n\n")[1]
    words = options([a for a in arguments if "=" in a], {}, usage)
    if words.rest:
        raise ModelError(f"there is no '{words.rest[0]}' for this. {usage}")
    unbound = words.dims.get("unbound", 16)
    for label, graph in _graphs([a for a in arguments if "=" not in a]):
        sizes = {s: words.dims.get(s, 1 if "batch" in s or s.endswith(":0") else unbound) for s in symbols(graph)}
        start = time.process_time()
        spots = Spots(Now(graph), Sizes(sizes, unbound), written.block())
        ours = Counter(k.key for i in graph.order() for k in kernels(spots, i))
        took = time.process_time() - start
        try:
            made = written.kernels_of(written.write(complete(graph)), feeds(graph, sizes, np.random.default_rng(0)))
        except RunError as e:
            table.add_row(label, "", "", "", f"{1000 * took:.0f}", str(e)[:60])
            continue
        theirs = Counter(k.key for k in made)
        missed = Counter(Kernel.of_key(k).label for k in (theirs - ours).elements())
        differs = ", ".join(f"{n} {what}" for what, n in missed.most_common(3))
        same = sum((ours & theirs).values())
        table.add_row(label, str(len(made)), str(same), "yes" if ours == theirs else "no", f"{1000 * took:.0f}", differs)
    Console(width=120).print(table)
    print(f"block of channels: {written.block()}; onnxruntime at ORT_ENABLE_ALL")


def _graphs(paths: Sequence[str]) -> Iterator[tuple[str, Graph]]:
    given = [(Path(path).stem, load(path)) for path in paths]  # first, so that a wrong name is told at once
    for name in zoo.names():
        yield name, simplify(from_proto(zoo.build(name))).graph
    for name, graph in given:
        yield name, simplify(graph).graph
