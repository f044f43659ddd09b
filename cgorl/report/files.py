"""Files: the ONNX models that a benchmark of whole models runs on, and the tool itself run on one of them."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from cgorl import zoo
from cgorl.ir.onnx_io import ModelError, load
from cgorl.ir.sizes import symbols
from cgorl.report.side import Ended, apart

SCRIPT = Path(__file__).parents[2] / "scripts" / "optimize.py"


class Options(NamedTuple):
    """Words of a benchmark's command line: its own keys, sizes of symbols, and what is meant for optimize.py."""

    own: Mapping[str, str]
    dims: Mapping[str, int]
    rest: tuple[str, ...]


def options(arguments: Sequence[str], own: Mapping[str, str], usage: str) -> Options:
    """The words sorted; `own` are the defaults of the benchmark's own keys. Raises ModelError for what is none or no number."""
    given, dims, rest = dict(own), dict[str, int](), list[str]()
    for text in arguments:
        key, equals, value = text.partition("=")
        if not equals:
            raise ModelError(f"'{text}' should read key=value. {usage}")
        if key in own:
            given[key] = value
        elif key.startswith("dims.") or key == "unbound":
            if not value.isdigit() or int(value) < 1:
                raise ModelError(f"{key} must be a whole number of at least 1, not '{value}'")
            dims[key.removeprefix("dims.")] = int(value)
        else:
            rest.append(text)
    for key in ("timing", "timeout", "count", "least", "seed"):
        if key in given and not given[key].replace(".", "", 1).isdigit():
            raise ModelError(f"{key} must be a number, not '{given[key]}'")
    return Options(given, dims, tuple(rest))


def models(model: str, folder: str, into: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each model: those in `model` (files or names of the zoo, with commas), and the .onnx files of `folder`.

    Files whose weights were taken out (NAME.stripped.onnx) are filled by the restore.py beside them. What is made goes to
    `into`. Raises ModelError and ZooError.
    """
    for text in filter(None, model.split(",")):
        if Path(text).is_file():
            yield Path(text).stem, Path(text).resolve()
        elif text in zoo.names():
            onnx.save(zoo.build(text), into / f"{text}.onnx")
            yield text, into / f"{text}.onnx"
        else:
            raise ModelError(f"there is neither a file '{text}' nor a graph of that name in the zoo ({', '.join(zoo.names())})")
    if not folder:
        return
    found = sorted(Path(folder).glob("*.onnx"))
    if not found:
        raise ModelError(f"there is no .onnx file in the folder '{folder}'")
    for path in found:
        name = path.name.removesuffix(".onnx").removesuffix(".stripped")
        if not path.name.endswith(".stripped.onnx"):
            yield name, path.resolve()
        elif (restore := path.parent / "restore.py").is_file():
            onnx.save(_module(restore).restore(str(path)), into / f"{name}.onnx")
            yield name, into / f"{name}.onnx"


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sizes(path: Path, dims: Mapping[str, int]) -> dict[str, int]:
    """The size of each symbol of a model: that of its name, else `unbound`, else 1."""
    return {s: dims.get(s, dims.get("unbound", 1)) for s in symbols(load(path))}


def nodes(path: Path) -> int | None:
    """Nodes of a file, those of bodies and functions included; None of one that cannot be read."""
    try:
        proto = onnx.load(path, load_external_data=False)
    except Exception:  # protobuf's errors share no base class with those of a missing file
        return None

    def count(graph: Any) -> int:
        inner = (a.g for n in graph.node for a in n.attribute if a.HasField("g"))
        return len(graph.node) + sum(map(count, inner))

    return count(proto.graph) + sum(len(f.node) for f in proto.functions)


def tool(
    model: Path, output: Path, sizes: Mapping[str, int], rest: Sequence[str], runs: Path, timeout: float
) -> tuple[Ended, dict[str, Any]]:
    """The whole tool run on a file in a process of its own, with measured prices unless `rest` says otherwise, and its summary."""
    dims = [f"dims.{s}={n}" for s, n in sizes.items()]
    words = [f"model={model}", f"output={output}", f"runs={runs}", "cost=measured", *dims, *rest]
    ended = apart([sys.executable, str(SCRIPT), *words], timeout)
    if ended.why.startswith("exit code 4"):
        ended = replace(ended, why="a proof failed, so that the last good graph was written (exit code 4)")
    written = sorted(runs.glob("optimize/*/summary.json"))
    return ended, json.loads(written[-1].read_text()) if written and not ended.why else {}
