"""CPU seconds and memory of loading and saving a large model, next to onnx-ir's."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

_BUILD = """
import sys, onnx
from cgorl.zoo import catalogue
onnx.save(catalogue.build("bert", layers=12, hidden=768, heads=12), sys.argv[1])
"""
_MEASURE = """
import resource, sys, time
{imports}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
model = {load}(sys.argv[1])
loaded = time.process_time()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{save}(model, sys.argv[2])
saved = time.process_time()
print(loaded - start, saved - loaded, peak - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
_TOOLS = {
    "cgorl": _MEASURE.format(imports="from cgorl.ir import onnx_io", load="onnx_io.load", save="onnx_io.save"),
    "onnx-ir": _MEASURE.format(imports="import onnx_ir", load="onnx_ir.load", save="onnx_ir.save"),
}


def main(arguments: Sequence[str]) -> None:
    """Prints a line for each tool, run in a process of its own on bert (12 layers of 768), or on the file named."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "bert.onnx")
        if arguments:
            path = arguments[0]
        else:
            _run(_BUILD, path)
        title = f"{Path(path).name}, {Path(path).stat().st_size / 1e6:,.0f} MB"
        table = Table("", "load s", "save s", "peak MB after load", "peak MB after save", title=title)
        for column in table.columns[1:]:
            column.justify = "right"
        for tool, program in _TOOLS.items():
            load_s, save_s, load_kib, save_kib = (float(word) for word in _run(program, path, str(Path(folder) / "copy.onnx")).split())
            table.add_row(tool, f"{load_s:.2f}", f"{save_s:.2f}", f"{load_kib / 1024:,.0f}", f"{save_kib / 1024:,.0f}")
    Console().print(table)
    print("CPU seconds; memory above that of the imports")


def _run(program: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True).stdout
