"""What runs in a job's own process: the only part of the service that reads a user's model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cgorl import background
from cgorl.background import Worker

_MOST = 200
"""So many operators, inputs and outputs are named."""
_CHOSEN = ("rules", "cost", "device", "search", "seconds", "expansions", "evaluations", "seed", "dims", "unbound")
_ORDER = {".onnx": 0, ".data": 1, ".html": 2, ".json": 3}
"""Files of a run that are given out, and in which order they are listed."""


def look(worker: Worker, values: Mapping[str, Any]) -> None:
    """Says what a model is: operators, inputs and outputs, symbols that want a size, and how much the rules can touch."""
    worker.stage("load", "")
    from cgorl import config, pipeline
    from cgorl.ir.sizes import symbols
    from cgorl.report.ledger import count
    from cgorl.rules.coverage import coverage
    from cgorl.rules.matches import constant_bytes

    _place(values)
    cfg = config.load_config("optimize", values=values)
    graph = pipeline.load_model(cfg.model)
    pipeline.check_model(graph, {})
    covered = coverage(graph, config.rule_set(config.plain(cfg)["rules"]))
    operators = Counter(n.label for n in graph.nodes.values() if not n.is_source and n.op != "SparseConstant")
    facts = {
        "operators": [list(p) for p in operators.most_common(_MOST)],
        "nodes": count(graph),
        "weight_bytes": constant_bytes(graph),
        "inputs": [_value(graph, i, 0) for i in graph.inputs[:_MOST]],
        "outputs": [_value(graph, v.node, v.port) for v in graph.outputs[:_MOST]],
        "symbols": list(symbols(graph)),
        "opset": graph.opsets.get("", None),
        "producer": graph.frame.model.producer_name,
        "coverage": {"total": covered.total, "touchable": covered.touchable, "opaque": dict(covered.opaque), "text": str(covered)},
    }
    worker.say("end", facts=facts)


def optimize(worker: Worker, values: Mapping[str, Any]) -> None:
    """Optimizes, draws what came of it for the page, and says which files there are to fetch."""
    _place(values)
    done = worker.optimize(values, picture=False)  # the page draws its own, and matplotlib takes as long as all else
    worker.stage("draw", "")
    from cgorl.report.brief import brief
    from cgorl.report.ledger import ledger
    from cgorl.report.page import page
    from cgorl.web.drawn import draw

    folder, root = worker.folder, Path(str(values["runs"])).parent.resolve()
    assert folder is not None
    draw(done, _prices(values), root)
    end, rows = worker.ended(done), ledger(done)
    told = brief(end, folder)
    written = page(Path(str(values["model"])).stem, told, rows, {k: values[k] for k in _CHOSEN if k in values})
    (folder / "report.html").write_text(written, encoding="utf-8", errors="replace")
    files = [[p.name, p.stat().st_size] for p in sorted(folder.iterdir(), key=lambda p: _ORDER.get(p.suffix, 9)) if p.suffix in _ORDER]
    told |= {"folder": str(folder.relative_to(root)), "files": files, "counts": _counts(done)}
    worker.say("end", **told, summary=end["summary"], steps=len(done.trace), drawn=True)


def _place(values: Mapping[str, Any]) -> None:
    """Puts the files of an upload where its model looks for them; a model of the zoo has none."""
    if (model := Path(str(values["model"]))).is_file():
        from cgorl.web.placed import place

        place(model)


def _prices(values: Mapping[str, Any]) -> Any:
    """The job's cost model, which measures no more than it has."""
    from cgorl import config, jobs

    more = {"cost.seconds": 0} if values.get("cost") == "measured" else {}
    return jobs.cost(config.load_config("optimize", values={**values, **more}))


def _counts(done: Any) -> list[list[Any]]:
    """Operators with their nodes and estimated ms, of the original and of the result."""
    was, now = (
        Counter(n.label for n in g.nodes.values() if not n.is_source and n.op != "SparseConstant") for g in (done.original, done.graph)
    )
    names = sorted(was | now, key=lambda o: (-max(was[o], now[o]), o))
    return [[o, was[o], now[o], done.before_ms.get(o), done.after_ms.get(o)] for o in names[:_MOST]]


def _value(graph: Any, node: int, port: int) -> dict[str, Any]:
    found = graph.nodes[node]
    kind = found.types[port]
    shape = None if kind is None or kind.shape is None else list(kind.shape)
    return {"name": found.names[port] if port < len(found.names) else "", "type": "" if kind is None else str(kind), "shape": shape}


def main() -> None:
    """What a job's process runs."""
    background.main({"look": look, "optimize": optimize})
